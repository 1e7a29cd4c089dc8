/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/graph.h - a builder of graphs: what DirectMLX is to DirectML, in C.  Tensors are handles; data types, sizes and
 * strides of what operators make follow from their inputs; opjit_graph_compile gives a kernel.  Since 0.1.
 * opjit/graph_ops.h has a function of its own for each of the common operators.  A causal softmax of [batch,n,n]:
 *
 *     opjit_graph *g;
 *     opjit_graph_create(context, &g, &error);
 *     const opjit_tensor x = opjit_graph_input(g, "scores", DML_TENSOR_DATA_TYPE_FLOAT32, 3, sizes);
 *     const opjit_tensor masked = opjit_graph_fill_band(g, x, -INFINITY, 1, INT32_MAX);
 *     opjit_graph_output(g, "weights", opjit_graph_softmax(g, masked, 2));
 *     opjit_graph_compile(g, NULL, &kernel, &error);
 *     opjit_graph_destroy(g);
 *
 * Rules of this header, beside those of opjit/opjit.h:
 *   - Errors are sticky.  The first call that fails marks the graph, and it and all later calls give a null handle.
 *     So nothing need be checked before opjit_graph_compile, which returns the first error: its message names operator,
 *     field, value and what is allowed, and opjit_error.node is the index that the operator would have had among the
 *     operators, in the order in which they were added.  opjit_graph_status has it too.
 *   - A null handle (index 0) stands for an absent optional input, and is refused for an input that must be there.
 *   - Handles belong to one graph and are valid until it is destroyed; there is nothing to release.  A handle of
 *     another graph is refused where it can be told.
 *   - One thread at a time may use a graph; different graphs may be built on different threads in one context, which
 *     has to outlive them.
 *   - Whatever is passed in is copied before the function returns, except for data with OPJIT_GRAPH_BORROW.
 *   - Time and memory are proportional to the graph. */
#ifndef OPJIT_GRAPH_H
#define OPJIT_GRAPH_H

#include <opjit/opjit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- graphs ------------------------------------------------------------------------------------------------------- */
typedef struct opjit_graph opjit_graph; /* a graph that is being built; one owner, not counted */

/* A tensor of a graph: an input, a constant, what an operator makes, or a view of one of these. */
typedef struct opjit_tensor {
    uint32_t graph; /* which graph's */
    uint32_t index; /* 0: a null handle */
} opjit_tensor;

/* Creates an empty graph in *out_graph; the caller destroys it.  Operators are held to the context's feature level.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_graph_create(opjit_context *context, opjit_graph **out_graph,
                                                          opjit_error *error);
/* Frees the graph with all that it has copied; NULL is fine.  Kernels stay valid, except for constants that were both
 * given with OPJIT_GRAPH_BORROW and compiled with OPJIT_COMPILE_BORROW_CONSTANTS, whose memory the caller keeps.
 * [one thread, 0.1] */
OPJIT_API void opjit_graph_destroy(opjit_graph *graph);

/* The status of the graph: OPJIT_OK, or that of the first call that failed, whose message is in *out_error (may be
 * NULL). [one thread, 0.1] */
OPJIT_API opjit_status opjit_graph_status(const opjit_graph *graph, opjit_error *out_error);

/* Data type and sizes of a tensor. */
typedef struct opjit_tensor_type {
    DML_TENSOR_DATA_TYPE dtype; /* UNKNOWN (0), where a function takes a type: what follows from the inputs */
    uint32_t rank;              /* 1 to 8; 0 likewise: the sizes that follow */
    uint32_t sizes[8];          /* elements; unused ones are not looked at, and are 1 in results */
} opjit_tensor_type;

/* Gives the tensor's in *out_type; all zero where the handle is null or the graph has failed. [one thread, 0.1] */
OPJIT_API opjit_status opjit_graph_get_type(const opjit_graph *graph, opjit_tensor tensor, opjit_tensor_type *out_type);

/* --- inputs, constants, outputs ----------------------------------------------------------------------------------- */
/* An input of the kernel, packed: sizes has rank numbers, each at least 1.  name is what messages and the kernel's
 * buffers call it (opjit_kernel_buffer_name); NULL: "Inputs[i]".  Inputs are bound in the order of these calls; one
 * that nothing reads has no binding. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_input(opjit_graph *graph, const char *name, DML_TENSOR_DATA_TYPE dtype,
                                         uint32_t rank, const uint32_t *sizes);
/* The same with a descriptor: strides, 0 among them, a guaranteed alignment, OWNED_BY_DML. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_input_desc(opjit_graph *graph, const char *name, const DML_TENSOR_DESC *desc);

#define OPJIT_GRAPH_BORROW 1u /* the data are not copied: the caller keeps them until the graph is destroyed */

/* Data that are known now, packed: bytes is the product of the sizes times the element's size.  The graph owns a copy,
 * at a multiple of 64 bytes.  Up to 4 KiB the content becomes part of the kernel; more is bound to it
 * (opjit_compile_graph).  flags: OPJIT_GRAPH_BORROW or 0.  UNSUPPORTED below feature level 6.2. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_constant(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                                            const uint32_t *sizes, const void *data, uint64_t bytes, uint32_t flags);

/* Makes the tensor an output of the kernel, packed, bound behind the inputs in the order of these calls.  name: as
 * opjit_graph_input's; NULL: "Outputs[i]".  What is not an operator's own packed output, such as a view, an input or a
 * constant, is copied by an ELEMENT_WISE_IDENTITY, which the compiler fuses where it can. [one thread, 0.1] */
OPJIT_API opjit_status opjit_graph_output(opjit_graph *graph, const char *name, opjit_tensor tensor);

/* Names the operator that makes the tensor: its label in messages and in late fields, "name.Field".
 * [one thread, 0.1] */
OPJIT_API opjit_status opjit_graph_name(opjit_graph *graph, opjit_tensor tensor, const char *name);

/* --- generated tensors, which are never stored -------------------------------------------------------------------- */
/* Values are given as doubles and rounded once to the type: to nearest for floats; for integers they have to be whole
 * and in the type's range.  Integers that a double can't hold go through opjit_graph_op. */

/* One element, of rank 1 (4 at feature levels that know no other), to be broadcast: FILL_VALUE_CONSTANT.
 * [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_scalar(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, double value);
/* Every element is value: FILL_VALUE_CONSTANT. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_fill(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                                        const uint32_t *sizes, double value);
/* Element e in row-major order is start + e * delta: FILL_VALUE_SEQUENCE. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_sequence(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                                            const uint32_t *sizes, double start, double delta);
/* Matrices, in the last two dimensions, that are value where begin <= column - row < end and 0 elsewhere; where begin
 * is above end, value everywhere except where end <= column - row < begin: DIAGONAL_MATRIX1.  INT32_MIN and INT32_MAX
 * are as good as infinite. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_band(opjit_graph *graph, DML_TENSOR_DATA_TYPE dtype, uint32_t rank,
                                        const uint32_t *sizes, double value, int32_t begin, int32_t end);
/* The same, with the elements of x elsewhere. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_fill_band(opjit_graph *graph, opjit_tensor x, double value, int32_t begin,
                                             int32_t end);

/* --- operators ---------------------------------------------------------------------------------------------------- */
/* Any operator of the build.  Handles stand for its input tensors; what remains of its descriptor is given by desc. */
typedef struct opjit_graph_node {
    uint32_t struct_size; /* set by its _INIT macro */
    DML_OPERATOR_TYPE type;      /* one of this build */
    const void *desc;            /* its DML_..._OPERATOR_DESC.  A tensor that is NULL there is described by the handle,
                                    or follows; one that is not NULL is taken as it stands: an input's as another view
                                    of the same bytes, an output's as its layout.  A count of tensors and a DATA_TYPE of
                                    scalars may be 0.  NULL: a structure of zeros */
    const opjit_tensor *inputs;  /* by position among the operator's inputs, arrays expanded; null: absent */
    uint32_t input_count;        /* further ones are absent */
    uint32_t output_count;       /* size of output_types and of the array of results, for operators with several;
                                    optional outputs behind them are absent */
    const opjit_tensor_type *output_types; /* one for each output; what is UNKNOWN or of rank 0 there follows from the
                                    inputs.  NULL: all of it.  Must be given: the type of CAST; the sizes of generators,
                                    ONE_HOT, FOLD, ROI_ALIGN, RESAMPLE in all forms and the gradients of SLICE,
                                    AVERAGE_POOLING and RESAMPLE; those of SPLIT, unless its parts are equal */
    const char *name;            /* as opjit_graph_name's; NULL: none */
} opjit_graph_node;
#define OPJIT_GRAPH_NODE_INIT { sizeof(opjit_graph_node), DML_OPERATOR_INVALID, NULL, NULL, 0, 0, NULL, NULL }

/* Adds the operator and gives its outputs in out_tensors[output_count], of which those behind its own outputs and all
 * of a failed graph are null.
 *   - Inputs of pointwise operators are broadcast to each other, aligned to the right: leading dimensions are added,
 *     and sizes of 1 repeated by strides of 0.  Other operators with several inputs get leading dimensions of 1.
 *   - Outputs are packed.  Where output_types does not say a type, it is the first input's, with these exceptions:
 *       UINT8    comparisons, IS_NAN, IS_INFINITY, BIT_COUNT
 *       UINT32   ARGMIN, ARGMAX, REDUCE with these functions; indices of TOP_K and MAX_POOLING; RANDOM_GENERATOR
 *       INT32    CONVOLUTION_INTEGER, MATRIX_MULTIPLY_INTEGER
 *       ONE_HOT: its values' type.  DEQUANTIZE_LINEAR, MATRIX_MULTIPLY_INTEGER_TO_FLOAT: the (first) scale's
 *       QUANTIZE_LINEAR: its zero point's, or UINT8 without one.  QUANTIZED_LINEAR_CONVOLUTION, _MATRIX_MULTIPLY and
 *       _AVERAGE_POOLING: the output zero point's, or the first input's without one
 *       DYNAMIC_QUANTIZE_LINEAR: UINT8, the scale FLOAT32 (FLOAT64 of FLOAT64), the zero point as the first output
 *   - All else that opjit_operator_create checks is checked here. [one thread, 0.1] */
OPJIT_API opjit_status opjit_graph_add_node(opjit_graph *graph, const opjit_graph_node *node,
                                            opjit_tensor *out_tensors);
/* Nodes that are added from now on without a name have this one, which is copied; NULL or "": none, as at first.  So a
 * host's own operators, each of several nodes, are found again in messages and by opjit_plan_step_nodes.  Names of
 * nodes are in no key. [one thread, 0.1] */
OPJIT_API void opjit_graph_label(opjit_graph *graph, const char *label);
/* The same for operators with one output, all of which follows. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_op(opjit_graph *graph, DML_OPERATOR_TYPE type, const void *desc,
                                      const opjit_tensor *inputs, uint32_t input_count);
/* Adds an operator that was made already, a custom one (opjit_custom_create) for example, which the graph retains.  Its
 * own descriptors say what it reads of the inputs' bytes.  inputs and out_tensors: by position, all of them.
 * [one thread, 0.1] */
OPJIT_API opjit_status opjit_graph_add_operator(opjit_graph *graph, opjit_operator *op, const char *name,
                                                const opjit_tensor *inputs, uint32_t input_count,
                                                opjit_tensor *out_tensors, uint32_t output_count);

/* --- views -------------------------------------------------------------------------------------------------------- */
/* The same elements by other sizes and strides: nothing is computed and nothing moves, wherever strides can say it. */

/* The elements in row-major order, by other sizes.  One size may be 0: what is left.  A view whose strides can't be
 * those of the sizes is copied (ELEMENT_WISE_IDENTITY). [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_reshape(opjit_graph *graph, opjit_tensor tensor, uint32_t rank,
                                           const uint32_t *sizes);
/* Dimension d is axes[d] of the tensor: one number for each dimension, each once. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_transpose(opjit_graph *graph, opjit_tensor tensor, const uint32_t *axes);
/* Aligned to the right; sizes of 1 are repeated by strides of 0. [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_broadcast(opjit_graph *graph, opjit_tensor tensor, uint32_t rank,
                                             const uint32_t *sizes);
/* sizes[d] elements of each dimension from offsets[d] on, strides[d] apart, a negative stride counting down from the
 * last of them; strides NULL: 1.  A view where all offsets are 0 and no stride is negative, else SLICE1.
 * [one thread, 0.1] */
OPJIT_API opjit_tensor opjit_graph_slice(opjit_graph *graph, opjit_tensor tensor, const uint32_t *offsets,
                                         const uint32_t *sizes, const int32_t *strides);

/* --- compiling ---------------------------------------------------------------------------------------------------- */
/* Compiles the graph as it is now, or finds it in the cache, into *out_kernel; the caller releases it.  A graph may be
 * compiled any number of times, with other options, or after more was added.  Names of inputs and outputs are the
 * kernel's and part of its key; without any the kernel is that of the DML_GRAPH_DESC.
 * Expected failures: the first error of the graph; a graph without outputs; all of opjit_compile_graph.
 * [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_graph_compile(opjit_graph *graph, const opjit_compile_options *options,
                                                           opjit_kernel **out_kernel, opjit_error *error);
/* The same with the kernel's image at hand, as opjit_kernel_get_image gave it, perhaps on another machine: `bytes`
 * bytes at any address, which are copied.  Where it is whole and of the very kernel that would be compiled, graph,
 * level, target and build included, it is loaded instead, with OPJIT_KERNEL_FROM_DISK; else it is not looked at any
 * further, and the kernel is compiled.  So the receiver of graph and image needs no code generation on a CPU like the
 * sender's, or where options->target is the sender's and runs here.  What the image's code does nobody can check: take
 * only what you trust.  Failures: as of opjit_graph_compile. [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_graph_load(opjit_graph *graph, const opjit_compile_options *options,
                                                        const void *image, uint64_t bytes, opjit_kernel **out_kernel,
                                                        opjit_error *error);
/* The graph as DirectML describes it, in *out_desc, for functions that take a DML_GRAPH_DESC: opjit_graph_explain,
 * opjit_plan_graph, opjit_artifact_add_graph.  Owned by the graph, valid until it is changed, compiled or destroyed.
 * Failures: as opjit_graph_compile before it compiles. [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_graph_get_desc(opjit_graph *graph, const DML_GRAPH_DESC **out_desc,
                                                            opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
