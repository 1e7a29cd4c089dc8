/* cg_query.c - the one exported function.  No LLVM here. */
#include "codegen/cg.h"

#include <opjit/opjit.h>

#include "opjit_build_id.h"

static opjit_status warm(const rt_target *target, const opjit_allocator *allocator, opjit_error *error)
{
    const cg_target *cpu = opjit_cg_target_find(target->arch);
    (void)allocator; /* LLVM's own memory does not go through it */
    if (!cpu)
        return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "this build makes no code for target %s", target->text);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
        LLVMTargetMachineRef machine;
        TRY(opjit_cg_machine(cpu, level, &machine, error));
    }
    return OPJIT_OK;
}

static const opjit_codegen table = {
    .abi = CODEGEN_ABI,
    .size = sizeof(opjit_codegen),
    .build_id = OPJIT_BUILD_ID,
    .llvm_version = OPJIT_LLVM_VERSION,
    .compile = opjit_cg_compile,
    .warm = warm,
};

const opjit_codegen *opjit_codegen_query(uint32_t abi) { return abi == CODEGEN_ABI ? &table : NULL; }
