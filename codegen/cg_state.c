/* cg_state.c - what LLVM keeps between compiles: the backend's registration, once a process, and a target machine a
 * level for every thread (making one takes longer than compiling a small kernel).  Functions carry CPU and features
 * themselves, so one machine serves all targets of its backend.  A thread's machines go with the thread. */
#include "codegen/cg.h"

#include <opjit/opjit.h>

#include <pthread.h>

enum { LEVELS = 2 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t keys[LEVELS]; /* written by the once guard */
static int key_errors;

static void dispose(void *machine)
{
    LLVMDisposeTargetMachine(machine);
}

static void initialise(void)
{
    opjit_cg_target_x86.setup();
    for (uint32_t i = 0; i < LEVELS; i++)
        key_errors |= pthread_key_create(&keys[i], dispose);
}

opjit_status opjit_cg_machine(const cg_target *cpu, uint32_t level, LLVMTargetMachineRef *out, opjit_error *error)
{
    const LLVMCodeGenOptLevel levels[LEVELS] = { LLVMCodeGenLevelNone, LLVMCodeGenLevelDefault };
    const uint32_t slot = level == OPJIT_LEVEL_PEAK;
    *out = NULL;
    if (pthread_once(&once, initialise) != 0 || key_errors != 0)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "no thread-specific data for code generation");
    LLVMTargetMachineRef machine = pthread_getspecific(keys[slot]);
    if (!machine) {
        LLVMTargetRef target = LLVMGetTargetFromName(cpu->name);
        if (!target)
            return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "LLVM was built without the backend %s", cpu->name);
        machine =
            LLVMCreateTargetMachine(target, cpu->triple, cpu->name, "", levels[slot], LLVMRelocPIC, LLVMCodeModelSmall);
        if (!machine || pthread_setspecific(keys[slot], machine) != 0) {
            if (machine)
                LLVMDisposeTargetMachine(machine);
            return opjit_rt_no_memory(error);
        }
    }
    *out = machine;
    return OPJIT_OK;
}
