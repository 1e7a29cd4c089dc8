/* SPDX-License-Identifier: Apache-2.0 */
/* tvm_ffi.c - a kernel as a function of TVM FFI, in an object beside the kernel's own:
 *     int __tvm_ffi_NAME(void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result)
 * checks that each argument is a tensor as the kernel takes it, inputs and then outputs, and calls NAME_packed.  A
 * wrong one is refused by TVMFFIErrorSetRaisedFromCStr with a constant message, and so is a CPU that lacks what the
 * kernel needs (x86-64).  That function, NAME_packed, NAME_runs_here and, for large workspaces, aligned_alloc and free
 * are what the object needs of others.  Offsets are those of DLTensor and TVMFFIAny on machines of 64 bits. */
#include "codegen/driver/driver.h"

#include <ctype.h>
#include <stdio.h>

enum { ANY_BYTES = 16, ANY_VALUE = 8, ANY_DLTENSOR = 7, ANY_TENSOR = 70, OBJECT_HEADER = 24 };
enum { DL_DEVICE = 8, DL_RANK = 16, DL_TYPE = 20, DL_SIZES = 24, DL_STRIDES = 32, DL_OFFSET = 40 };
enum { DEVICE_CPU = 1, DEVICE_PINNED = 3, CODE_BOOL = 6 };
enum { ON_STACK = 16384 }; /* bytes of a workspace; a larger one is allocated by the call */

typedef struct wrapper {
    cg_func *f;
    const char *name;
    LLVMValueRef raise, args;
    LLVMTypeRef raise_type;
    rt_bytes text; /* a message's */
} wrapper;

static LLVMValueRef number(const wrapper *w, uint32_t bits, uint64_t value)
{
    return opjit_cg_number(w->f, bits, 1, value);
}

static LLVMValueRef at(const wrapper *w, LLVMValueRef base, uint64_t bytes)
{
    return opjit_cg_offset(w->f, w->f->type.i8, base, number(w, 64, bytes));
}

static LLVMValueRef load(const wrapper *w, LLVMTypeRef type, LLVMValueRef base, uint64_t bytes)
{
    LLVMValueRef value = LLVMBuildLoad2(w->f->b, type, at(w, base, bytes), "");
    LLVMSetAlignment(value, 4); /* a tensor of somebody's */
    return value;
}

static LLVMValueRef differs(const wrapper *w, LLVMValueRef value, uint32_t bits, uint64_t wanted)
{
    return LLVMBuildICmp(w->f->b, LLVMIntNE, value, number(w, bits, wanted), "");
}

static LLVMBasicBlockRef block(const wrapper *w)
{
    return LLVMAppendBasicBlockInContext(w->f->llvm, w->f->fn, "");
}

/* Ends the function with the text as its error, where the condition holds. */
static void refuse_if(wrapper *w, LLVMValueRef condition, const char *kind)
{
    LLVMBasicBlockRef refused = block(w), next = block(w);
    LLVMBuildCondBr(w->f->b, condition, refused, next);
    LLVMPositionBuilderAtEnd(w->f->b, refused);
    opjit_rt_bytes_u8(&w->text, '\0');
    if (!w->text.failed) {
        LLVMValueRef args[2] = { LLVMBuildGlobalString(w->f->b, kind, ""),
                                 LLVMBuildGlobalString(w->f->b, (const char *)w->text.data, "") };
        LLVMBuildCall2(w->f->b, w->raise_type, w->raise, args, 2, "");
    }
    LLVMBuildRet(w->f->b, number(w, 32, UINT32_MAX));
    LLVMPositionBuilderAtEnd(w->f->b, next);
}

/* --- messages ----------------------------------------------------------------------------------------------------- */
static const opjit_buffer_info *buffer_at(const opjit_kernel_meta *m, uint32_t index)
{
    return (const opjit_buffer_info *)(const void *)((const char *)m + m->buffer_info) + index;
}

static void begin_text(wrapper *w)
{
    w->text.size = 0;
    opjit_rt_bytes_printf(&w->text, "%s: ", w->name);
}

static void put_numbers(wrapper *w, const uint64_t *numbers, uint32_t count)
{
    opjit_rt_bytes_printf(&w->text, "[");
    for (uint32_t i = 0; i < count; i++)
        opjit_rt_bytes_printf(&w->text, "%s%llu", i == 0 ? "" : ", ", (unsigned long long)numbers[i]);
    opjit_rt_bytes_printf(&w->text, "]");
}

static void begin_argument(wrapper *w, const opjit_kernel_meta *m, uint32_t index)
{
    const opjit_buffer_info *info = buffer_at(m, index);
    begin_text(w);
    opjit_rt_bytes_printf(&w->text, "argument %u", index);
    if (info->name != 0)
        opjit_rt_bytes_printf(&w->text, " (%s)", (const char *)m + info->name);
    opjit_rt_bytes_printf(&w->text, ": ");
}

/* "scale: argument 0 (x): float32 [4, 5] expected" */
static void put_tensor(wrapper *w, const opjit_kernel_meta *m, uint32_t index)
{
    const opjit_buffer_info *info = buffer_at(m, index);
    begin_argument(w, m, index);
    for (const char *c = opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)info->dtype); *c != '\0'; c++)
        opjit_rt_bytes_u8(&w->text, (uint8_t)tolower((unsigned char)*c));
    opjit_rt_bytes_u8(&w->text, ' ');
    put_numbers(w, info->sizes, info->rank);
    opjit_rt_bytes_printf(&w->text, " expected");
}

/* --- checks ------------------------------------------------------------------------------------------------------- */
/* DLDataType as it lies in memory: code, bits, lanes. */
static uint32_t type_word(uint32_t dtype)
{
    enum { INT = 0, UINT = 1, FLOAT = 2 };
    static const struct {
        uint8_t code, bits;
    } types[] = {
        [DML_TENSOR_DATA_TYPE_FLOAT32] = { FLOAT, 32 }, [DML_TENSOR_DATA_TYPE_FLOAT16] = { FLOAT, 16 },
        [DML_TENSOR_DATA_TYPE_FLOAT64] = { FLOAT, 64 }, [DML_TENSOR_DATA_TYPE_UINT32] = { UINT, 32 },
        [DML_TENSOR_DATA_TYPE_UINT16] = { UINT, 16 },   [DML_TENSOR_DATA_TYPE_UINT8] = { UINT, 8 },
        [DML_TENSOR_DATA_TYPE_UINT64] = { UINT, 64 },   [DML_TENSOR_DATA_TYPE_INT32] = { INT, 32 },
        [DML_TENSOR_DATA_TYPE_INT16] = { INT, 16 },     [DML_TENSOR_DATA_TYPE_INT8] = { INT, 8 },
        [DML_TENSOR_DATA_TYPE_INT64] = { INT, 64 },     [DML_TENSOR_DATA_TYPE_UINT4] = { UINT, 4 },
        [DML_TENSOR_DATA_TYPE_INT4] = { INT, 4 },
    };
    return types[dtype].code | (uint32_t)types[dtype].bits << 8 | 1u << 16;
}

/* The argument's DLTensor. */
static LLVMValueRef take_tensor(wrapper *w, const opjit_kernel_meta *m, uint32_t index)
{
    LLVMBuilderRef b = w->f->b;
    LLVMValueRef any = at(w, w->args, (uint64_t)index * ANY_BYTES);
    LLVMValueRef type = load(w, w->f->type.i32, any, 0), value = load(w, w->f->type.ptr, any, ANY_VALUE);
    LLVMValueRef is_none = LLVMBuildAnd(b, differs(w, type, 32, ANY_DLTENSOR), differs(w, type, 32, ANY_TENSOR), "");
    begin_argument(w, m, index);
    opjit_rt_bytes_printf(&w->text, "a tensor expected");
    refuse_if(w, is_none, "TypeError");
    LLVMValueRef is_view = LLVMBuildICmp(b, LLVMIntEQ, type, number(w, 32, ANY_DLTENSOR), "");
    return LLVMBuildSelect(b, is_view, value, at(w, value, OBJECT_HEADER), "");
}

static void check_device(wrapper *w, const opjit_kernel_meta *m, uint32_t index, LLVMValueRef tensor)
{
    LLVMValueRef device = load(w, w->f->type.i32, tensor, DL_DEVICE);
    LLVMValueRef is_other =
        LLVMBuildAnd(w->f->b, differs(w, device, 32, DEVICE_CPU), differs(w, device, 32, DEVICE_PINNED), "");
    begin_argument(w, m, index);
    opjit_rt_bytes_printf(&w->text, "one in this machine's memory expected");
    refuse_if(w, is_other, "ValueError");
}

static void check_type(wrapper *w, const opjit_kernel_meta *m, uint32_t index, LLVMValueRef tensor)
{
    const opjit_buffer_info *info = buffer_at(m, index);
    LLVMValueRef type = load(w, w->f->type.i32, tensor, DL_TYPE), is_other;
    is_other = differs(w, type, 32, type_word(info->dtype));
    if (info->dtype == DML_TENSOR_DATA_TYPE_UINT8 && index < m->inputs)
        is_other = LLVMBuildAnd(w->f->b, is_other, differs(w, type, 32, CODE_BOOL | 8u << 8 | 1u << 16), "");
    put_tensor(w, m, index);
    refuse_if(w, is_other, "TypeError");
}

static void check_sizes(wrapper *w, const opjit_kernel_meta *m, uint32_t index, LLVMValueRef tensor)
{
    const opjit_buffer_info *info = buffer_at(m, index);
    put_tensor(w, m, index);
    refuse_if(w, differs(w, load(w, w->f->type.i32, tensor, DL_RANK), 32, info->rank), "ValueError");
    LLVMValueRef sizes = load(w, w->f->type.ptr, tensor, DL_SIZES), is_other = number(w, 1, 0);
    for (uint32_t d = 0; d < info->rank; d++)
        is_other =
            LLVMBuildOr(w->f->b, is_other, differs(w, load(w, w->f->type.i64, sizes, 8 * d), 64, info->sizes[d]), "");
    put_tensor(w, m, index);
    refuse_if(w, is_other, "ValueError");
}

static bool is_packed(const opjit_buffer_info *info)
{
    uint64_t packed = 1;
    for (uint32_t d = info->rank; d-- > 0; packed *= info->sizes[d])
        if (info->sizes[d] != 1 && info->strides[d] != packed)
            return false;
    return true;
}

/* NULL stands for a packed tensor; strides of sizes of 1 are not looked at. */
static void check_strides(wrapper *w, const opjit_kernel_meta *m, uint32_t index, LLVMValueRef tensor)
{
    const opjit_buffer_info *info = buffer_at(m, index);
    LLVMBuilderRef b = w->f->b;
    LLVMBasicBlockRef some = block(w), all = block(w), from = LLVMGetInsertBlock(b);
    LLVMValueRef strides = load(w, w->f->type.ptr, tensor, DL_STRIDES), is_other = number(w, 1, 0);
    LLVMBuildCondBr(b, LLVMBuildIsNull(b, strides, ""), all, some);
    LLVMPositionBuilderAtEnd(b, some);
    for (uint32_t d = 0; d < info->rank; d++)
        if (info->sizes[d] != 1)
            is_other =
                LLVMBuildOr(b, is_other, differs(w, load(w, w->f->type.i64, strides, 8 * d), 64, info->strides[d]), "");
    LLVMBuildBr(b, all);
    LLVMPositionBuilderAtEnd(b, all);
    LLVMValueRef values[2] = { number(w, 1, !is_packed(info)), is_other };
    LLVMBasicBlockRef blocks[2] = { from, some };
    LLVMValueRef wrong = LLVMBuildPhi(b, LLVMTypeOf(values[0]), "");
    LLVMAddIncoming(wrong, values, blocks, 2);
    begin_argument(w, m, index);
    opjit_rt_bytes_printf(&w->text, "strides ");
    put_numbers(w, info->strides, info->rank);
    opjit_rt_bytes_printf(&w->text, " expected");
    refuse_if(w, wrong, "ValueError");
}

/* Where the elements are. */
static LLVMValueRef take_memory(wrapper *w, const opjit_kernel_meta *m, uint32_t index, LLVMValueRef tensor)
{
    const opjit_buffer_info *info = buffer_at(m, index);
    LLVMBuilderRef b = w->f->b;
    LLVMValueRef data = load(w, w->f->type.ptr, tensor, 0);
    LLVMValueRef here = opjit_cg_offset(w->f, w->f->type.i8, data, load(w, w->f->type.i64, tensor, DL_OFFSET));
    LLVMValueRef low =
        LLVMBuildAnd(b, LLVMBuildPtrToInt(b, here, w->f->type.i64, ""), number(w, 64, info->align - 1), "");
    begin_argument(w, m, index);
    opjit_rt_bytes_printf(&w->text, "memory at a multiple of %u expected", info->align);
    refuse_if(w, LLVMBuildOr(b, LLVMBuildIsNull(b, data, ""), differs(w, low, 64, 0), ""), "ValueError");
    return here;
}

/* --- the function ------------------------------------------------------------------------------------------------- */
static LLVMValueRef declare(const wrapper *w, const char *name, LLVMTypeRef type)
{
    return LLVMAddFunction(w->f->module, name, type);
}

static uint64_t workspace_of(const codegen_kernel *k)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < k->version_count; i++) {
        const uint64_t needed = k->versions[i].meta->shared_size + k->versions[i].meta->scratch_size;
        most = needed > most ? needed : most;
    }
    return align_up(most, 64);
}

/* Calls the kernel; a large workspace comes from the C library. */
static void call_packed(wrapper *w, LLVMValueRef buffers, uint64_t workspace)
{
    cg_func *f = w->f;
    LLVMTypeRef types[3] = { f->type.ptr, f->type.ptr, f->type.ptr }, sizes[2] = { f->type.i64, f->type.i64 };
    LLVMTypeRef packed_type = LLVMFunctionType(f->type.none, types, 3, 0);
    LLVMValueRef none = LLVMConstNull(f->type.ptr), memory = none;
    char name[128];
    if (workspace > ON_STACK) {
        LLVMTypeRef type = LLVMFunctionType(f->type.ptr, sizes, 2, 0);
        LLVMValueRef args[2] = { number(w, 64, 64), number(w, 64, workspace) };
        memory = LLVMBuildCall2(f->b, type, declare(w, "aligned_alloc", type), args, 2, "");
        begin_text(w);
        opjit_rt_bytes_printf(&w->text, "no memory for a workspace of %llu bytes", (unsigned long long)workspace);
        refuse_if(w, LLVMBuildIsNull(f->b, memory, ""), "MemoryError");
    } else if (workspace != 0) {
        memory = LLVMBuildAlloca(f->b, LLVMArrayType2(f->type.i8, workspace), "");
        LLVMSetAlignment(memory, 64);
    }
    snprintf(name, sizeof(name), "%s_packed", w->name);
    LLVMValueRef args[3] = { buffers, none, memory };
    LLVMBuildCall2(f->b, packed_type, declare(w, name, packed_type), args, 3, "");
    if (workspace > ON_STACK) {
        LLVMTypeRef type = LLVMFunctionType(f->type.none, types, 1, 0);
        LLVMBuildCall2(f->b, type, declare(w, "free", type), &memory, 1, "");
    }
}

/* Refuses where no version of the kernel runs.  What was found is kept, as cpuid takes microseconds in a virtual
 * machine; threads that ask at once find the same. */
static void check_cpu(wrapper *w)
{
    cg_func *f = w->f;
    LLVMTypeRef type = LLVMFunctionType(f->type.i32, NULL, 0, 0);
    LLVMBasicBlockRef ask = block(w), next = block(w);
    LLVMValueRef known = LLVMAddGlobal(f->module, f->type.i8, ".runs_here");
    char name[128];
    LLVMSetLinkage(known, LLVMInternalLinkage);
    LLVMSetInitializer(known, number(w, 8, 0));
    LLVMValueRef runs = LLVMBuildLoad2(f->b, f->type.i8, known, "");
    LLVMSetOrdering(runs, LLVMAtomicOrderingMonotonic);
    LLVMBuildCondBr(f->b, differs(w, runs, 8, 0), next, ask);
    LLVMPositionBuilderAtEnd(f->b, ask);
    snprintf(name, sizeof(name), "%s_runs_here", w->name);
    runs = LLVMBuildCall2(f->b, type, declare(w, name, type), NULL, 0, "");
    begin_text(w);
    opjit_rt_bytes_printf(&w->text, "this CPU lacks features of the target that it was compiled for");
    refuse_if(w, LLVMBuildNot(f->b, differs(w, runs, 32, 0), ""), "RuntimeError");
    LLVMSetOrdering(LLVMBuildStore(f->b, number(w, 8, 1), known), LLVMAtomicOrderingMonotonic);
    LLVMBuildBr(f->b, next);
    LLVMPositionBuilderAtEnd(f->b, next);
}

static void emit(wrapper *w, const codegen_kernel *k)
{
    const opjit_kernel_meta *m = k->versions[0].meta;
    const uint32_t count = m->inputs + m->outputs;
    cg_func *f = w->f;
    LLVMValueRef params[4];
    LLVMGetParams(f->fn, params);
    w->args = params[1];
    LLVMValueRef buffers = LLVMBuildAlloca(f->b, LLVMArrayType2(f->type.ptr, count), "");
    begin_text(w);
    opjit_rt_bytes_printf(&w->text, "%u inputs and %u outputs expected", m->inputs, m->outputs);
    refuse_if(w, differs(w, params[2], 32, count), "TypeError");
    for (uint32_t i = 0; i < count; i++) {
        LLVMValueRef tensor = take_tensor(w, m, i);
        check_device(w, m, i, tensor);
        check_type(w, m, i, tensor);
        check_sizes(w, m, i, tensor);
        check_strides(w, m, i, tensor);
        LLVMBuildStore(f->b, take_memory(w, m, i, tensor), at(w, buffers, 8 * (uint64_t)i));
    }
    if (k->versions[0].target->arch == RT_ARCH_X86_64) /* others can't be asked */
        check_cpu(w);
    call_packed(w, buffers, workspace_of(k));
    LLVMBuildStore(f->b, number(w, 64, 0), params[3]); /* None */
    LLVMBuildStore(f->b, number(w, 64, 0), at(w, params[3], ANY_VALUE));
    LLVMBuildRet(f->b, number(w, 32, 0));
}

opjit_status opjit_cg_tvm_ffi(cg_func *f, const codegen_kernel *kernel, const char *name)
{
    rt_target first = *kernel->versions[0].target;
    LLVMTypeRef types[4] = { f->type.ptr, f->type.ptr, f->type.i32, f->type.ptr };
    wrapper w = { .f = f, .name = name };
    char symbol[128];
    opjit_cg_base_features(&first);
    f->target = &first;
    opjit_rt_bytes_init(&w.text, f->arena->allocator);
    w.raise_type = LLVMFunctionType(f->type.none, types, 2, 0);
    w.raise = declare(&w, "TVMFFIErrorSetRaisedFromCStr", w.raise_type);
    snprintf(symbol, sizeof(symbol), "__tvm_ffi_%s", name);
    f->fn = declare(&w, symbol, LLVMFunctionType(f->type.i32, types, 4, 0));
    opjit_cg_attributes(f, f->fn);
    LLVMPositionBuilderAtEnd(f->b, block(&w));
    emit(&w, kernel);
    const bool failed = w.text.failed;
    opjit_rt_bytes_free(&w.text);
    f->target = kernel->versions[0].target;
    return failed ? opjit_rt_no_memory(f->error) : OPJIT_OK;
}
