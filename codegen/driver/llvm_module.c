/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_module.c - one module of LLVM's with what belongs to it, from its context to its object. */
#include "codegen/driver/driver.h"

#include <llvm-c/Target.h>

/* Without a handler LLVM would end the process on an error. */
static void diagnose(LLVMDiagnosticInfoRef info, void *user)
{
    cg_llvm *m = user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || m->diagnostic.status != OPJIT_OK)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    opjit_rt_refuse(&m->diagnostic, OPJIT_CODEGEN, "{LLVM}: %s", text);
    LLVMDisposeMessage(text);
}

opjit_status opjit_cg_check_cancelled(const codegen_request *request, opjit_error *error)
{
    return request->cancel == NULL || !atomic_load_explicit(request->cancel, memory_order_relaxed)
               ? OPJIT_OK
               : opjit_rt_cancelled(error);
}

opjit_status opjit_cg_llvm_status(cg_llvm *m, bool failed, const char *what, char *text, opjit_error *error)
{
    opjit_status status = OPJIT_OK;
    if (failed)
        status = opjit_rt_refuse(error, OPJIT_CODEGEN, "{!LLVM}{%s}: %s", what, text ? text : "no reason given");
    else if (m->diagnostic.status != OPJIT_OK)
        status = opjit_rt_refuse(error, OPJIT_CODEGEN, "{!LLVM}{%s}: %s", what, m->diagnostic.message);
    LLVMDisposeMessage(text);
    return status;
}

opjit_status opjit_cg_llvm_open(cg_llvm *m, const cg_target *cpu, const rt_target *target, uint32_t level,
                                const char *name, opjit_error *error)
{
    m->cpu = cpu;
    m->target = target;
    m->level = level;
    if (!cpu->layout)
        TRY(opjit_cg_llvm_machine(m, error));
    m->context = LLVMContextCreate();
    LLVMContextSetDiscardValueNames(m->context, 1);
    LLVMContextSetDiagnosticHandler(m->context, diagnose, m);
    m->module = LLVMModuleCreateWithNameInContext(name, m->context);
    LLVMSetTarget(m->module, cpu->triple);
    if (cpu->layout) {
        LLVMSetDataLayout(m->module, cpu->layout);
    } else {
        LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(m->machine);
        LLVMSetModuleDataLayout(m->module, layout);
        LLVMDisposeTargetData(layout);
    }
    m->b = LLVMCreateBuilderInContext(m->context);
    m->entry = LLVMCreateBuilderInContext(m->context);
    return OPJIT_OK;
}

opjit_status opjit_cg_llvm_machine(cg_llvm *m, opjit_error *error)
{
    return m->machine ? OPJIT_OK : opjit_cg_machine(m->cpu, m->target, m->level, &m->machine, error);
}

void opjit_cg_llvm_close(cg_llvm *m)
{
    if (m->object)
        LLVMDisposeMemoryBuffer(m->object);
    if (m->b)
        LLVMDisposeBuilder(m->b);
    if (m->entry)
        LLVMDisposeBuilder(m->entry);
    if (m->module)
        LLVMDisposeModule(m->module);
    if (m->context)
        LLVMContextDispose(m->context);
    if (m->machine && m->cpu->fresh)
        LLVMDisposeTargetMachine(m->machine);
}

cg_func opjit_cg_llvm_function(const cg_llvm *m, const cg_target *cpu, const rt_target *target)
{
    cg_func f = { .target = target, .cpu = cpu, .llvm = m->context, .module = m->module, .b = m->b, .entry = m->entry };
    f.type.i1 = LLVMInt1TypeInContext(m->context);
    f.type.i8 = LLVMInt8TypeInContext(m->context);
    f.type.i16 = LLVMInt16TypeInContext(m->context);
    f.type.i32 = LLVMInt32TypeInContext(m->context);
    f.type.i64 = LLVMInt64TypeInContext(m->context);
    f.type.f16 = LLVMHalfTypeInContext(m->context);
    f.type.f32 = LLVMFloatTypeInContext(m->context);
    f.type.f64 = LLVMDoubleTypeInContext(m->context);
    f.type.ptr = LLVMPointerTypeInContext(m->context, cpu->grid ? cpu->grid->global : 0);
    f.type.none = LLVMVoidTypeInContext(m->context);
    return f;
}

opjit_status opjit_cg_llvm_emit(cg_llvm *m, LLVMCodeGenFileType type, opjit_error *error)
{
    char *text = NULL;
    TRY(opjit_cg_llvm_machine(m, error));
    const bool failed = opjit_cg_emit_file(m->cpu, m->machine, m->module, type, &text, &m->object);
    return opjit_cg_llvm_status(m, failed, "LLVM's code generation", text, error);
}
