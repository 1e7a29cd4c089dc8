/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c - loads the codegen library at the first miss, so that a process that only hits its caches never pays for
 * LLVM (which can't be unloaded).  Knows nothing of what the library does; module.c finds it. */
#include <string.h>

#include "frontend/frontend.h"
#include "runtime/base/module.h"

#include "opjit_build_id.h"

opjit_status opjit_fe_codegen_check(const opjit_codegen *table, const char *path, opjit_error *error)
{
    if (table == NULL || table->abi != CODEGEN_ABI || table->size < sizeof *table)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{!codegen library}{!path}{%s}: has no codegen interface %u",
                               path, CODEGEN_ABI);
    if (strcmp(table->build_id, OPJIT_BUILD_ID) != 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                               "{!codegen library}{!path}{%s}: its build id is %.40s, must be %s", path,
                               table->build_id, OPJIT_BUILD_ID);
    return OPJIT_OK;
}

bool opjit_fe_has_codegen(void)
{
#ifdef OPJIT_NO_CODEGEN
    return false;
#else
    return true;
#endif
}

#ifdef OPJIT_STATIC_CODEGEN

opjit_status opjit_fe_codegen(rt_core *core, const opjit_codegen **out, opjit_error *error)
{
    *out = NULL;
    if ((core->flags & OPJIT_CONTEXT_OUT_OF_PROCESS) != 0)
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{!context_options}{!flags}{!OPJIT_CONTEXT_OUT_OF_PROCESS}code generation is linked into "
            "this opjit, so it can't run out of process");
    *out = opjit_codegen_query(CODEGEN_ABI);
    return opjit_fe_codegen_check(*out, "linked codegen", error);
}

#elif defined(OPJIT_NO_CODEGEN)

opjit_status opjit_fe_codegen(rt_core *core, const opjit_codegen **out, opjit_error *error)
{
    (void)core;
    *out = NULL;
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                           "{!codegen library}this opjit was built without code generation "
                           "({OPJIT_CODEGEN}={none}): interpreted kernels and those made elsewhere run");
}

#else

static void report_loaded(rt_core *core, const char *path, const char *llvm, double ms)
{
    const opjit_event event = {
        .kind = OPJIT_EVENT_LOAD, .subject = OPJIT_EVENT_CODEGEN, .name = path, .total_ms = ms
    };

    opjit_rt_event(core, &event, "load,codegen,%s,llvm=%s,ms=%.3f", path, llvm, ms);
}

#define PROCESS "libopjit-codegen-process.so"

/* Where the library that starts workers is: beside the code generator that was named. */
static const char *beside(const char *named, char path[static RT_MODULE_PATH])
{
    const char *const slash = named == NULL ? NULL : strrchr(named, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash + 1 - named);

    if (length == 0 || length + sizeof PROCESS > RT_MODULE_PATH)
        return named;
    memcpy(path, named, length);
    memcpy(path + length, PROCESS, sizeof PROCESS);
    return path;
}

opjit_status opjit_fe_codegen(rt_core *core, const opjit_codegen **out, opjit_error *error)
{
    static const rt_module modules[] = {
        { "codegen", "libopjit-codegen.so", "opjit_codegen_query", NULL,
          "name one in OPJIT_CODEGEN or the context's codegen_path" },
        { "codegen", PROCESS, "opjit_codegen_query", NULL, "it starts the workers of OPJIT_CONTEXT_OUT_OF_PROCESS" },
    };
    const bool outside = (core->flags & OPJIT_CONTEXT_OUT_OF_PROCESS) != 0;
    const double start = rt_milliseconds();
    char path[RT_MODULE_PATH], named[RT_MODULE_PATH];
    opjit_codegen_query_fn query;
    void *symbol;
    bool fresh;

    *out = NULL;
    TRY(opjit_rt_module_load(&modules[outside], outside ? beside(core->codegen_path, named) : core->codegen_path,
                             &symbol, &fresh, path, error));
    memcpy(&query, &symbol, sizeof query); /* C has no cast from object to function pointers */
    *out = query(CODEGEN_ABI);
    TRY(opjit_fe_codegen_check(*out, path, error));
    if (fresh)
        report_loaded(core, path, (*out)->llvm_version, rt_milliseconds() - start);
    return OPJIT_OK;
}

#endif

opjit_status opjit_context_warm(opjit_context *context, opjit_error *error)
{
    const opjit_codegen *codegen;

    opjit_rt_error_clear(error);
    if (context == NULL)
        return opjit_rt_refuse_null(error, "context");
    TRY(opjit_fe_codegen(context->core, &codegen, error));
    return codegen->warm(&context->target, &context->core->allocator, error);
}
