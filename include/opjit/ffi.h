/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/ffi.h - C functions whose types are known only at run time, by libffi: functions of the application as nodes of
 * a graph, kernels as plain C functions, calls of any function.
 *
 *     opjit_custom_desc desc = OPJIT_CUSTOM_DESC_INIT;      // void scale(const float *in, float *out)
 *     desc.name = "scale";
 *     desc.inputs = desc.outputs = &tensor;
 *     desc.input_count = desc.output_count = 1;
 *     desc.args = (const opjit_custom_arg[]){ { .kind = OPJIT_CUSTOM_INPUT }, { .kind = OPJIT_CUSTOM_OUTPUT } };
 *     desc.arg_count = 2;
 *     desc.function = (void (*)(void))scale;
 *     opjit_custom_create(context, &desc, &op, &error);     // and then into DML_OPERATOR_GRAPH_NODE_DESC.Operator
 *
 * OPJIT_UNAVAILABLE is what every function here gives where opjit was built without libffi.  Each comment ends with
 * [threads, since]. */
#ifndef OPJIT_FFI_H
#define OPJIT_FFI_H

#include <opjit/opjit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- custom operators --------------------------------------------------------------------------------------------- */
/* A C function of the application as an operator.  A call of the kernel calls it once, on the calling thread, between
 * the stages of what comes before and after it; its tensors lie in memory as their descriptors say. */
typedef enum opjit_custom_arg_kind {
    OPJIT_CUSTOM_INPUT = 0,  /* const void *: where input `index` begins */
    OPJIT_CUSTOM_OUTPUT = 1, /* void *: where output `index` begins */
    OPJIT_CUSTOM_USER = 2,   /* void *: opjit_custom_desc.user */
    OPJIT_CUSTOM_SCALAR = 3  /* `value` as float, double, int32_t ... by `dtype`; FLOAT16 as uint16_t */
} opjit_custom_arg_kind;

/* One parameter of the function.  Frozen; since 0.1. */
typedef struct opjit_custom_arg {
    uint32_t kind;              /* opjit_custom_arg_kind */
    uint32_t index;             /* INPUT, OUTPUT: which; else 0 */
    DML_TENSOR_DATA_TYPE dtype; /* SCALAR: of 8 bits and more */
    uint32_t reserved;          /* 0 */
    DML_SCALAR_UNION value;     /* SCALAR */
} opjit_custom_arg;

/* A function and its tensors.  Since 0.1. */
typedef struct opjit_custom_desc {
    uint32_t struct_size;          /* bytes; OPJIT_CUSTOM_DESC_INIT sets it */
    uint32_t flags;                /* OPJIT_CUSTOM_..., or 0 */
    const char *name;              /* for messages and opjit_error.op; at most 64 bytes */
    const void *key;               /* whatever else tells two versions of the function apart, as an address may come to
                                      belong to another function when a library is unloaded: part of the kernel's key.
                                      NULL: none */
    uint64_t key_bytes;            /* bytes at key */
    const DML_TENSOR_DESC *inputs; /* input_count of them; NULL where there are none */
    const DML_TENSOR_DESC *outputs;/* output_count of them */
    uint32_t input_count;          /* 0 to 64 */
    uint32_t output_count;         /* 1 to 64 */
    const opjit_custom_arg *args;  /* the function's parameters in order */
    uint32_t arg_count;            /* 0 to 64 */
    uint32_t reserved;             /* 0 */
    void (*function)(void);        /* cast to this type; writes all of its outputs, touches nothing else of opjit's, and
                                      is callable from any thread for as long as a kernel with it is called */
    void *user;                    /* for OPJIT_CUSTOM_USER; not copied */
} opjit_custom_desc;
#define OPJIT_CUSTOM_DESC_INIT { sizeof(opjit_custom_desc), 0, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, 0, 0, NULL, NULL }

/* The function returns int, not void; anything but 0 ends the kernel's call with OPJIT_CANCELLED and a message that
 * names node and value. */
#define OPJIT_CUSTOM_RETURNS_STATUS 1u

/* Checks *desc and makes an operator of it in *out_operator, for DML_OPERATOR_GRAPH_NODE_DESC.Operator or
 * opjit_compile_operator; the caller releases it.  All but user and the function is copied.  Kernels with custom
 * operators are in the memory cache (function and user are part of the key), never on disk, and none of their outputs
 * may be an input's memory.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, LIMIT, each with field and value; OUT_OF_MEMORY.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_custom_create(opjit_context *context, const opjit_custom_desc *desc,
                                                           opjit_operator **out_operator, opjit_error *error);

/* --- kernels as functions ----------------------------------------------------------------------------------------- */
/* A plain C function for a kernel whose bindings are fixed except for its pointers: void f(const void *in0, ..., void
 * *out0, ...).  Every buffer is taken to have exactly the bytes of its opjit_buffer_info.  Late parameters follow as
 * int64_t, float, double ... by their dtype (FLOAT16 as uint16_t). */
typedef struct opjit_closure opjit_closure;

/* The function in *out_function, callable from any thread until the closure in *out_closure, which retains the kernel,
 * is destroyed.  A call that fails (overlap, alignment) is dropped and counted.
 * Errors: UNAVAILABLE (the system allows no closures), LIMIT (more than 64 arguments), OUT_OF_MEMORY.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_closure_create(opjit_kernel *kernel, opjit_closure **out_closure,
                                                            void (**out_function)(void), opjit_error *error);

/* Calls that failed since creation, with the last failure in *error where it is not NULL.  [any thread, 0.1] */
OPJIT_API uint64_t opjit_closure_failures(const opjit_closure *closure, opjit_error *error);

/* Frees the closure and its function, which nobody may be calling; NULL is fine.  [any thread, 0.1] */
OPJIT_API void opjit_closure_destroy(opjit_closure *closure);

/* --- calls of any function ---------------------------------------------------------------------------------------- */
/* Calls void function(types...), of opjit_library_entry for instance.  types and values have `count` elements, up to
 * 64; DML_TENSOR_DATA_TYPE_UNKNOWN stands for a pointer, values[i] points to the i-th argument's value.
 * Errors: INVALID_ARGUMENT (a type that C has none for, NULL), LIMIT.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_typed_call(void (*function)(void), uint32_t count,
                                                        const DML_TENSOR_DATA_TYPE *types, void *const *values,
                                                        opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
