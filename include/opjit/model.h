/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/model.h - ONNX models: a file becomes a graph of the builder (opjit/graph.h), whose sizes are all known, and
 * the graph a kernel like any other; or the model one kernel for many sizes of some dimensions.  Since 0.1.
 *
 *     opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
 *     const opjit_model_dim batch = { "batch", 1 };
 *     options.dims = &batch;
 *     options.dim_count = 1;
 *     opjit_model_open(context, "classifier.onnx", &options, &model, &error);
 *     opjit_model_compile(model, NULL, &kernel, &error);
 *     opjit_kernel_call(kernel, &call, &error);      bindings: inputs, then outputs, as opjit_model_get_input says
 *     opjit_kernel_release(kernel);
 *     opjit_model_close(model);
 *
 *   - The default domain's opsets 1 to 26, and what opjit_model_get_operator lists of others.  Constants, initializers,
 *     also in other files, functions, and If with a condition that is known.  What reads constants alone is computed
 *     while the model is read, so that sizes which the model computes become numbers.
 *   - The file is mapped, and kernels read its weights there, wherever they lie (OPJIT_COMPILE_BORROW_CONSTANTS says
 *     which are copied).  A model has to outlive its kernels.
 *   - Where the context has a disk cache, a model that was compiled is known there by all of its bytes, those of its
 *     files of weights, and the options: another process, if it has that folder, gets inputs, outputs and the kernel
 *     without reading it, and what the kernel made of its weights mapped from a file.  Not models of which values were
 *     computed from a call's.
 *   - A model that is truncated, hostile or not taken is refused with one line that names the node, whose index among
 *     the graph's nodes is in opjit_error.node.
 *   - Elements of bool are UINT8, 0 or 1. */
#ifndef OPJIT_MODEL_H
#define OPJIT_MODEL_H

#include <opjit/dynamic.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct opjit_model opjit_model; /* a model that was read; one owner, not counted */

/* A dimension that the model calls by a name; or name is "total=past + 1": its size, whatever `size` says, follows from
 * others, by sums, differences and products.  So does that of a dimension that the model itself calls "past + 1".
 * Or name is "height/32": the model's height is 32 times that size.  Names of dynamic dimensions may be such, too, of
 * images that the model halves: sizes of tensors have to be linear in them.  Frozen; since 0.1. */
typedef struct opjit_model_dim {
    const char *name; /* the model's */
    uint64_t size;    /* 0: what has it is a constant without elements */
} opjit_model_dim;

/* What is known of an input.  Since 0.1. */
typedef struct opjit_model_input {
    const char *name;      /* the model's */
    const uint64_t *sizes; /* all of its dimensions; NULL: as the model says */
    const void *value;     /* its elements, packed: the input becomes a constant, which needs no binding; NULL: none */
    uint64_t bytes;        /* of value */
    uint32_t rank;         /* numbers in sizes; a scalar has none */
    DML_TENSOR_DATA_TYPE dtype; /* of value and of what will be bound: refused where the model has another one; UNKNOWN:
                              it is not checked */
    uint32_t flags;        /* 0, or: */
#define OPJIT_MODEL_INPUT_OF_CALL 1u /* value is what the call brings: the input stays one.  What of the model has to be
                              known, such as a length that it predicts, is computed from it while the model is read */
    uint32_t reserved;     /* 0 */
} opjit_model_input;

/* Copied, except values, which the caller keeps until the model is closed.  Since 0.1. */
typedef struct opjit_model_options {
    uint32_t struct_size;            /* bytes; OPJIT_MODEL_OPTIONS_INIT sets it */
    uint32_t flags;                  /* 0, or: */
#define OPJIT_MODEL_NO_CACHE 1u       /* the model is read, whatever the disk cache knows of it, and nothing of it is
                                        put there but kernels (OPJIT_COMPILE_NO_CACHE: nor these) */
#define OPJIT_MODEL_SAMPLE 2u         /* the sizes are some of many that one kernel is for: what follows from them is
                                        operators of the graph in place of constants, so that the graph is another
                                        size's, too, as an opjit_build_fn needs; and OPJIT_MODEL_NO_CACHE */
#define OPJIT_MODEL_EMPTY_OUTPUTS 4u  /* outputs may have no elements, which are refused without it: such a one has no
                                        binding, and a model that has no others has no kernel */
    const opjit_model_dim *dims;     /* dim_count of them; each has to be one of the model's, or to be read by one that
                                        follows from it ("height=32*h") */
    const opjit_model_input *inputs; /* input_count of them, likewise */
    uint32_t dim_count, input_count; /* of these arrays */
    const char *folder;              /* of the files that the model names; NULL: the one that it lies in, or none for
                                        opjit_model_read.  Files outside of it are refused */
    const opjit_compile_options *computing; /* how kernels are compiled that compute what has to be known; NULL: by
                                        default.  Read by opjit_model_open alone */
} opjit_model_options;
#define OPJIT_MODEL_OPTIONS_INIT { sizeof(opjit_model_options), 0, NULL, NULL, 0, 0, NULL, NULL }

/* Reads the .onnx file at path into *out_model; the caller closes it, before the context is destroyed.
 * Errors: UNAVAILABLE (no such file), CORRUPT (no .onnx file, or a damaged one), UNSUPPORTED (an operator, an
 * attribute, a size that is not known), LIMIT, INVALID_ARGUMENT (options; nodes that don't fit each other).  Of a size
 * of an input that the options have to say the error's op is "input", its value "unknown", its index the dimension.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_open(opjit_context *context, const char *path,
                                                        const opjit_model_options *options, opjit_model **out_model,
                                                        opjit_error *error);
/* The same with the bytes of a file, which the caller keeps until the model is closed. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_read(opjit_context *context, const void *data, uint64_t bytes,
                                                        const opjit_model_options *options, opjit_model **out_model,
                                                        opjit_error *error);
/* Frees the model; NULL is fine.  No kernel of it may be called any more. [any thread, 0.1] */
OPJIT_API void opjit_model_close(opjit_model *model);

/* An input or output.  Since 0.1. */
typedef struct opjit_model_port {
    uint32_t struct_size; /* bytes; OPJIT_MODEL_PORT_INIT sets it */
    DML_TENSOR_DATA_TYPE dtype; /* of the elements */
    const char *name;     /* the model's */
    uint64_t sizes[8];    /* of its dimensions, the outermost first */
    uint32_t rank;        /* 0: a scalar */
    int32_t binding;      /* opjit_call.bindings' index in a kernel of the model; -1: a constant, or read by nothing; of
                             an output: it has no elements, which OPJIT_MODEL_EMPTY_OUTPUTS and
                             OPJIT_MODEL_INPUT_OF_CALL alone allow */
    uint32_t is_bool;     /* 1: the model's type is bool */
    uint32_t reserved;    /* 0 */
} opjit_model_port;
#define OPJIT_MODEL_PORT_INIT \
    { sizeof(opjit_model_port), DML_TENSOR_DATA_TYPE_UNKNOWN, NULL, { 0 }, 0, 0, 0, 0 }

/* How many inputs and outputs the model has; 0 for NULL. [any thread, 0.1] */
OPJIT_API uint32_t opjit_model_input_count(const opjit_model *model);
OPJIT_API uint32_t opjit_model_output_count(const opjit_model *model);
/* Fills *out_port, whose struct_size is set.  INVALID_ARGUMENT: no such index. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_get_input(const opjit_model *model, uint32_t index,
                                                             opjit_model_port *out_port, opjit_error *error);
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_get_output(const opjit_model *model, uint32_t index,
                                                              opjit_model_port *out_port, opjit_error *error);

/* The model's graph, which is the model's: for opjit_graph_get_desc, opjit_graph_compile.  NULL for NULL.
 * [one thread, 0.1] */
OPJIT_API opjit_graph *opjit_model_graph(opjit_model *model);
/* Compiles it into one kernel in *out_kernel, which reads the weights where the model has them; the caller releases it.
 * Errors: as of opjit_graph_compile. [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_compile(opjit_model *model, const opjit_compile_options *options,
                                                           opjit_kernel **out_kernel, opjit_error *error);

/* How many values of the model were computed while it was read, from inputs that are OPJIT_MODEL_INPUT_OF_CALL: the
 * model's kernel is for such inputs alone of which these values are the same; 0 for NULL. [any thread, 0.1] */
OPJIT_API uint32_t opjit_model_computed_count(const opjit_model *model);
/* Computes them again, from what is now where the inputs' values are.  UNSUPPORTED: another value came out, so that the
 * kernel is not for these inputs, and the model has to be read anew. [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_compute(opjit_model *model, opjit_error *error);
/* How many bindings of a kernel of the model are of what was computed on the way to these values: they stand between
 * those of inputs and those of outputs.  0 for NULL. [any thread, 0.1] */
OPJIT_API uint32_t opjit_model_carried_count(const opjit_model *model);
/* The binding of that index among them, in *out_binding: the model's memory, which opjit_model_compute writes.
 * INVALID_ARGUMENT: no such index. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_get_carried(const opjit_model *model, uint32_t index,
                                                               opjit_binding *out_binding, opjit_error *error);

/* The size that a dimension has which the model's inputs call by this name, or which is read by the size of one, or is
 * "height/32", in *out_size, which is 0 on failure.
 * INVALID_ARGUMENT: no input has one, or no size of it gives what the input has. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_get_dim(const opjit_model *model, const char *name,
                                                           uint64_t *out_size, opjit_error *error);
/* Compiles the model into one kernel for all sizes within the bounds of these dimensions, which its inputs call by
 * these names, or whose sizes read them, whatever sizes it was opened with (opjit/dynamic.h); all else is as it was
 * opened.  The model is read anew for some sizes; the last reading stays until it is closed, for weights are read
 * there.  Bindings are in the order of opjit_model_compile's; where a least size is 0, they are those of the largest
 * sizes from then on, whatever inputs had no elements in what it was opened with.
 * Errors: as of opjit_model_open and opjit_graph_compile_dynamic. [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_compile_dynamic(opjit_model *model, const opjit_dim *dims,
                                                                   uint32_t dim_count,
                                                                   const opjit_compile_options *options,
                                                                   opjit_kernel **out_kernel, opjit_error *error);

/* Adds the same to an artifact, as opjit_artifact_add_dynamic does, of which options->name is the name.  Errors: those
 * of both. [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_add_dynamic(opjit_model *model, opjit_artifact *artifact,
                                                               const opjit_dim *dims, uint32_t dim_count,
                                                               const opjit_compile_options *options,
                                                               opjit_error *error);

/* An operator of ONNX.  Since 0.1. */
typedef struct opjit_model_operator {
    uint32_t struct_size; /* bytes; OPJIT_MODEL_OPERATOR_INIT sets it */
    uint32_t is_taken;    /* 0: a model with it is refused, and text says why */
    const char *domain;   /* "": the default one */
    const char *name;     /* "Conv" */
    const char *text;     /* what it is made of, or what of it is not taken; "": nothing to say */
} opjit_model_operator;
#define OPJIT_MODEL_OPERATOR_INIT { sizeof(opjit_model_operator), 0, NULL, NULL, NULL }
/* Fills *out_operator; INVALID_ARGUMENT past the last one. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_model_get_operator(uint32_t index, opjit_model_operator *out_operator,
                                                                opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
