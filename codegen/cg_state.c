/* SPDX-License-Identifier: Apache-2.0 */
/* cg_state.c - what LLVM keeps between compiles: the backends' registration, each at the first compile for it, and a
 * target machine a level for every thread (making one takes longer than compiling a small kernel).  Functions carry CPU
 * and features themselves, so one machine serves all targets of its backend, but where LLVM reads the machine's.
 * A thread's machines go with the thread. */
#include "codegen/cg.h"

#include <opjit/opjit.h>

#include <pthread.h>

enum { LEVELS = 2, CPUS = 8, MACHINES = LEVELS * CPUS * RT_ARCH_END }; /* CPUS: levels of a target, 0 for all */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER; /* LLVM's list of backends */
static pthread_mutex_t emission = PTHREAD_MUTEX_INITIALIZER; /* what a backend keeps for the process */
static pthread_key_t keys[MACHINES];                         /* written by the once guard */
static int key_errors;

static void dispose(void *machine)
{
    LLVMDisposeTargetMachine(machine);
}

static void initialise(void)
{
    for (uint32_t i = 0; i < MACHINES; i++)
        key_errors |= pthread_key_create(&keys[i], dispose);
}

/* AArch64 would select with GlobalISel at level none: a fifth faster than this, but it goes back to this for what
 * it can't do, and one way is enough to test. */
static LLVMTargetMachineRef make_machine(const cg_target *cpu, const rt_target *t, LLVMTargetRef target,
                                         LLVMCodeGenOptLevel level)
{
    LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
    const char *features = cpu->features ? cpu->features(t) : cpu->machine_features;
    LLVMTargetMachineOptionsSetCPU(options, cpu->features ? cpu->cpu(t) : cpu->machine_cpu);
    LLVMTargetMachineOptionsSetFeatures(options, features ? features : "");
    LLVMTargetMachineOptionsSetABI(options, cpu->abi ? cpu->abi : "");
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, level);
    LLVMTargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
    LLVMTargetMachineOptionsSetCodeModel(options, LLVMCodeModelSmall);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachineWithOptions(target, cpu->triple, options);
    LLVMDisposeTargetMachineOptions(options);
    if (machine && !cpu->fresh)
        LLVMSetTargetMachineGlobalISel(machine, 0);
    if (machine && !cpu->fresh)
        LLVMSetTargetMachineFastISel(machine, level == LLVMCodeGenLevelNone);
    return machine;
}

bool opjit_cg_emit_file(const cg_target *cpu, LLVMTargetMachineRef machine, LLVMModuleRef module, LLVMCodeGenFileType type,
                   char **text, LLVMMemoryBufferRef *out)
{
    if (cpu->fresh)
        pthread_mutex_lock(&emission);
    const bool failed = LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, text, out);
    if (cpu->fresh)
        pthread_mutex_unlock(&emission);
    return failed;
}

opjit_status opjit_cg_machine(const cg_target *cpu, const rt_target *t, uint32_t level, LLVMTargetMachineRef *out,
                              opjit_error *error)
{
    const LLVMCodeGenOptLevel levels[LEVELS] = { LLVMCodeGenLevelNone, LLVMCodeGenLevelDefault };
    const uint32_t peak = level == OPJIT_LEVEL_PEAK && !cpu->fresh, kind = cpu->features ? t->level % CPUS : 0;
    const uint32_t slot = LEVELS * (CPUS * (uint32_t)cpu->arch + kind) + peak;
    *out = NULL;
    if (pthread_once(&once, initialise) != 0 || key_errors != 0)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "no thread-specific data for code generation");
    LLVMTargetMachineRef machine = pthread_getspecific(keys[slot]);
    if (!machine) {
        pthread_mutex_lock(&registry);
        cpu->setup();
        LLVMTargetRef target = LLVMGetTargetFromName(cpu->name);
        pthread_mutex_unlock(&registry);
        if (!target)
            return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "LLVM was built without the backend %s", cpu->name);
        machine = make_machine(cpu, t, target, levels[peak]);
        if (!machine || (!cpu->fresh && pthread_setspecific(keys[slot], machine) != 0)) {
            if (machine)
                LLVMDisposeTargetMachine(machine);
            return opjit_rt_no_memory(error);
        }
    }
    *out = machine;
    return OPJIT_OK;
}
