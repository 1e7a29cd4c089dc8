/* SPDX-License-Identifier: Apache-2.0 */
/* ffi.c - what is typed and only known at run time: closures, typed calls, custom operators.  The only file that
 * knows libffi; without OPJIT_HAVE_FFI its functions say UNAVAILABLE. */
#define _GNU_SOURCE
#include <opjit/ffi.h>
#include <opjit/opjit.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/base/base.h"
#include "runtime/call/custom.h"

#if defined(OPJIT_HAVE_FFI)
#include <ffi.h>

#include "runtime/call/kernel_object.h" /* for the allocator that the kernel was made with */

enum { MOST_ARGUMENTS = 64 }; /* of a closure or typed call: they stand on the stack of each call */

struct opjit_closure {
    opjit_kernel *kernel;
    ffi_closure *ffi;
    ffi_cif cif;
    ffi_type *types[MOST_ARGUMENTS];
    uint64_t bytes[MOST_ARGUMENTS];  /* of each binding */
    uint32_t dtypes[MOST_ARGUMENTS]; /* of each parameter */
    uint32_t bindings, params;
    atomic_ullong failures;
    rt_lock lock; /* last */
    opjit_error last;
};

/* The C type that stands for an element type; NULL for those without one. */
static ffi_type *type_of(DML_TENSOR_DATA_TYPE type)
{
    switch (type) {
    case DML_TENSOR_DATA_TYPE_UNKNOWN: return &ffi_type_pointer;
    case DML_TENSOR_DATA_TYPE_FLOAT64: return &ffi_type_double;
    case DML_TENSOR_DATA_TYPE_FLOAT32: return &ffi_type_float;
    case DML_TENSOR_DATA_TYPE_FLOAT16: /* as its bits */
    case DML_TENSOR_DATA_TYPE_UINT16: return &ffi_type_uint16;
    case DML_TENSOR_DATA_TYPE_UINT64: return &ffi_type_uint64;
    case DML_TENSOR_DATA_TYPE_UINT32: return &ffi_type_uint32;
    case DML_TENSOR_DATA_TYPE_UINT8: return &ffi_type_uint8;
    case DML_TENSOR_DATA_TYPE_INT64: return &ffi_type_sint64;
    case DML_TENSOR_DATA_TYPE_INT32: return &ffi_type_sint32;
    case DML_TENSOR_DATA_TYPE_INT16: return &ffi_type_sint16;
    case DML_TENSOR_DATA_TYPE_INT8: return &ffi_type_sint8;
    default: return NULL;
    }
}

/* A parameter's 8-byte slot from the C argument at value: integers extended by their sign, the rest by zeros. */
static uint64_t slot_of(DML_TENSOR_DATA_TYPE type, const void *value)
{
    uint64_t bits = 0;
    int8_t s8;
    int16_t s16;
    int32_t s32;

    switch (type) {
    case DML_TENSOR_DATA_TYPE_INT8: memcpy(&s8, value, sizeof s8); return (uint64_t)(int64_t)s8;
    case DML_TENSOR_DATA_TYPE_INT16: memcpy(&s16, value, sizeof s16); return (uint64_t)(int64_t)s16;
    case DML_TENSOR_DATA_TYPE_INT32: memcpy(&s32, value, sizeof s32); return (uint64_t)(int64_t)s32;
    default: break;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&bits, value, opjit_rt_dtype_size(type));
#else
    memcpy((char *)&bits + 8 - opjit_rt_dtype_size(type), value, opjit_rt_dtype_size(type));
#endif
    return bits;
}

/* What the closure's machine code calls. */
static void closure_entry(ffi_cif *cif, void *result, void **arguments, void *user)
{
    opjit_closure *c = user;
    opjit_binding bindings[MOST_ARGUMENTS];
    uint64_t params[MOST_ARGUMENTS];
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error;

    (void)cif;
    (void)result;
    for (uint32_t i = 0; i < c->bindings; i++) {
        memcpy(&bindings[i].data, arguments[i], sizeof bindings[i].data);
        bindings[i].bytes = c->bytes[i];
    }
    for (uint32_t i = 0; i < c->params; i++)
        params[i] = slot_of((DML_TENSOR_DATA_TYPE)c->dtypes[i], arguments[c->bindings + i]);
    call.bindings = bindings;
    call.binding_count = c->bindings;
    call.params = c->params == 0 ? NULL : params;
    call.param_count = c->params;
    if (opjit_kernel_call(c->kernel, &call, &error) == OPJIT_OK)
        return;
    atomic_fetch_add(&c->failures, 1);
    opjit_rt_lock(&c->lock);
    c->last = error;
    opjit_rt_unlock(&c->lock);
}

static opjit_status fill_signature(opjit_closure *c, const opjit_kernel_info *info, opjit_error *error)
{
    c->bindings = info->inputs + info->outputs;
    c->params = info->param_count;
    if (info->dim_count != 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{closure} {kernel}: {%u} dynamic dimensions, must be 0: its arguments have no sizes",
                               info->dim_count);
    if ((uint64_t)c->bindings + c->params > MOST_ARGUMENTS)
        return opjit_rt_refuse(error, OPJIT_LIMIT,
                               "{closure} {arguments}: {%llu}, must be at most %d, buffers and parameters",
                               (unsigned long long)c->bindings + c->params, MOST_ARGUMENTS);
    for (uint32_t i = 0; i < c->bindings; i++) {
        c->types[i] = &ffi_type_pointer;
        c->bytes[i] = info->buffers[i].bytes;
    }
    for (uint32_t i = 0; i < c->params; i++) {
        c->dtypes[i] = info->params[i].dtype;
        c->types[c->bindings + i] = type_of((DML_TENSOR_DATA_TYPE)c->dtypes[i]);
    }
    if (ffi_prep_cif(&c->cif, FFI_DEFAULT_ABI, c->bindings + c->params, &ffi_type_void, c->types) != FFI_OK)
        return opjit_rt_refuse(error, OPJIT_INTERNAL, "{closure} {arguments}: libffi refuses the signature");
    return OPJIT_OK;
}

static opjit_status make_code(opjit_closure *c, void (**out_function)(void), opjit_error *error)
{
    void *code = NULL;

    c->ffi = ffi_closure_alloc(sizeof *c->ffi, &code);
    if (c->ffi == NULL || ffi_prep_closure_loc(c->ffi, &c->cif, closure_entry, c, code) != FFI_OK)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                               "{closure} {code}: the system gives libffi no executable memory");
    memcpy(out_function, &code, sizeof code); /* object pointer to function pointer, without the cast that C lacks */
    return OPJIT_OK;
}

opjit_status opjit_closure_create(opjit_kernel *kernel, opjit_closure **out_closure, void (**out_function)(void),
                                  opjit_error *error)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_closure *c;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (out_closure != NULL)
        *out_closure = NULL;
    if (out_function != NULL)
        *out_function = NULL;
    if (kernel == NULL || out_closure == NULL || out_function == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL        ? "kernel"
                                           : out_closure == NULL ? "out_closure"
                                                                 : "out_function");
    TRY(opjit_kernel_get_info(kernel, &info, error));
    c = opjit_rt_allocate(&kernel->core->allocator, sizeof *c, alignof(opjit_closure));
    if (c == NULL)
        return opjit_rt_no_memory(error);
    memset(c, 0, sizeof *c);
    opjit_rt_lock_init(&c->lock, &kernel->core->process);
    opjit_kernel_retain(kernel);
    c->kernel = kernel;
    status = fill_signature(c, &info, error);
    if (status == OPJIT_OK)
        status = make_code(c, out_function, error);
    if (status != OPJIT_OK) {
        opjit_closure_destroy(c);
        return status;
    }
    *out_closure = c;
    return OPJIT_OK;
}

uint64_t opjit_closure_failures(const opjit_closure *closure, opjit_error *error)
{
    opjit_closure *c = (opjit_closure *)(uintptr_t)closure; /* const but for its mutex */

    opjit_rt_error_clear(error);
    if (c == NULL)
        return 0;
    if (error != NULL) {
        opjit_rt_lock(&c->lock);
        *error = c->last;
        opjit_rt_unlock(&c->lock);
    }
    return atomic_load(&c->failures);
}

void opjit_closure_destroy(opjit_closure *closure)
{
    opjit_kernel *kernel;

    if (closure == NULL)
        return;
    kernel = closure->kernel;
    if (closure->ffi != NULL)
        ffi_closure_free(closure->ffi);
    opjit_rt_release(&kernel->core->allocator, closure, sizeof *closure);
    opjit_kernel_release(kernel); /* after its allocator was used */
}

opjit_status opjit_typed_call(void (*function)(void), uint32_t count, const DML_TENSOR_DATA_TYPE *types,
                              void *const *values, opjit_error *error)
{
    ffi_type *ffi_types[MOST_ARGUMENTS];
    void *arguments[MOST_ARGUMENTS];
    ffi_cif cif;

    opjit_rt_error_clear(error);
    if (function == NULL || (count != 0 && (types == NULL || values == NULL)))
        return opjit_rt_refuse_null(error, function == NULL ? "function" : types == NULL ? "types" : "values");
    if (count > MOST_ARGUMENTS)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{!argument}{!count}{%u} arguments; allowed: up to %d", count,
                               MOST_ARGUMENTS);
    for (uint32_t i = 0; i < count; i++) {
        ffi_types[i] = type_of(types[i]);
        arguments[i] = values[i];
        if (ffi_types[i] == NULL)
            return opjit_rt_place(
                error,
                opjit_rt_refuse(
                    error, OPJIT_INVALID_ARGUMENT,
                    "{!argument}{!types}argument %u: type {%u} (%s) has no C type; allowed: UNKNOWN (a pointer) and "
                    "the types of 8 bits and more",
                    i, (unsigned)types[i], opjit_rt_dtype_name(types[i])),
                NULL, NULL, (int32_t)i);
        if (arguments[i] == NULL)
            return opjit_rt_place(error,
                                  opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                                  "{!argument}{!values}argument %u: its value is {NULL}", i),
                                  NULL, NULL, (int32_t)i);
    }
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, count, &ffi_type_void, ffi_types) != FFI_OK)
        return opjit_rt_refuse(error, OPJIT_INTERNAL, "{!argument}{types}: libffi refuses the signature");
    ffi_call(&cif, function, NULL, arguments);
    return OPJIT_OK;
}

/* --- custom operators --------------------------------------------------------------------------------------------- */

struct rt_custom {
    void (*function)(void);
    void *user;
    ffi_cif cif;
    ffi_type **types;
    const opjit_custom_arg *args;
    uint32_t arg_count, inputs;
    bool returns_status;
};

static opjit_status check_arg(const opjit_custom_desc *desc, uint32_t i, opjit_error *error)
{
    const opjit_custom_arg *arg = &desc->args[i];
    const uint32_t count = arg->kind == OPJIT_CUSTOM_INPUT ? desc->input_count : desc->output_count;

    if (arg->kind > OPJIT_CUSTOM_SCALAR)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%.64s} {args[%u].kind}: {%u}, must be 0 to 3",
                               desc->name, i, arg->kind);
    if (arg->reserved != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%.64s} {args[%u].reserved}: {%u}, must be 0",
                               desc->name, i, arg->reserved);
    if (arg->kind <= OPJIT_CUSTOM_OUTPUT && arg->index >= count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%.64s} {args[%u].index}: {%u}, must be below %u (%s)",
                               desc->name, i, arg->index, count,
                               arg->kind == OPJIT_CUSTOM_INPUT ? "input_count" : "output_count");
    if (arg->kind == OPJIT_CUSTOM_SCALAR && (arg->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN || type_of(arg->dtype) == NULL))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%.64s} {args[%u].dtype}: {%u} (%s), must be a type of 8 bits or more", desc->name, i,
                               (unsigned)arg->dtype, opjit_rt_dtype_name(arg->dtype));
    return OPJIT_OK;
}

opjit_status opjit_rt_custom_make(const opjit_custom_desc *desc, rt_arena *arena, const rt_custom **out,
                                  opjit_error *error)
{
    const bool returns_status = (desc->flags & OPJIT_CUSTOM_RETURNS_STATUS) != 0;
    rt_custom *c = ARENA_NEW(arena, rt_custom);

    if (desc->arg_count > MOST_ARGUMENTS)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{%.64s} {arg_count}: {%u}, must be at most %d", desc->name,
                               desc->arg_count, MOST_ARGUMENTS);
    for (uint32_t i = 0; i < desc->arg_count; i++)
        TRY(check_arg(desc, i, error));
    if (c == NULL)
        return opjit_rt_no_memory(error);
    *c = (rt_custom){ .function = desc->function,
                      .user = desc->user,
                      .types = ARENA_ARRAY(arena, ffi_type *, desc->arg_count),
                      .args = ARENA_ARRAY(arena, opjit_custom_arg, desc->arg_count),
                      .arg_count = desc->arg_count,
                      .inputs = desc->input_count,
                      .returns_status = returns_status };
    if (c->types == NULL || c->args == NULL)
        return opjit_rt_no_memory(error);
    if (desc->arg_count != 0)
        memcpy((void *)(uintptr_t)c->args, desc->args, desc->arg_count * sizeof *desc->args);
    for (uint32_t i = 0; i < desc->arg_count; i++)
        c->types[i] = desc->args[i].kind == OPJIT_CUSTOM_SCALAR ? type_of(desc->args[i].dtype) : &ffi_type_pointer;
    if (ffi_prep_cif(&c->cif, FFI_DEFAULT_ABI, c->arg_count, returns_status ? &ffi_type_sint : &ffi_type_void,
                     c->types) != FFI_OK)
        return opjit_rt_refuse(error, OPJIT_INTERNAL, "{%.64s} {args}: libffi refuses the signature", desc->name);
    *out = c;
    return OPJIT_OK;
}

opjit_status opjit_rt_custom_run(const rt_custom_call *call, void *const *buffers, opjit_error *error)
{
    const rt_custom *c = call->custom;
    void *values[MOST_ARGUMENTS], *arguments[MOST_ARGUMENTS];
    ffi_cif cif = c->cif; /* libffi takes it without const */
    ffi_arg result = 0;

    for (uint32_t i = 0; i < c->arg_count; i++) {
        const opjit_custom_arg *arg = &c->args[i];
        arguments[i] = &values[i];
        switch ((opjit_custom_arg_kind)arg->kind) {
        case OPJIT_CUSTOM_INPUT: values[i] = buffers[call->slots[arg->index]]; break;
        case OPJIT_CUSTOM_OUTPUT: values[i] = buffers[call->slots[c->inputs + arg->index]]; break;
        case OPJIT_CUSTOM_USER: values[i] = c->user; break;
        case OPJIT_CUSTOM_SCALAR: arguments[i] = (void *)(uintptr_t)&arg->value; break; /* only read */
        }
    }
    ffi_call(&cif, c->function, &result, arguments);
    if (!c->returns_status || (int)result == 0)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_CANCELLED, "{%s}: its {function} returned {%d}", call->node, (int)result);
}

#else

opjit_status opjit_closure_create(opjit_kernel *kernel, opjit_closure **out_closure, void (**out_function)(void),
                                  opjit_error *error)
{
    (void)kernel;
    if (out_closure != NULL)
        *out_closure = NULL;
    if (out_function != NULL)
        *out_function = NULL;
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{closures}: opjit was built without {libffi}");
}

uint64_t opjit_closure_failures(const opjit_closure *closure, opjit_error *error)
{
    (void)closure;
    opjit_rt_error_clear(error);
    return 0;
}

void opjit_closure_destroy(opjit_closure *closure)
{
    (void)closure; /* none was ever made */
}

opjit_status opjit_typed_call(void (*function)(void), uint32_t count, const DML_TENSOR_DATA_TYPE *types,
                              void *const *values, opjit_error *error)
{
    (void)function;
    (void)count;
    (void)types;
    (void)values;
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{typed calls}: opjit was built without {libffi}");
}

opjit_status opjit_rt_custom_make(const opjit_custom_desc *desc, rt_arena *arena, const rt_custom **out,
                                  opjit_error *error)
{
    (void)desc;
    (void)arena;
    *out = NULL;
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{custom operators}: opjit was built without {libffi}");
}

opjit_status opjit_rt_custom_run(const rt_custom_call *call, void *const *buffers, opjit_error *error)
{
    (void)buffers;
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{%s}: opjit was built without {libffi}", call->node);
}

#endif
