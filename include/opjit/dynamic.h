/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/dynamic.h - one kernel for many sizes: a graph in which sizes follow from dynamic dimensions.  Since 0.1.
 *
 *     static opjit_status describe(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out, opjit_error *error)
 *     {
 *         struct my_graph *mine = user;
 *         opjit_graph_destroy(mine->graph);
 *         mine->graph = build_softmax(mine->context, 512, dims[0]);   // as for a size that is known
 *         return opjit_graph_get_desc(mine->graph, out, error);
 *     }
 *     ...
 *     const opjit_dim length = { "length", 1, 4096, 512 };
 *     opjit_compile_dynamic(context, &length, 1, describe, &mine, NULL, &kernel, &error);
 *     call.dims = (uint64_t[]){ 777 };
 *     call.dim_count = 1;
 *     opjit_kernel_call(kernel, &call, &error);
 *
 * A call with any sizes within the bounds gives the bits of the kernel that is compiled for just these, and costs no
 * compile.  The kernel is made of the graph's descriptions for a dozen sizes around the typical ones: their loops have
 * to be the same, and every number in them has to follow from the dimensions.  Where that can't be, the graph is
 * refused, and its sizes are compiled one by one.
 *
 * A graph is described by a function of yours, as a DML_GRAPH_DESC (opjit_compile_dynamic) or with the builder
 * (opjit_graph_compile_dynamic), or by descriptors in which OPJIT_DIM(k) stands for a size
 * (opjit_compile_dynamic_desc). */
#ifndef OPJIT_DYNAMIC_H
#define OPJIT_DYNAMIC_H

#include <opjit/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A dynamic dimension: elements along one dimension of one or more tensors.  Frozen; since 0.1. */
typedef struct opjit_dim {
    const char *name; /* for messages and opjit_kernel_dim_name: 1 to 63 characters; copied */
    uint64_t lo, hi;  /* least and largest size, both included; 1 to 2^31 - 1.  Workspaces are of the largest */
    uint64_t typical; /* the size for which the loops are cut; lo to hi */
} opjit_dim;

/* Describes the graph for these sizes, one for each dimension, in *out_desc, which stays as it is until the next call
 * or until opjit_compile_dynamic returns.  Sizes may lie above hi.  An error means that the graph can't have these
 * sizes.  For all sizes the graph has the same operators, edges, names and constants. [calling thread, 0.1] */
typedef opjit_status (*opjit_describe_fn)(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out_desc,
                                          opjit_error *error);

/* Compiles the graph for all sizes of its dimensions, dim_count of them, 1 to OPJIT_MAX_DIMS, into *out_kernel, or
 * finds it in a cache; the caller releases it.  describe is called on the caller's thread: a few times to look for the kernel, for
 * the largest, the typical and the least sizes, and some fifteen times more to make it; constants above 4 KiB are those
 * of the description for the largest sizes.  Graphs without late fields and custom operators, for CPUs.  Outputs are not
 * made in the place of inputs.  opjit_kernel_optimize does nothing: options say the level.
 * Errors: as of opjit_compile_graph, of describe for sizes within the bounds, and UNSUPPORTED: a kernel for all sizes was
 * not found; the message says what differs.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_dynamic(opjit_context *context, const opjit_dim *dims,
                                                             uint32_t dim_count, opjit_describe_fn describe, void *user,
                                                             const opjit_compile_options *options,
                                                             opjit_kernel **out_kernel, opjit_error *error);

/* Builds the graph for these sizes, in *out_graph, under the same rules; the caller keeps it until the next call, or
 * until opjit_graph_compile_dynamic returns.  [calling thread, 0.1] */
typedef opjit_status (*opjit_build_fn)(void *user, const uint64_t *dims, opjit_graph **out_graph, opjit_error *error);

/* The same as opjit_compile_dynamic with a graph of the builder, whose names of inputs and outputs are the kernel's.
 * With OPJIT_COMPILE_BORROW_CONSTANTS, constants stay where the graph of the last call of build has them, which is for
 * the largest sizes.  Errors: those, and of opjit_graph_compile.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_graph_compile_dynamic(opjit_context *context, const opjit_dim *dims,
                                                                   uint32_t dim_count, opjit_build_fn build, void *user,
                                                                   const opjit_compile_options *options,
                                                                   opjit_kernel **out_kernel, opjit_error *error);

/* In descriptors, the size of dimension k: in Sizes of tensors, and in arrays of unsigned numbers, such as a slice's
 * sizes.  Strides that follow from it are left NULL, and TotalTensorSizeInBytes is not looked at beside it.  There are
 * no sums or products of dimensions; a graph that needs them is described by a function.  No tensor's size is this
 * number: it is refused wherever dimensions are not given. */
#define OPJIT_DIM(k) (0xfffffff0u | (k))

/* The same as opjit_compile_dynamic with a graph whose operators are described with OPJIT_DIM.  operators has an entry
 * for each of desc's nodes, in their order, and may be NULL: where one is not NULL, the node is this operator, and its
 * own Operator is not looked at.  Both are borrowed until the function returns.
 * Errors: those, and of opjit_operator_create for some sizes within the bounds.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_dynamic_desc(opjit_context *context, const opjit_dim *dims,
                                                                  uint32_t dim_count, const DML_GRAPH_DESC *desc,
                                                                  const DML_OPERATOR_DESC *const *operators,
                                                                  const opjit_compile_options *options,
                                                                  opjit_kernel **out_kernel, opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
