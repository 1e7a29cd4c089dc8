/* SPDX-License-Identifier: Apache-2.0 */
/* test_oom_public.c - every public call that may allocate, with allocation 1, 2, 3 ... failing until none is left to
 * fail: each time OPJIT_OUT_OF_MEMORY, outputs NULL, nothing leaked and nothing broken.  LLVM's own memory does not go
 * through the hook. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/artifact.h>
#include <opjit/async.h>
#include <opjit/cache.h>
#include <opjit/device.h>
#include <opjit/dynamic.h>
#include <opjit/ffi.h>
#include <opjit/graph_ops.h>
#include <opjit/opjit.h>
#include <opjit/reflect.h>

/* --- an allocator that fails once --------------------------------------------------------------------------------- */

static atomic_long live_blocks, live_bytes;
static long countdown; /* allocations until the failing one; 0: none fails */
static bool has_failed;

static void *allocate(void *user, size_t size, size_t alignment)
{
    void *memory;

    (void)user;
    if (countdown > 0 && --countdown == 0) {
        has_failed = true;
        return NULL;
    }
    memory = aligned_alloc(alignment < 16 ? 16 : alignment, (size + 63) / 64 * 64);
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0xa5, size); /* unwritten memory must not be read */
    atomic_fetch_add(&live_blocks, 1);
    atomic_fetch_add(&live_bytes, (long)size);
    return memory;
}

static void release(void *user, void *memory, size_t size)
{
    (void)user;
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0x5a, size);
    atomic_fetch_sub(&live_blocks, 1);
    atomic_fetch_sub(&live_bytes, (long)size);
    free(memory);
}

static const opjit_allocator allocator = { NULL, allocate, release };

/* --- the objects that calls need ---------------------------------------------------------------------------------- */

typedef struct world {
    opjit_context *context;
    opjit_operator *op;
    opjit_kernel *kernel; /* interpreted, or compiled where the row says so */
} world;

static const uint32_t sizes[] = { 5, 7 };
static const DML_BUFFER_TENSOR_DESC buffer = {
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0
};
static const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
static const DML_DIAGONAL_MATRIX1_OPERATOR_DESC matrix = { &tensor,          &tensor, DML_TENSOR_DATA_TYPE_FLOAT32,
                                                           { .Float32 = 3 }, 0,       2 };
static const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX1, &matrix };
static const char *const late[] = { "DiagonalFillEnd", "Value" };

static void count_event(void *user, const opjit_event *event)
{
    (void)user;
    ck_assert_ptr_nonnull(event->line);
}

static opjit_status create_context_for(const char *device, opjit_context **out, opjit_error *error)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;

    options.device = device;
    options.device_driver = getenv("OPJIT_TEST_CUDA");
    options.allocator = &allocator;
    options.event = count_event;
    options.codegen_path = getenv("OPJIT_CODEGEN");
    return opjit_context_create(&options, out, error);
}

static opjit_status create_context(opjit_context **out, opjit_error *error)
{
    return create_context_for(NULL, out, error);
}

static opjit_status compile(const world *w, uint32_t flags, uint32_t late_count, opjit_kernel **out, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;

    options.flags = flags;
    options.late = late;
    options.late_count = late_count;
    return opjit_compile_operator(w->context, w->op, &options, out, error);
}

/* --- one row per call: the status, after a check that its output is complete or NULL ----------------------------- */

static void check_output(opjit_status status, const void *out)
{
    ck_assert_msg((status == OPJIT_OK) == (out != NULL), "%s with output %p", opjit_status_name(status), out);
}

static opjit_status context_create(world *w, opjit_error *error)
{
    opjit_context *context = (opjit_context *)w;
    const opjit_status status = create_context(&context, error);

    check_output(status, context);
    opjit_context_destroy(context);
    return status;
}

static opjit_status operator_create(world *w, opjit_error *error)
{
    opjit_operator *op = (opjit_operator *)w;
    const opjit_status status = opjit_operator_create(w->context, &desc, &op, error);

    check_output(status, op);
    opjit_operator_release(op);
    return status;
}

static opjit_status compile_with(world *w, uint32_t flags, uint32_t late_count, opjit_error *error)
{
    opjit_kernel *kernel = (opjit_kernel *)w;
    const opjit_status status = compile(w, flags, late_count, &kernel, error);

    check_output(status, kernel);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

static opjit_status compile_interpreted(world *w, opjit_error *error)
{
    return compile_with(w, OPJIT_COMPILE_INTERPRET, 0, error);
}
static opjit_status compile_late(world *w, opjit_error *error)
{
    return compile_with(w, OPJIT_COMPILE_INTERPRET, 2, error);
}
static opjit_status compile_uncached(world *w, opjit_error *error)
{
    return compile_with(w, OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE, 0, error);
}
static opjit_status compile_code(world *w, opjit_error *error)
{
    return compile_with(w, 0, 0, error);
}
static opjit_status compile_code_late(world *w, opjit_error *error)
{
    return compile_with(w, 0, 1, error);
}

static opjit_status call(world *w, opjit_error *error)
{
    float input[35] = { 0 }, output[35] = { 0 };
    const opjit_binding bindings[] = { { input, sizeof input }, { output, sizeof output } };
    opjit_call c = OPJIT_CALL_INIT;
    opjit_status status;

    c.bindings = bindings;
    c.binding_count = 2;
    status = opjit_kernel_call(w->kernel, &c, error);
    ck_assert(status != OPJIT_OK || (output[0] == 3 && output[1] == 3 && output[2] == 0 && output[34] == 0));
    return status;
}

static opjit_status closure(world *w, opjit_error *error)
{
    opjit_closure *made = NULL;
    void (*function)(void) = NULL;
    const opjit_status status = opjit_closure_create(w->kernel, &made, &function, error);

    check_output(status, made);
    opjit_closure_destroy(made);
    return status;
}

static opjit_status optimize(world *w, opjit_error *error)
{
    return opjit_kernel_optimize(w->kernel, error);
}
static opjit_status warm(world *w, opjit_error *error)
{
    return opjit_context_warm(w->context, error);
}

static void count_stage(void *user, const char *stage, const char *text)
{
    (void)stage, (void)text;
    ++*(int *)user;
}

static opjit_status explain(world *w, opjit_error *error)
{
    int stages = 0;
    const opjit_status status = opjit_operator_explain(w->context, w->op, NULL, count_stage, &stages, error);

    ck_assert(status != OPJIT_OK || stages >= 7);
    return status;
}

/* Three nodes of the operator: one reads input 0, one reads that node's output, and one a constant, small or bound to
 * the kernel. */
static opjit_status with_graph(world *w, size_t constant_bytes, const opjit_compile_options *options, int *stages,
                               opjit_artifact *artifact, opjit_kernel **out, opjit_error *error)
{
    static const float data[5000 / sizeof(float)] = { 1 };
    const DML_OPERATOR_GRAPH_NODE_DESC node = { w->op, "node" };
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC constant = { data, constant_bytes, "constant" };
    const DML_INPUT_GRAPH_EDGE_DESC input = { 0, 0, 0, NULL };
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC edges[] = { { 0, 0, 1, 0, NULL }, { 3, 0, 2, 0, NULL } };
    const DML_OUTPUT_GRAPH_EDGE_DESC outputs[] = { { 1, 0, 0, NULL }, { 2, 0, 1, NULL } };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &node },
                                          { DML_GRAPH_NODE_TYPE_OPERATOR, &node },
                                          { DML_GRAPH_NODE_TYPE_OPERATOR, &node },
                                          { DML_GRAPH_NODE_TYPE_CONSTANT, &constant } };
    const DML_GRAPH_EDGE_DESC input_edges[] = { { DML_GRAPH_EDGE_TYPE_INPUT, &input } };
    const DML_GRAPH_EDGE_DESC inner_edges[] = { { DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edges[0] },
                                                { DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edges[1] } };
    const DML_GRAPH_EDGE_DESC output_edges[] = { { DML_GRAPH_EDGE_TYPE_OUTPUT, &outputs[0] },
                                                 { DML_GRAPH_EDGE_TYPE_OUTPUT, &outputs[1] } };
    const DML_GRAPH_DESC graph = { 1, 2, 4, nodes, 1, input_edges, 2, output_edges, 2, inner_edges };

    if (stages != NULL)
        return opjit_graph_explain(w->context, &graph, options, count_stage, stages, error);
    if (artifact != NULL)
        return opjit_artifact_add_graph(artifact, &graph, options, error);
    if (out == NULL)
        return opjit_check_graph(w->context, &graph, NULL, NULL, error);
    return opjit_compile_graph(w->context, &graph, options, out, error);
}

static opjit_status graph_with(world *w, uint32_t flags, size_t constant_bytes, opjit_error *error)
{
    static const char *const names[] = { "1.Value" };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_status status;

    options.flags = flags;
    options.late = names;
    options.late_count = 1;
    status = with_graph(w, constant_bytes, &options, NULL, NULL, &kernel, error);
    check_output(status, kernel);
    opjit_kernel_release(kernel);
    return status;
}

static opjit_status graph_check(world *w, opjit_error *error)
{
    return with_graph(w, 140, NULL, NULL, NULL, NULL, error);
}

static opjit_status graph_small(world *w, opjit_error *error)
{
    return graph_with(w, OPJIT_COMPILE_INTERPRET, 140, error);
}
static opjit_status graph_bound(world *w, opjit_error *error)
{
    return graph_with(w, OPJIT_COMPILE_INTERPRET, 5000, error);
}
static opjit_status graph_code(world *w, opjit_error *error)
{
    return graph_with(w, 0, 5000, error);
}

/* A context for the fake driver's device, and a kernel with a constant of its own, called once. */
static opjit_status device(world *w, opjit_error *error)
{
    world there = *w;
    opjit_kernel *kernel = NULL;
    float host[35] = { 0 };
    opjit_binding bindings[3] = { { NULL, sizeof host }, { NULL, sizeof host }, { NULL, sizeof host } };
    opjit_call c = OPJIT_CALL_INIT;
    opjit_status status = create_context_for("cuda", &there.context, error);

    if (status == OPJIT_OK)
        status = with_graph(&there, 5000, NULL, NULL, NULL, &kernel, error);
    for (int i = 0; i < 3 && status == OPJIT_OK; i++) {
        status = opjit_device_allocate(there.context, sizeof host, &bindings[i].data, error);
        if (status == OPJIT_OK)
            status = opjit_device_write(there.context, NULL, bindings[i].data, host, sizeof host, error);
    }
    c.bindings = bindings;
    c.binding_count = 3;
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &c, error);
    if (status == OPJIT_OK)
        status = opjit_device_read(there.context, NULL, host, bindings[2].data, sizeof host, error);
    ck_assert(status != OPJIT_OK || (host[0] == 3 && host[1] == 3 && host[2] == 0));
    for (int i = 0; i < 3; i++)
        opjit_device_free(there.context, bindings[i].data);
    opjit_kernel_release(kernel);
    if (there.context != w->context)
        opjit_context_destroy(there.context);
    return status;
}

static opjit_status graph_explain(world *w, opjit_error *error)
{
    int stages = 0;
    const opjit_status status = with_graph(w, 140, NULL, &stages, NULL, NULL, error);

    ck_assert(status != OPJIT_OK || stages >= 7);
    return status;
}

/* Adds the operator and a graph, and makes outputs first to last. */
static opjit_status artifact_outputs(world *w, opjit_artifact_kind first, opjit_artifact_kind last, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact_options targets = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact = (opjit_artifact *)w;
    opjit_status status;
    const void *data;
    uint64_t bytes;

    targets.targets = (const char *[]){ "cpu:x86-64-v2", "cpu:x86-64-v3" };
    targets.target_count = 2;
    targets.flags = first == OPJIT_ARTIFACT_WEIGHTS ? OPJIT_ARTIFACT_WEIGHTS_APART : 0;
    options.name = "band";
    options.late = late;
    options.late_count = 2;
    options.level = OPJIT_LEVEL_QUICK;
    status = opjit_artifact_create(w->context, &targets, &artifact, error);
    check_output(status, artifact);
    if (status == OPJIT_OK)
        status = opjit_artifact_add_operator(artifact, w->op, &options, error);
    ck_assert_uint_eq(opjit_artifact_count(artifact), status == OPJIT_OK);
    options.name = "graph";
    options.late_count = 0;
    if (status == OPJIT_OK)
        status = with_graph(w, 5000, &options, NULL, artifact, NULL, error);
    for (opjit_artifact_kind kind = first; status == OPJIT_OK && kind <= last; kind++) {
        status = opjit_artifact_get(artifact, 1, kind, &data, &bytes, error);
        check_output(status, data);
    }
    opjit_artifact_destroy(artifact);
    return status;
}

static opjit_status artifact_header(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_HEADER, OPJIT_ARTIFACT_HEADER, error);
}
static opjit_status artifact_texts(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_IR, OPJIT_ARTIFACT_JSON, error);
}
static opjit_status artifact_weights(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_WEIGHTS, OPJIT_ARTIFACT_WEIGHTS, error);
}
static opjit_status artifact_libraries(world *w, opjit_error *error)
{
    return artifact_outputs(w, OPJIT_ARTIFACT_ARCHIVE, OPJIT_ARTIFACT_LIBRARY_HEADER, error);
}

/* A library's file, made once with an allocator that never fails. */
static const char *library_path(void)
{
    static char path[] = "/tmp/opjit-oom-XXXXXX";
    static bool made;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_context *context;
    opjit_operator *op;
    opjit_artifact *artifact;
    const void *data;
    uint64_t bytes;
    FILE *file;

    if (made)
        return path;
    options.name = "band";
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_create(context, NULL, &artifact, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_add_operator(artifact, op, &options, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_SHARED, &data, &bytes, NULL), OPJIT_OK);
    file = fdopen(mkstemp(path), "wb");
    ck_assert(file != NULL && fwrite(data, 1, (size_t)bytes, file) == bytes && fclose(file) == 0);
    opjit_artifact_destroy(artifact);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    made = true;
    return path;
}

static opjit_status library(world *w, opjit_error *error)
{
    const long before = countdown;
    opjit_library *opened = (opjit_library *)w;
    opjit_kernel *kernel = NULL;
    opjit_status status;

    countdown = 0;
    const char *path = library_path();
    countdown = before;
    status = opjit_library_open(w->context, path, &opened, error);
    check_output(status, opened);
    if (status == OPJIT_OK) {
        status = opjit_library_find(opened, "band", &kernel, error);
        check_output(status, kernel);
    }
    opjit_library_close(opened);
    opjit_kernel_release(kernel);
    return status;
}

static opjit_status submit_inline(void *user, void (*task)(void *arg), void *arg)
{
    (void)user;
    task(arg);
    return OPJIT_OK;
}

/* Failure of the submission, or of the job. */
static opjit_status async_with(world *w, const DML_GRAPH_DESC *graph, uint32_t flags, opjit_tier first,
                               opjit_error *error)
{
    static const opjit_async_executor executor = { NULL, submit_inline };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_async_desc d = OPJIT_ASYNC_DESC_INIT;
    opjit_job *job = (opjit_job *)w;
    opjit_kernel *kernel = NULL;
    opjit_status status;

    options.flags = flags;
    d.op = graph == NULL ? w->op : NULL;
    d.graph = graph;
    d.options = &options;
    d.executor = &executor;
    d.first = (uint32_t)first;
    status = opjit_compile_async(w->context, &d, &job, error);
    check_output(status, job);
    if (status == OPJIT_OK) {
        status = opjit_job_wait(job, &kernel, error);
        check_output(status, kernel);
    }
    opjit_kernel_release(kernel);
    opjit_job_release(job);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

static opjit_status async(world *w, opjit_error *error)
{
    return async_with(w, NULL, OPJIT_COMPILE_INTERPRET, OPJIT_TIER_NONE, error);
}
static opjit_status async_tiers(world *w, opjit_error *error)
{
    const opjit_status status = async_with(w, NULL, 0, OPJIT_TIER_INTERPRETED, error);
    return status == OPJIT_OK ? async_with(w, NULL, 0, OPJIT_TIER_QUICK, error) : status;
}
static opjit_status async_graph(world *w, opjit_error *error)
{
    static const float data[5000 / sizeof(float)] = { 1 };
    const DML_OPERATOR_GRAPH_NODE_DESC node = { w->op, "node" };
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC constant = { data, sizeof data, "constant" };
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC edge = { 1, 0, 0, 0, "edge" };
    const DML_OUTPUT_GRAPH_EDGE_DESC output = { 0, 0, 0, NULL };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &node },
                                          { DML_GRAPH_NODE_TYPE_CONSTANT, &constant } };
    const DML_GRAPH_EDGE_DESC edges[] = { { DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edge } };
    const DML_GRAPH_EDGE_DESC outputs[] = { { DML_GRAPH_EDGE_TYPE_OUTPUT, &output } };
    const DML_GRAPH_DESC graph = { 0, 1, 2, nodes, 0, NULL, 1, outputs, 1, edges };

    return async_with(w, &graph, OPJIT_COMPILE_INTERPRET, OPJIT_TIER_NONE, error);
}

static opjit_status workers(world *w, opjit_error *error)
{
    opjit_workers *made = (opjit_workers *)w;
    const opjit_status status = opjit_workers_create(&allocator, 2, &made, error);

    check_output(status, made);
    opjit_workers_destroy(made);
    return status;
}

static bool visit_none(void *user, const opjit_cache_entry *entry)
{
    ++*(int *)user;
    return entry->kernel != NULL;
}

static opjit_status enumerate(world *w, opjit_error *error)
{
    opjit_kernel *kernel = NULL;
    int visits = 0;
    opjit_status status = compile(w, OPJIT_COMPILE_INTERPRET, 0, &kernel, error);

    if (status == OPJIT_OK)
        status = opjit_cache_enumerate(w->context, OPJIT_CACHE_MEMORY, visit_none, &visits, error);
    if (status == OPJIT_OK)
        status = opjit_cache_verify(w->context, OPJIT_CACHE_MEMORY, NULL, visit_none, &visits, error);
    ck_assert(status != OPJIT_OK || visits == 2);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

static opjit_status call_timed(world *w, opjit_error *error)
{
    float input[35] = { 0 }, output[35] = { 0 };
    const opjit_binding bindings[] = { { input, sizeof input }, { output, sizeof output } };
    opjit_step_time times[4];
    opjit_call c = OPJIT_CALL_INIT;
    uint32_t steps;

    c.bindings = bindings;
    c.binding_count = 2;
    return opjit_kernel_call_timed(w->kernel, &c, times, 4, &steps, error);
}

static opjit_status info(world *w, opjit_error *error)
{
    opjit_kernel_info out = OPJIT_KERNEL_INFO_INIT;
    return opjit_kernel_get_info(w->kernel, &out, error);
}

static opjit_status statistics(world *w, opjit_error *error)
{
    opjit_cache_stats out = OPJIT_CACHE_STATS_INIT;
    return opjit_cache_get_stats(w->context, &out, error);
}

/* clang-format off */
/* Sticky: whichever call the allocation fails in, the last one tells. */
static opjit_status graph_builder(world *w, opjit_error *error)
{
    static const uint32_t axes[] = { 1, 0 };
    static const float data[35] = { 0 };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = (opjit_kernel *)w;
    opjit_graph *g = (opjit_graph *)w;
    opjit_status status = opjit_graph_create(w->context, &g, error);
    opjit_tensor x;

    check_output(status, g);
    if (status != OPJIT_OK)
        return status;
    x = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes);
    x = opjit_graph_add(g, x, opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, data, sizeof data, 0));
    for (int i = 0; i < 20; i++) /* more than the arrays begin with */
        x = opjit_graph_add(g, opjit_graph_scalar(g, DML_TENSOR_DATA_TYPE_FLOAT32, 1), x);
    opjit_graph_name(g, x, "sum");
    opjit_graph_output(g, "y", opjit_graph_transpose(g, x, axes));
    options.flags = OPJIT_COMPILE_INTERPRET;
    status = opjit_graph_compile(g, &options, &kernel, error);
    check_output(status, kernel);
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

/* The matrix with a dimension for its rows. */
static opjit_status dynamic_desc(world *w, opjit_error *error)
{
    static const uint32_t of_rows[] = { OPJIT_DIM(0), 7 };
    static const DML_BUFFER_TENSOR_DESC rows_of = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, of_rows, NULL, 0, 0
    };
    const DML_TENSOR_DESC given = { DML_TENSOR_TYPE_BUFFER, &rows_of };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC fields = { NULL, &given, DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 3 },
                                                        INT32_MIN, 1 };
    const DML_OPERATOR_DESC symbolic = { DML_OPERATOR_DIAGONAL_MATRIX1, &fields }, *const operators[] = { &symbolic };
    const DML_OPERATOR_GRAPH_NODE_DESC op = { NULL, "mask" };
    const DML_GRAPH_NODE_DESC node = { DML_GRAPH_NODE_TYPE_OPERATOR, &op };
    const DML_OUTPUT_GRAPH_EDGE_DESC out = { 0, 0, 0, NULL };
    const DML_GRAPH_EDGE_DESC edge = { DML_GRAPH_EDGE_TYPE_OUTPUT, &out };
    const DML_GRAPH_DESC graph = {
        .OutputCount = 1, .NodeCount = 1, .Nodes = &node, .OutputEdgeCount = 1, .OutputEdges = &edge
    };
    const opjit_dim dim = { "n", 1, 40, 20 };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = (opjit_kernel *)w;

    options.flags = OPJIT_COMPILE_INTERPRET;
    const opjit_status status =
        opjit_compile_dynamic_desc(w->context, &dim, 1, &graph, operators, &options, &kernel, error);
    check_output(status, kernel);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

/* A product with a constant, of which the kernel keeps a copy. */
static opjit_status kept(world *w, opjit_error *error)
{
    static const uint32_t of_x[] = { 3, 40 }, of_b[] = { 48, 40 };
    static const float data[48 * 40] = { 1 };
    opjit_kernel_info made = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel = (opjit_kernel *)w;
    opjit_graph *g = (opjit_graph *)w;
    opjit_status status = opjit_graph_create(w->context, &g, error);

    check_output(status, g);
    if (status != OPJIT_OK)
        return status;
    const opjit_tensor x = opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, of_x);
    const opjit_tensor b = opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, of_b, data, sizeof data, 0);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, x, b, 0, true));
    status = opjit_graph_compile(g, NULL, &kernel, error);
    check_output(status, kernel);
    if (status == OPJIT_OK) {
        ck_assert_int_eq(opjit_kernel_get_info(kernel, &made, NULL), OPJIT_OK);
        ck_assert_uint_ge(made.kept_bytes, sizeof data);
        status = opjit_kernel_optimize(kernel, error);
    }
    opjit_kernel_release(kernel);
    opjit_graph_destroy(g);
    ck_assert_int_eq(opjit_cache_clear(w->context, NULL), OPJIT_OK);
    return status;
}

static opjit_status plan(world *w, opjit_error *error)
{
    opjit_plan *made = (opjit_plan *)w;
    const opjit_status status = opjit_plan_operator(w->context, w->op, NULL, &made, error);

    check_output(status, made);
    opjit_plan_destroy(made);
    return status;
}

static const struct { const char *name; opjit_status (*run)(world *w, opjit_error *error); bool code; } rows[] = {
    { "context_create", context_create, false },
    { "operator_create", operator_create, false },
    { "compile, interpreted", compile_interpreted, false },
    { "compile, late", compile_late, false },
    { "compile, uncached", compile_uncached, false },
    { "kernel_call, interpreted", call, false },
    { "kernel_get_info", info, false },
    { "cache_get_stats", statistics, false },
    { "closure_create", closure, false },
    { "operator_explain", explain, false },
    { "check_graph", graph_check, false },
    { "compile_graph, interpreted", graph_small, false },
    { "compile_graph, bound constants", graph_bound, false },
    { "graph_explain", graph_explain, false },
    { "graph builder", graph_builder, false },
    { "compile_dynamic_desc", dynamic_desc, false },
    { "plan", plan, false },
    { "artifact, header", artifact_header, false },
    { "artifact, texts", artifact_texts, false },
    { "artifact, weights", artifact_weights, false },
    { "artifact, libraries", artifact_libraries, true },
    { "library_open, find", library, true },
    { "context_warm", warm, true },
    { "compile_graph, code", graph_code, true },
    { "compile, code", compile_code, true },
    { "compile_graph, kept memory", kept, true },
    { "compile, code, late", compile_code_late, true },
    { "kernel_call, code", call, true },
    { "a kernel on a device", device, true },
    { "kernel_optimize", optimize, true },
    { "compile_async", async, false },
    { "compile_async, tiers", async_tiers, true },
    { "compile_async, a graph", async_graph, false },
    { "workers_create", workers, false },
    { "cache_enumerate, verify", enumerate, false },
    { "kernel_call_timed", call_timed, false },
};
/* clang-format on */

static void build(world *w, bool code)
{
    opjit_error error;

    *w = (world){ NULL, NULL, NULL };
    ck_assert_msg(create_context(&w->context, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_operator_create(w->context, &desc, &w->op, NULL), OPJIT_OK);
    ck_assert_msg(compile(w, code ? OPJIT_COMPILE_NO_CACHE : OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE, 0,
                          &w->kernel, &error) == OPJIT_OK,
                  "%s", error.message);
}

static void tear_down(world *w)
{
    opjit_kernel_release(w->kernel);
    opjit_operator_release(w->op);
    opjit_context_destroy(w->context);
}

static bool have_codegen(void)
{
    opjit_context *context;
    opjit_error error;
    bool have;

    ck_assert_int_eq(create_context(&context, NULL), OPJIT_OK);
    have = opjit_context_warm(context, &error) == OPJIT_OK;
    if (!have)
        printf("skipped: %s\n", error.message);
    opjit_context_destroy(context);
    return have;
}

START_TEST(fails_one_by_one)
{
    if (rows[_i].code && !have_codegen())
        return;
    if (!rows[_i].code && _i != 0 && getenv("OPJIT_OUT_OF_PROCESS") != NULL)
        return; /* process.memory: what compiles nothing is the same as in oom.public */
    for (long fail_at = 1;; fail_at++) {
        opjit_error error = { 0 };
        opjit_status status;
        bool failed;
        world w;
        build(&w, rows[_i].code);
        has_failed = false;
        countdown = fail_at;
        status = rows[_i].run(&w, &error);
        countdown = 0;
        failed = has_failed;
        ck_assert_msg(status == (failed ? OPJIT_OUT_OF_MEMORY : OPJIT_OK), "%s, allocation %ld: %s, %s", rows[_i].name,
                      fail_at, opjit_status_name(status), error.message);
        ck_assert_msg(!failed || strstr(error.message, "out of memory") != NULL, "%s, allocation %ld: %s",
                      rows[_i].name, fail_at, error.message);
        /* Nothing is broken: the same call now succeeds. */
        ck_assert_msg(rows[_i].run(&w, &error) == OPJIT_OK, "%s after allocation %ld: %s", rows[_i].name, fail_at,
                      error.message);
        tear_down(&w);
        ck_assert_msg(atomic_load(&live_blocks) == 0 && atomic_load(&live_bytes) == 0,
                      "%s, allocation %ld: %ld blocks leaked", rows[_i].name, fail_at, atomic_load(&live_blocks));
        if (!failed) {
            printf("%s: %ld allocations\n", rows[_i].name, fail_at - 1);
            break;
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom.public");
    TCase *tcase = tcase_create("oom");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 240);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, fails_one_by_one, 0, sizeof rows / sizeof *rows);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
