/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_state.c - what LLVM keeps between compiles: the backends' registration, each at the first compile for it, and
 * one target machine per level and thread (making one takes longer than compiling a small kernel).  Functions carry CPU
 * and features themselves, so one machine serves all targets of its backend, except where LLVM reads them from the
 * machine.  A thread's machines are freed with the thread, for which codegen takes one of the process's few keys. */
#include "codegen/driver/driver.h"

#include <opjit/opjit.h>

#include <pthread.h>
#include <string.h>

enum { MOST_KEPT = 32 /* machines per thread: more than there are CPUs whose names LLVM reads from a machine */ };

typedef struct kept {
    const cg_target *cpu;
    const char *name, *features; /* in LLVM's spelling */
    LLVMCodeGenOptLevel level;
    LLVMTargetMachineRef machine; /* NULL: none */
} kept;

typedef struct thread_state {
    kept machines[MOST_KEPT];
    uint32_t next; /* where the next one goes: the oldest one's place */
    uint32_t last; /* the one that was asked for last */
    bool disposes; /* at the thread's end */
} thread_state;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER; /* LLVM's list of backends */
static pthread_mutex_t emission = PTHREAD_MUTEX_INITIALIZER; /* what a backend keeps for the process */
static pthread_key_t key;                                    /* written by the once guard */
static int key_error;
static _Thread_local thread_state thread;

static void dispose_all(void *user)
{
    thread_state *state = user;
    for (uint32_t i = 0; i < MOST_KEPT; i++)
        if (state->machines[i].machine)
            LLVMDisposeTargetMachine(state->machines[i].machine);
    *state = (thread_state){ .next = 0 };
}

static void initialise(void)
{
    key_error = pthread_key_create(&key, dispose_all);
}

/* At level none AArch64 would select with GlobalISel.  It is faster, but falls back to this for what it can't do, and
 * one path is enough to test. */
static LLVMTargetMachineRef make_machine(const kept *k, LLVMTargetRef target)
{
    const cg_target *cpu = k->cpu;
    LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(options, k->name);
    LLVMTargetMachineOptionsSetFeatures(options, k->features);
    LLVMTargetMachineOptionsSetABI(options, cpu->abi ? cpu->abi : "");
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, k->level);
    LLVMTargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
    LLVMTargetMachineOptionsSetCodeModel(options, LLVMCodeModelSmall);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachineWithOptions(target, cpu->triple, options);
    LLVMDisposeTargetMachineOptions(options);
    if (machine && !cpu->fresh)
        LLVMSetTargetMachineGlobalISel(machine, 0);
    if (machine && !cpu->fresh)
        LLVMSetTargetMachineFastISel(machine, k->level == LLVMCodeGenLevelNone);
    return machine;
}

bool opjit_cg_emit_file(const cg_target *cpu, LLVMTargetMachineRef machine, LLVMModuleRef module,
                        LLVMCodeGenFileType type, char **text, LLVMMemoryBufferRef *out)
{
    if (cpu->fresh)
        pthread_mutex_lock(&emission);
    const bool failed = LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, text, out);
    if (cpu->fresh)
        pthread_mutex_unlock(&emission);
    return failed;
}

/* Finds a kept machine like *wanted; NULL: there is none. */
static LLVMTargetMachineRef find_kept(const kept *wanted)
{
    for (uint32_t i = 0; i < MOST_KEPT; i++) {
        const kept *k = &thread.machines[i];
        if (k->machine && k->cpu == wanted->cpu && k->level == wanted->level && strcmp(k->name, wanted->name) == 0 &&
            strcmp(k->features, wanted->features) == 0) {
            thread.last = i;
            return k->machine;
        }
    }
    return NULL;
}

/* Replaces the oldest one that is not in use: a thread makes one module at a time, and in it modules of tiles, so that
 * may be the one that was asked for last. */
static bool keep(const kept *k)
{
    if (thread.next == thread.last)
        thread.next = (thread.next + 1) % MOST_KEPT;
    kept *place = &thread.machines[thread.next];
    if (!thread.disposes && pthread_setspecific(key, &thread) != 0)
        return false;
    thread.disposes = true;
    thread.last = thread.next;
    thread.next = (thread.next + 1) % MOST_KEPT;
    if (place->machine)
        LLVMDisposeTargetMachine(place->machine);
    *place = *k;
    return true;
}

opjit_status opjit_cg_machine(const cg_target *cpu, const rt_target *t, uint32_t level, LLVMTargetMachineRef *out,
                              opjit_error *error)
{
    static const LLVMCodeGenOptLevel levels[] = { [OPJIT_LEVEL_QUICK] = LLVMCodeGenLevelNone,
                                                  [OPJIT_LEVEL_PEAK] = LLVMCodeGenLevelDefault,
                                                  [CG_LEVEL_TILE] = LLVMCodeGenLevelLess };
    const char *features = cpu->features ? cpu->features(t) : cpu->machine_features;
    kept k = { .cpu = cpu,
               .name = cpu->features ? cpu->cpu(t) : cpu->machine_cpu,
               .features = features ? features : "",
               .level = cpu->fresh ? LLVMCodeGenLevelNone : levels[level] };
    *out = NULL;
    if (pthread_once(&once, initialise) != 0 || key_error != 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                               "{!codegen}{!thread}no thread-specific data for code generation");
    k.machine = find_kept(&k);
    if (!k.machine) {
        pthread_mutex_lock(&registry);
        cpu->setup();
        LLVMTargetRef target = LLVMGetTargetFromName(cpu->name);
        pthread_mutex_unlock(&registry);
        if (!target)
            return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{LLVM} was built without the {backend} {%s}", cpu->name);
        k.machine = make_machine(&k, target);
        if (!k.machine || (!cpu->fresh && !keep(&k))) {
            if (k.machine)
                LLVMDisposeTargetMachine(k.machine);
            return opjit_rt_no_memory(error);
        }
    }
    *out = k.machine;
    return OPJIT_OK;
}
