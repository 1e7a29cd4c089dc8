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
 * to be the same, and every number in them has to follow from the dimensions.  Where sizes have loops of several kinds,
 * such as sums of more than 4,096 values, the kernel has a function for each of up to 32 ranges.  Where that can't
 * be, the graph is refused, and its sizes are compiled one by one.
 *
 * A least size may be 0, as of the past of a decoder's first step.  For that size the graph is described without what
 * has no elements: an input keeps its place and is described with any size, but nothing reads it, and a call's binding
 * for it may have 0 bytes, and no data; all outputs have elements.  The kernel has functions of its own for it.
 *
 * A graph is described by a function of yours, as a DML_GRAPH_DESC (opjit_compile_dynamic) or with the builder
 * (opjit_graph_compile_dynamic), or by descriptors in which OPJIT_DIM(k) stands for a size
 * (opjit_compile_dynamic_desc).
 *
 * TIERS.  opjit_compile_tiered makes kernels of one size, too, for sizes that are called often: loops of known length
 * are faster where they are short, and at level peak.  They are made beside the dynamic kernel, and calls with their
 * sizes then run them; no call waits for one.  Kernels of opjit_compile_dynamic have none of this. */
#ifndef OPJIT_DYNAMIC_H
#define OPJIT_DYNAMIC_H

#include <opjit/artifact.h>
#include <opjit/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A dynamic dimension: elements along one dimension of one or more tensors.  Frozen; since 0.1. */
typedef struct opjit_dim {
    const char *name; /* for messages and opjit_kernel_dim_name: 1 to 63 characters; copied */
    uint64_t lo, hi;  /* least and largest size, both included: lo 0 to hi, hi 1 to 2^31 - 1.  At most two dimensions
                         of a kernel may begin at 0.  Workspaces are of the largest size */
    uint64_t typical; /* the size for which the loops are cut; lo to hi, but not 0 */
} opjit_dim;

/* Describes the graph for these sizes, one for each dimension, in *out_desc, which stays as it is until the next call
 * or until opjit_compile_dynamic returns.  Sizes may lie above hi.  An error means that the graph can't have these
 * sizes; error is never NULL.  For all sizes the graph has the same operators, edges, names and constants.
 * [calling thread, 0.1] */
typedef opjit_status (*opjit_describe_fn)(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out_desc,
                                          opjit_error *error);

/* Compiles the graph for all sizes of its dimensions, dim_count of them, 1 to OPJIT_MAX_DIMS, into *out_kernel, or
 * finds it in a cache; the caller releases it.  describe is called on the caller's thread: a few times to look for the
 * kernel, for the largest, the typical and the least sizes, and some thirty times for each group of sizes with the same
 * loops that is tried to make it, up to some hundred times in all; constants above 4 KiB are those of the description
 * for the largest sizes.  Graphs without late fields and custom operators, for CPUs.  Outputs are not made in the place
 * of inputs.
 * opjit_kernel_optimize does nothing: options say the level.
 * Errors: as of opjit_compile_graph, of describe for sizes within the bounds, and UNSUPPORTED: a kernel for all sizes
 * was not found; the message says what differs.  [any thread, 0.1] */
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

/* --- ahead of time ------------------------------------------------------------------------------------------------ */
/* Adds the kernel of a graph with dynamic dimensions to an artifact, as opjit_artifact_add_graph does; the graph is as
 * of opjit_compile_dynamic.  Its functions have the sizes of the dimensions behind the buffers, and a status:
 *
 *     int NAME(const T *in0, ..., U *out0, ..., int64_t DIMENSION ..., void *workspace)
 *     int NAME_packed(void *const *buffers, const uint64_t *dims, void *workspace)
 *
 * 0, or 1 + the number of the first dimension that is outside of its bounds; then nothing was done.  The generated
 * header has the bounds, and the bytes of each buffer for given sizes.  For CPUs, without late fields; libraries find
 * such kernels like others, tvmffi has none.
 * Errors: as of opjit_compile_dynamic and opjit_artifact_add_graph.  [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_add_dynamic(opjit_artifact *artifact, const opjit_dim *dims,
                                                                  uint32_t dim_count, opjit_describe_fn describe,
                                                                  void *user, const opjit_compile_options *options,
                                                                  opjit_error *error);
/* The same of descriptors with OPJIT_DIM, as of opjit_compile_dynamic_desc.  [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_add_dynamic_desc(opjit_artifact *artifact, const opjit_dim *dims,
                                                                       uint32_t dim_count, const DML_GRAPH_DESC *desc,
                                                                       const DML_OPERATOR_DESC *const *operators,
                                                                       const opjit_compile_options *options,
                                                                       opjit_error *error);

/* --- tiers -------------------------------------------------------------------------------------------------------- */
/* Which kernels of one size are made, and where.
 * A host with threads of its own, such as a graph compiler or a server, gives an executor: sizes that are called often
 * get their kernel on its threads, or on those of opjit_workers_executor, and nobody has to ask.  A host whose describe
 * may run on certain threads only, or that knows its sizes beforehand, leaves it NULL and calls
 * opjit_kernel_specialize: a Python program on a thread that can wait for the interpreter's lock, a server with padded
 * lengths when it starts.
 * Since 0.1. */
typedef struct opjit_tiers {
    uint32_t struct_size; /* bytes; OPJIT_TIERS_INIT sets it */
    uint32_t kernels;     /* of one size at a time, at most 64; the one used least recently leaves for another; 0: 16 */
    uint32_t calls;       /* with the same sizes, after which their kernel is made, at most 2^22; 0: 1000.  Of rare
                             sizes they may be forgotten where more than 256 sets of sizes take turns */
    opjit_level level;    /* of kernels of one size; AUTO: that of the compile options */
    const struct opjit_async_executor *executor; /* of async.h, runs the compiles, one of a kernel at a time; *executor
                                                    is copied; NULL: only opjit_kernel_specialize makes kernels */
    void (*release)(void *user); /* called once, on any thread, when describe won't be called any more and nothing that
                                    it described is read any more: when the last reference to the kernel is released, or
                                    when the compile ends that was submitted before that; NULL: nothing is called */
} opjit_tiers;
#define OPJIT_TIERS_INIT { sizeof(opjit_tiers), 0, 0, OPJIT_LEVEL_AUTO, NULL, NULL }

/* As opjit_compile_dynamic, with tiers.  *out_kernel is the caller's alone; what it is made of is in the caches, and so
 * are the kernels of one size, which are those of opjit_compile_graph.  describe is called later, too, for one set of
 * sizes at a time, on threads of the executor and by opjit_kernel_specialize.  user stays until release is called,
 * which isn't where this fails; with OPJIT_COMPILE_BORROW_CONSTANTS so does the memory of all constants described.
 * Calls that begin when the kernel of their sizes is made run it, with the same checks and bits.  The dynamic one runs
 * other sizes, calls under way, those of opjit_kernel_call_timed, and those whose workspace is too small.  A call that
 * finds its sizes called often enough submits the compile, which allocates.  Sizes whose kernel can't be made are
 * remembered, and their calls go on as before.  Releasing the kernel cancels what is being compiled, and doesn't wait;
 * destroying the context does both.  opjit_cache_stats counts all of it. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_tiered(opjit_context *context, const opjit_dim *dims,
                                                            uint32_t dim_count, opjit_describe_fn describe, void *user,
                                                            const opjit_compile_options *options,
                                                            const opjit_tiers *tiers, opjit_kernel **out_kernel,
                                                            opjit_error *error);

/* Makes the kernel for these sizes, unless there is one, on the caller's thread, and returns when calls run it.  Waits
 * where another one of this kernel is being made.
 * Errors: INVALID_ARGUMENT (a kernel without tiers; sizes; describe itself calls this), UNAVAILABLE (calls are in all
 * kernels that could leave), CANCELLED (the context was destroyed), those of describe and of opjit_compile_graph.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_specialize(opjit_kernel *kernel, const uint64_t *dims,
                                                               uint32_t dim_count, opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
