/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_graph.c - bytes as a DML_GRAPH_DESC of any operators: nodes, constants and edges, most of them legal.  Either it
 * is refused with a message at a bounded cost, or the lowered graph run literally, the interpreted kernel and the
 * compiled kernel compute the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/fuzz_descriptor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODES = 12, EDGES = 64, MOST_BYTES = 160 << 20 };

/* Drops edges for which there is no room. */
static void add_input(graph_case *g, uint32_t index, uint32_t node, uint32_t input)
{
    if (g->desc.InputEdgeCount < EDGES)
        graph_input(g, index, node, input);
}

static void add_edge(graph_case *g, uint32_t from, uint32_t output, uint32_t to, uint32_t input)
{
    if (g->desc.IntermediateEdgeCount < EDGES)
        graph_edge(g, from, output, to, input);
}

static uint32_t outputs_of(const graph_case *g, uint32_t node)
{
    return g->nodes[node].Type == DML_GRAPH_NODE_TYPE_CONSTANT ? 1 : g->operators[node].Operator->output_count;
}

/* Draws what drives each input of the node: an earlier node, a graph's input, nothing, or now and then anything. */
static void connect(fuzz_reader *r, graph_case *g, uint32_t node, const opjit_operator *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!op->inputs[i].present && !fuzz_sometimes(r, 4))
            continue;
        const uint32_t from = node != 0 ? node - 1 - fuzz_choose(r, node) : 0;
        switch (fuzz_choose(r, 4)) {
        case 0:
        case 1:
            if (node != 0) {
                add_edge(g, from, outputs_of(g, from) > 1 ? fuzz_choose(r, outputs_of(g, from)) : 0, node, i);
                break;
            }
            add_input(g, g->desc.InputCount, node, i);
            break;
        case 2: add_input(g, fuzz_choose(r, g->desc.InputCount + 1), node, i); break;
        default:
            if (fuzz_sometimes(r, 32))
                add_edge(g, (uint32_t)fuzz_take(r, 1), (uint32_t)fuzz_take(r, 1), (uint32_t)fuzz_take(r, 1), i);
            else
                add_input(g, g->desc.InputCount, node, i);
            break;
        }
    }
}

static void add_constant(fuzz_reader *r, graph_case *g)
{
    static uint8_t data[FUZZ_ELEMENTS * 8];
    const size_t bytes = fuzz_sometimes(r, 32) ? (size_t)fuzz_take(r, 2) % sizeof data : 4 * fuzz_choose(r, 256) + 4;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 % 64);
    graph_constant(g, data, bytes, NULL);
}

/* Adds an operator that is legal by itself; false: it is not, and nothing was added. */
static bool add_operator(fuzz_reader *r, graph_case *g, const op_def *def, const fuzz_shape *shape)
{
    static fuzz_descriptor d;
    opjit_operator *op = NULL;
    opjit_error error = { 0 };
    fuzz_take_descriptor(r, def, shape, &d);
    const opjit_status status = opjit_operator_create(g->context, &d.desc, &op, &error);
    fuzz_require_refusal(status, &error, op != NULL, def->name);
    const bool taken = op != NULL && fuzz_is_small(op);
    if (taken)
        connect(r, g, graph_operator_of(g, op, NULL), op);
    opjit_operator_release(op);
    return taken;
}

static void take_graph(fuzz_reader *r, graph_case *g)
{
    DML_GRAPH_DESC *d = &g->desc;
    fuzz_shape shape = fuzz_take_shape(r);
    uint32_t count = 0;
    while (opjit_fe_op_at(count) != NULL)
        count++;
    for (uint32_t n = 1 + fuzz_choose(r, NODES); n != 0 && r->left != 0; n--) {
        if (fuzz_sometimes(r, 24))
            add_constant(r, g);
        else if (add_operator(r, g, opjit_fe_op_at(fuzz_choose(r, count)), &shape) && fuzz_sometimes(r, 48))
            graph_output(g, d->NodeCount - 1, 0, d->OutputCount);
    }
    if (d->NodeCount != 0)
        graph_output(g, d->NodeCount - 1, 0, d->OutputCount);
    if (fuzz_sometimes(r, 8)) { /* the graph's own counts */
        d->InputCount = (uint32_t)fuzz_take(r, 4);
        d->OutputCount = fuzz_sometimes(r, 128) ? d->OutputCount : (uint32_t)fuzz_take(r, 4);
    }
}

/* What opjit_check_graph refuses, compiling refused in the same words; outputs of what it takes have bytes. */
static void check(const graph_case *g, opjit_status compiled, const opjit_error *compile_error)
{
    opjit_tensor_info outputs[EDGES];
    const bool fits = g->desc.OutputCount <= EDGES;
    opjit_error error = { 0 };
    for (uint32_t i = 0; i < EDGES; i++)
        outputs[i] = (opjit_tensor_info)OPJIT_TENSOR_INFO_INIT;
    const opjit_status status = opjit_check_graph(g->context, &g->desc, NULL, fits ? outputs : NULL, &error);
    if (status != OPJIT_OK)
        test_require(status == compiled && strcmp(error.message, compile_error->message) == 0,
                     "checked: \"%s\", compiled: \"%s\"", error.message, compile_error->message);
    for (uint32_t i = 0; i < g->desc.OutputCount && fits && status == OPJIT_OK; i++)
        test_require(outputs[i].rank != 0 && outputs[i].bytes != 0, "output %u has no bytes", i);
}

static opjit_kernel *compile(const graph_case *g, uint32_t flags)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    options.flags = flags | OPJIT_COMPILE_NO_CACHE;
    const opjit_status status = opjit_compile_graph(g->context, &g->desc, &options, &kernel, &error);
    fuzz_require_refusal(status, &error, kernel != NULL, "compile");
    check(g, status, &error);
    return kernel;
}

static void call(const fuzz_memory *m, const opjit_kernel *kernel, const char *what)
{
    opjit_error error = { 0 };
    test_require(fuzz_memory_call(m, kernel, &error) == OPJIT_OK, "%s: %s", what, error.message);
}

static void run(const graph_case *g, uint32_t how)
{
    opjit_kernel *const interpreted = compile(g, OPJIT_COMPILE_INTERPRET);
    opjit_kernel *const compiled = (how & 7) == 1 && interpreted != NULL ? compile(g, 0) : NULL;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    void *buffers[FUZZ_BUFFERS + NODES];
    fuzz_memory a = { 0 }, b = { 0 };
    if (interpreted != NULL && fuzz_memory_create(&a, interpreted, how) && fuzz_memory_create(&b, interpreted, how)) {
        test_require(opjit_kernel_get_info(interpreted, &info, NULL) == OPJIT_OK, "a kernel has no information");
        call(&a, interpreted, "interpreted");
        for (uint32_t i = 0; i < b.count; i++)
            buffers[i] = b.bindings[i].data;
        if (info.meta->constants == 0) {
            opjit_error error = { 0 };
            test_require(graph_run_lowered(g, buffers, &error) == OPJIT_OK, "lowered: %s", error.message);
            fuzz_memory_require_equal(&b, &a, "interpreted against lowered");
        }
        fuzz_memory_free(&b);
        if (compiled != NULL && fuzz_memory_create(&b, compiled, how)) {
            call(&b, compiled, "compiled");
            fuzz_memory_require_equal(&a, &b, "compiled against interpreted");
        }
    }
    fuzz_memory_free(&a);
    fuzz_memory_free(&b);
    opjit_kernel_release(interpreted);
    opjit_kernel_release(compiled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_error error = { 0 };
    fuzz_reader r = { data, size };
    fuzz_meter meter;
    graph_case g;
    fuzz_meter_begin(&meter);
    options.allocator = &meter.memory.allocator;
    test_require(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    graph_begin(&g, context, EDGES);
    const uint32_t how = (uint32_t)fuzz_take(&r, 1);
    take_graph(&r, &g);
    run(&g, how);
    graph_end(&g);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, MOST_BYTES, 0);
    return 0;
}
