/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - opjit/reflect.h's questions about this build and about targets. */
#include <opjit/abi.h>
#include <opjit/reflect.h>

#include "frontend/frontend.h"
#include "opjit_build_id.h"

static const rt_struct build_sizes = { "opjit_build_info", { RT_SIZE_TO(opjit_build_info, llvm) } };
RT_STRUCT_ENDS_WITH(opjit_build_info, llvm);

opjit_status opjit_get_build_info(opjit_build_info *out_info, opjit_error *error)
{
    opjit_build_info info = OPJIT_BUILD_INFO_INIT;

    opjit_rt_error_clear(error);
    if (out_info == NULL)
        return opjit_rt_refuse_null(error, "out_info");
    info.numerics = OPJIT_NUMERICS;
    info.kernel_abi = OPJIT_KERNEL_ABI;
    info.has_codegen = opjit_fe_has_codegen();
    info.version = opjit_version();
    info.id = OPJIT_BUILD_ID;
    info.llvm = OPJIT_LLVM_VERSION;
    return opjit_rt_struct_write(&build_sizes, out_info, &info, error);
}

_Static_assert(OPJIT_TARGET_TEXT == RT_TARGET_TEXT_SIZE, "one text");

uint32_t opjit_target_name_at(uint32_t index, char name[OPJIT_TARGET_TEXT])
{
    if (!opjit_rt_target_name(index, name, OPJIT_TARGET_TEXT))
        name[0] = '\0';
    return (uint32_t)strlen(name);
}

opjit_status opjit_target_get_text(const char *target, char text[OPJIT_TARGET_TEXT], opjit_error *error)
{
    rt_target parsed;

    opjit_rt_error_clear(error);
    if (text == NULL)
        return opjit_rt_refuse_null(error, "text");
    text[0] = '\0';
    TRY(opjit_rt_target_parse(target, &parsed, error));
    memcpy(text, parsed.text, sizeof parsed.text);
    return OPJIT_OK;
}

opjit_status opjit_target_runs_here(const char *target, opjit_error *error)
{
    rt_target parsed;

    opjit_rt_error_clear(error);
    TRY(opjit_rt_target_parse(target, &parsed, error));
    return opjit_rt_target_runs_here(&parsed, error);
}
