/* SPDX-License-Identifier: Apache-2.0 */
/* oom_rows.h - shared by the tests of public calls that run out of memory: an allocator whose n-th allocation fails,
 * what the calls need, and the loop over n.  LLVM's own memory does not go through the hook. */
#ifndef OPJIT_TESTS_OOM_ROWS_H
#define OPJIT_TESTS_OOM_ROWS_H

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/artifact.h>
#include <opjit/opjit.h>
#include <opjit/reflect.h>

/* --- an allocator that fails once --------------------------------------------------------------------------------- */

static atomic_long live_blocks, live_bytes;
static long countdown; /* allocations until the failing one; 0: none fails */
static bool has_failed;

static inline void *allocate(void *user, size_t size, size_t alignment)
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

static inline void release(void *user, void *memory, size_t size)
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

static inline void count_event(void *user, const opjit_event *event)
{
    (void)user;
    ck_assert_ptr_nonnull(event->line);
}

static inline opjit_status create_context_for(const char *device, opjit_context **out, opjit_error *error)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;

    options.device = device;
    options.device_driver = getenv("OPJIT_TEST_CUDA");
    options.allocator = &allocator;
    options.event = count_event;
    options.codegen_path = getenv("OPJIT_CODEGEN");
    return opjit_context_create(&options, out, error);
}

static inline opjit_status create_context(opjit_context **out, opjit_error *error)
{
    return create_context_for(NULL, out, error);
}

static inline opjit_status compile(const world *w, uint32_t flags, uint32_t late_count, opjit_kernel **out,
                                   opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;

    options.flags = flags;
    options.late = late;
    options.late_count = late_count;
    return opjit_compile_operator(w->context, w->op, &options, out, error);
}

static inline void check_output(opjit_status status, const void *out)
{
    ck_assert_msg((status == OPJIT_OK) == (out != NULL), "%s with output %p", opjit_status_name(status), out);
}

static inline void count_stage(void *user, const char *stage, const char *text)
{
    (void)stage, (void)text;
    ++*(int *)user;
}

/* Three nodes of the operator: one reads input 0, one reads that node's output, and one a constant, small or bound to
 * the kernel. */
static inline opjit_status with_graph(world *w, size_t constant_bytes, const opjit_compile_options *options,
                                      int *stages, opjit_artifact *artifact, opjit_kernel **out, opjit_error *error)
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

static inline void build(world *w, bool code)
{
    opjit_error error;

    *w = (world){ NULL, NULL, NULL };
    ck_assert_msg(create_context(&w->context, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_operator_create(w->context, &desc, &w->op, NULL), OPJIT_OK);
    ck_assert_msg(compile(w, code ? OPJIT_COMPILE_NO_CACHE : OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE, 0,
                          &w->kernel, &error) == OPJIT_OK,
                  "%s", error.message);
}

static inline void tear_down(world *w)
{
    opjit_kernel_release(w->kernel);
    opjit_operator_release(w->op);
    opjit_context_destroy(w->context);
}

static inline bool have_codegen(void)
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

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* A call: its status, after a check that its output is complete or NULL. */
typedef struct oom_row {
    const char *name;
    opjit_status (*run)(world *w, opjit_error *error);
    bool code; /* it needs code generation */
} oom_row;

/* Allocation 1, 2, 3 ... fails until none is left to fail: each time OPJIT_OUT_OF_MEMORY, outputs NULL, nothing leaked
 * and nothing broken. */
static inline void oom_check(const oom_row *row, bool is_first)
{
    if (row->code && !have_codegen())
        return;
    if (!row->code && !is_first && getenv("OPJIT_OUT_OF_PROCESS") != NULL)
        return; /* process.oom_*: what compiles nothing is the same as in oom.* */
    for (long fail_at = 1;; fail_at++) {
        opjit_error error = { 0 };
        opjit_status status;
        bool failed;
        world w;
        build(&w, row->code);
        has_failed = false;
        countdown = fail_at;
        status = row->run(&w, &error);
        countdown = 0;
        failed = has_failed;
        ck_assert_msg(status == (failed ? OPJIT_OUT_OF_MEMORY : OPJIT_OK), "%s, allocation %ld: %s, %s", row->name,
                      fail_at, opjit_status_name(status), error.message);
        ck_assert_msg(!failed || strstr(error.message, "out of memory") != NULL, "%s, allocation %ld: %s", row->name,
                      fail_at, error.message);
        /* Nothing is broken: the same call now succeeds. */
        ck_assert_msg(row->run(&w, &error) == OPJIT_OK, "%s after allocation %ld: %s", row->name, fail_at,
                      error.message);
        tear_down(&w);
        ck_assert_msg(atomic_load(&live_blocks) == 0 && atomic_load(&live_bytes) == 0,
                      "%s, allocation %ld: %ld blocks leaked", row->name, fail_at, atomic_load(&live_blocks));
        if (!failed) {
            printf("%s: %ld allocations\n", row->name, fail_at - 1);
            break;
        }
    }
}

#endif
