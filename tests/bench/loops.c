/* SPDX-License-Identifier: Apache-2.0 */
/* loops.c - see loops.h. */
#include "tests/bench/loops.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <stdio.h>
#include <string.h>

#include "frontend/cli/measure/measure.h"

static struct {
    LLVMTargetMachineRef none, standard;   /* by code generation level */
    LLVMTargetMachineRef gpus[LOOPS_GPUS]; /* at level none */
    LLVMOrcLLJITRef jit;
    unsigned count; /* functions made, for their names */
} state;

static const struct gpu {
    const char *triple, *cpu, *features;
    LLVMCodeGenFileType file;
    unsigned convention; /* of a kernel */
} gpus[LOOPS_GPUS] = {
    [LOOPS_PTX] = { "nvptx64-nvidia-cuda", "sm_90", "+ptx80", LLVMAssemblyFile, 71 },
    [LOOPS_CODE_OBJECT] = { "amdgcn-amd-amdhsa", "gfx942", "", LLVMObjectFile, 91 },
};

static bool complain(const char *what, char *message)
{
    fprintf(stderr, "%s: %s\n", what, message);
    return false;
}

static bool failed(const char *what, LLVMErrorRef error)
{
    char *message;

    if (error == NULL)
        return false;
    message = LLVMGetErrorMessage(error);
    complain(what, message);
    LLVMDisposeErrorMessage(message);
    return true;
}

static bool make_gpu(const struct gpu *g, LLVMTargetMachineRef *out)
{
    char *message = NULL;
    LLVMTargetRef target;

    if (LLVMGetTargetFromTriple(g->triple, &target, &message) != 0) {
        complain(g->triple, message);
        LLVMDisposeMessage(message);
        return false;
    }
    *out = LLVMCreateTargetMachine(target, g->triple, g->cpu, g->features, LLVMCodeGenLevelNone, LLVMRelocPIC,
                                   LLVMCodeModelDefault);
    return true;
}

bool loops_start(void)
{
    char *const triple = LLVMGetDefaultTargetTriple(), *const cpu = LLVMGetHostCPUName();
    char *const features = LLVMGetHostCPUFeatures(), *message = NULL;
    LLVMOrcDefinitionGeneratorRef process;
    LLVMTargetRef target;
    bool good;

    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    good = LLVMGetTargetFromTriple(triple, &target, &message) == 0 || complain(triple, message);
    if (good) {
        state.none = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelNone, LLVMRelocPIC,
                                             LLVMCodeModelDefault);
        state.standard = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                                 LLVMCodeModelDefault);
        good = !failed("LLJIT", LLVMOrcCreateLLJIT(&state.jit, NULL)) &&
               !failed("symbols of the process", LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                                                     &process, LLVMOrcLLJITGetGlobalPrefix(state.jit), NULL, NULL));
        if (good) /* for memset, which loops become */
            LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(state.jit), process);
    }
    for (int i = 0; i < LOOPS_GPUS && good; i++)
        good = make_gpu(&gpus[i], &state.gpus[i]);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    LLVMDisposeMessage(message);
    return good;
}

void loops_stop(void)
{
    failed("LLJIT", LLVMOrcDisposeLLJIT(state.jit));
    LLVMDisposeTargetMachine(state.none);
    LLVMDisposeTargetMachine(state.standard);
    for (int i = 0; i < LOOPS_GPUS; i++)
        LLVMDisposeTargetMachine(state.gpus[i]);
}

static void emit_empty(LLVMTargetMachineRef machine, LLVMCodeGenFileType file, unsigned convention)
{
    const LLVMContextRef context = LLVMContextCreate();
    const LLVMModuleRef module = LLVMModuleCreateWithNameInContext("empty", context);
    const LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
    const LLVMValueRef function = LLVMAddFunction(module, "empty", type);
    const LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMMemoryBufferRef object = NULL;
    char *message = NULL;

    LLVMSetFunctionCallConv(function, convention);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
    LLVMBuildRetVoid(builder);
    LLVMDisposeBuilder(builder);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, file, &message, &object) != 0)
        complain("empty function", message);
    else
        LLVMDisposeMemoryBuffer(object);
    LLVMDisposeMessage(message);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}

void loops_emit_empty(void *unused)
{
    (void)unused;
    emit_empty(state.none, LLVMObjectFile, 0);
}

void loops_emit_empty_kernel(void *gpu)
{
    const loops_gpu which = *(const loops_gpu *)gpu;
    emit_empty(state.gpus[which], gpus[which].file, gpus[which].convention);
}

/* --- loops -------------------------------------------------------------------------------------------------------- */
/* What makes %v out of row %i, column %j and the element's index %at. */
static const char *const bodies[LOOPS_KINDS] = {
    [LOOPS_CONSTANT] = "  %v = select i1 true, float 3.0, float 3.0\n",
    [LOOPS_SEQUENCE] = "  %n = trunc i64 %at to i32\n  %e = sitofp i32 %n to float\n"
                       "  %v = call float @llvm.fma.f32(float %e, float 2.0, float 3.0)\n",
    [LOOPS_EYE] = "  %d = add i64 %i, 1\n  %c = icmp eq i64 %j, %d\n  %v = select i1 %c, float 1.0, float 0.0\n",
    [LOOPS_TRIANGLE] = "  %q = getelementptr inbounds float, ptr %in, i64 %at\n  %x = load float, ptr %q, align 4\n"
                       "  %c = icmp sgt i64 %j, %i\n  %v = select i1 %c, float 0.0, float %x\n",
};

static int write_text(char *text, size_t size, const char *name, loops_kind kind, uint32_t rows, uint32_t columns)
{
    return snprintf(text, size,
                    "declare float @llvm.fma.f32(float, float, float)\n"
                    "define void @%s(ptr noalias %%out, ptr noalias readonly %%in) {\n"
                    "entry:\n  br label %%row\n"
                    "row:\n  %%i = phi i64 [ 0, %%entry ], [ %%i1, %%next ]\n"
                    "  %%base = mul nuw nsw i64 %%i, %u\n  br label %%col\n"
                    "col:\n  %%j = phi i64 [ 0, %%row ], [ %%j1, %%col ]\n  %%at = add nuw nsw i64 %%base, %%j\n%s"
                    "  %%p = getelementptr inbounds float, ptr %%out, i64 %%at\n  store float %%v, ptr %%p, align 4\n"
                    "  %%j1 = add nuw nsw i64 %%j, 1\n  %%jd = icmp eq i64 %%j1, %u\n"
                    "  br i1 %%jd, label %%next, label %%col\n"
                    "next:\n  %%i1 = add nuw nsw i64 %%i, 1\n  %%id = icmp eq i64 %%i1, %u\n"
                    "  br i1 %%id, label %%done, label %%row\n"
                    "done:\n  ret void\n}\n",
                    name, (unsigned)columns, bodies[kind], (unsigned)columns, (unsigned)rows);
}

/* Text to object code; NULL: LLVM refused. */
static LLVMMemoryBufferRef emit(const char *text, size_t length)
{
    const LLVMContextRef context = LLVMContextCreate();
    const LLVMMemoryBufferRef input =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, length, "loops"); /* parsing takes it over */
    const LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMMemoryBufferRef object = NULL;
    LLVMModuleRef module = NULL;
    char *message = NULL;

    if (LLVMParseIRInContext(context, input, &module, &message) != 0) {
        complain("loops", message);
    } else {
        char *const triple = LLVMGetTargetMachineTriple(state.standard);
        const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(state.standard);

        LLVMSetTarget(module, triple);
        LLVMSetModuleDataLayout(module, layout);
        LLVMDisposeMessage(triple);
        LLVMDisposeTargetData(layout);
        if (!failed("default<O2>", LLVMRunPasses(module, "default<O2>", state.standard, options)) &&
            LLVMTargetMachineEmitToMemoryBuffer(state.standard, module, LLVMObjectFile, &message, &object) != 0)
            complain("loops", message);
        LLVMDisposeModule(module);
    }
    LLVMDisposeMessage(message);
    LLVMDisposePassBuilderOptions(options);
    LLVMContextDispose(context);
    return object;
}

loops_fn loops_compile(loops_kind kind, uint32_t rows, uint32_t columns, double *out_ms)
{
    char name[32], text[2048];
    LLVMOrcExecutorAddress address;
    LLVMMemoryBufferRef object;
    double start;
    int length;

    snprintf(name, sizeof name, "loops_%u", state.count++);
    length = write_text(text, sizeof text, name, kind, rows, columns);
    start = measure_now_ns();
    object = emit(text, (size_t)length);
    *out_ms = (measure_now_ns() - start) / 1e6;
    if (object == NULL ||
        failed("loops", LLVMOrcLLJITAddObjectFile(state.jit, LLVMOrcLLJITGetMainJITDylib(state.jit), object)) ||
        failed("loops", LLVMOrcLLJITLookup(state.jit, &address, name)))
        return NULL;
    return (loops_fn)(uintptr_t)address;
}
