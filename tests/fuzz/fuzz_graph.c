/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_graph.c - bytes as a DML_GRAPH_DESC of any operators: nodes, constants and edges, most of them legal.  It is
 * refused with a message and at a bounded cost, or the lowered graph run literally, the interpreted and the compiled
 * kernel give the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/fuzz_descriptor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODES = 12, EDGES = 64, MOST_BYTES = 160 << 20 };

typedef struct fuzz_graph {
    graph_case g; /* whose arrays are these */
    DML_GRAPH_NODE_DESC nodes[NODES];
    DML_OPERATOR_GRAPH_NODE_DESC operators[NODES];
    DML_CONSTANT_DATA_GRAPH_NODE_DESC constants[NODES];
    uint32_t outputs_of[NODES];
    DML_GRAPH_EDGE_DESC input_edges[EDGES], edges[EDGES], output_edges[EDGES];
    DML_INPUT_GRAPH_EDGE_DESC inputs[EDGES];
    DML_INTERMEDIATE_GRAPH_EDGE_DESC intermediates[EDGES];
    DML_OUTPUT_GRAPH_EDGE_DESC outputs[EDGES];
    uint8_t data[FUZZ_ELEMENTS * 8];
} fuzz_graph;

static void add_input(fuzz_graph *f, uint32_t index, uint32_t node, uint32_t input)
{
    DML_GRAPH_DESC *d = &f->g.desc;
    const uint32_t i = d->InputEdgeCount;
    if (i == EDGES)
        return;
    f->inputs[i] = (DML_INPUT_GRAPH_EDGE_DESC){ index, node, input, NULL };
    f->input_edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, &f->inputs[i] };
    d->InputEdgeCount++;
    if (d->InputCount <= index && index < EDGES)
        d->InputCount = index + 1;
}

static void add_edge(fuzz_graph *f, uint32_t from, uint32_t output, uint32_t to, uint32_t input)
{
    const uint32_t i = f->g.desc.IntermediateEdgeCount;
    if (i == EDGES)
        return;
    f->intermediates[i] = (DML_INTERMEDIATE_GRAPH_EDGE_DESC){ from, output, to, input, NULL };
    f->edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &f->intermediates[i] };
    f->g.desc.IntermediateEdgeCount++;
}

static void add_output(fuzz_graph *f, uint32_t from, uint32_t output, uint32_t index)
{
    DML_GRAPH_DESC *d = &f->g.desc;
    const uint32_t i = d->OutputEdgeCount;
    if (i == EDGES)
        return;
    f->outputs[i] = (DML_OUTPUT_GRAPH_EDGE_DESC){ from, output, index, NULL };
    f->output_edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &f->outputs[i] };
    d->OutputEdgeCount++;
    if (d->OutputCount <= index && index < EDGES)
        d->OutputCount = index + 1;
}

/* Who drives each input of the node: a node before it, a graph's input, nobody, or now and then anything. */
static void connect(fuzz_reader *r, fuzz_graph *f, uint32_t node, const opjit_operator *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!op->inputs[i].present && !fuzz_sometimes(r, 4))
            continue;
        const uint32_t from = node != 0 ? node - 1 - fuzz_choose(r, node) : 0;
        switch (fuzz_choose(r, 4)) {
        case 0:
        case 1:
            if (node != 0) {
                add_edge(f, from, f->outputs_of[from] > 1 ? fuzz_choose(r, f->outputs_of[from]) : 0, node, i);
                break;
            }
            add_input(f, f->g.desc.InputCount, node, i);
            break;
        case 2: add_input(f, fuzz_choose(r, f->g.desc.InputCount + 1), node, i); break;
        default:
            if (fuzz_sometimes(r, 32))
                add_edge(f, (uint32_t)fuzz_take(r, 1), (uint32_t)fuzz_take(r, 1), (uint32_t)fuzz_take(r, 1), i);
            else
                add_input(f, f->g.desc.InputCount, node, i);
            break;
        }
    }
}

static void add_constant(fuzz_reader *r, fuzz_graph *f)
{
    const uint32_t i = f->g.desc.NodeCount++;
    const size_t bytes = fuzz_sometimes(r, 32) ? (size_t)fuzz_take(r, 2) % sizeof f->data : 4 * fuzz_choose(r, 256) + 4;
    f->constants[i] = (DML_CONSTANT_DATA_GRAPH_NODE_DESC){ f->data, bytes, NULL };
    f->nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_CONSTANT, &f->constants[i] };
    f->outputs_of[i] = 1;
}

/* An operator that is legal by itself; false: it is not, and nothing was added. */
static bool add_operator(fuzz_reader *r, fuzz_graph *f, const op_def *def, const fuzz_shape *shape)
{
    static fuzz_descriptor d;
    opjit_operator *op = NULL;
    opjit_error error = { OPJIT_OK, "" };
    fuzz_take_descriptor(r, def, shape, &d);
    const opjit_status status = opjit_operator_create(f->g.context, &d.desc, &op, &error);
    fuzz_require_refusal(status, &error, op != NULL, def->name);
    if (op == NULL || !fuzz_is_small(op)) {
        opjit_operator_release(op);
        return false;
    }
    const uint32_t i = f->g.desc.NodeCount++;
    f->operators[i] = (DML_OPERATOR_GRAPH_NODE_DESC){ op, NULL };
    f->nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &f->operators[i] };
    f->outputs_of[i] = op->output_count;
    connect(r, f, i, op);
    return true;
}

static void take_graph(fuzz_reader *r, fuzz_graph *f)
{
    DML_GRAPH_DESC *d = &f->g.desc;
    fuzz_shape shape = fuzz_take_shape(r);
    uint32_t count = 0;
    while (opjit_fe_op_at(count) != NULL)
        count++;
    for (uint32_t n = 1 + fuzz_choose(r, NODES); n != 0 && r->left != 0; n--) {
        if (fuzz_sometimes(r, 24))
            add_constant(r, f);
        else if (add_operator(r, f, opjit_fe_op_at(fuzz_choose(r, count)), &shape) && fuzz_sometimes(r, 48))
            add_output(f, d->NodeCount - 1, 0, d->OutputCount);
    }
    if (d->NodeCount != 0)
        add_output(f, d->NodeCount - 1, 0, d->OutputCount);
    if (fuzz_sometimes(r, 8)) { /* the graph's own counts */
        d->InputCount = (uint32_t)fuzz_take(r, 4);
        d->OutputCount = fuzz_sometimes(r, 128) ? d->OutputCount : (uint32_t)fuzz_take(r, 4);
    }
}

static opjit_kernel *compile(const fuzz_graph *f, uint32_t flags)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { OPJIT_OK, "" };
    opjit_kernel *kernel = NULL;
    options.flags = flags | OPJIT_COMPILE_NO_CACHE;
    const opjit_status status = opjit_compile_graph(f->g.context, &f->g.desc, &options, &kernel, &error);
    fuzz_require_refusal(status, &error, kernel != NULL, "compile");
    return kernel;
}

static void call(const fuzz_memory *m, const opjit_kernel *kernel, const char *what)
{
    opjit_error error = { OPJIT_OK, "" };
    fuzz_require(fuzz_memory_call(m, kernel, &error) == OPJIT_OK, "%s: %s", what, error.message);
}

static void run(const fuzz_graph *f, uint32_t how)
{
    opjit_kernel *const interpreted = compile(f, OPJIT_COMPILE_INTERPRET);
    opjit_kernel *const compiled = (how & 7) == 1 && interpreted != NULL ? compile(f, 0) : NULL;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    void *buffers[FUZZ_BUFFERS + NODES];
    fuzz_memory a = { 0 }, b = { 0 };
    if (interpreted != NULL && fuzz_memory_create(&a, interpreted, how) && fuzz_memory_create(&b, interpreted, how)) {
        fuzz_require(opjit_kernel_get_info(interpreted, &info, NULL) == OPJIT_OK, "a kernel has no information");
        call(&a, interpreted, "interpreted");
        for (uint32_t i = 0; i < b.count; i++)
            buffers[i] = b.bindings[i].data;
        if (info.meta->constants == 0) {
            opjit_error error = { OPJIT_OK, "" };
            fuzz_require(graph_run_lowered(&f->g, buffers, &error) == OPJIT_OK, "lowered: %s", error.message);
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
    static fuzz_graph f;
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_error error = { OPJIT_OK, "" };
    fuzz_reader r = { data, size };
    fuzz_meter meter;
    fuzz_meter_begin(&meter);
    options.allocator = &meter.allocator;
    memset(&f, 0, sizeof f);
    for (size_t i = 0; i < sizeof f.data; i++)
        f.data[i] = (uint8_t)(i * 37 % 64);
    fuzz_require(opjit_context_create(&options, &f.g.context, &error) == OPJIT_OK, "%s", error.message);
    f.g.desc = (DML_GRAPH_DESC){ .Nodes = f.nodes, .InputEdges = f.input_edges, .OutputEdges = f.output_edges,
                                 .IntermediateEdges = f.edges };
    const uint32_t how = (uint32_t)fuzz_take(&r, 1);
    take_graph(&r, &f);
    run(&f, how);
    for (uint32_t i = 0; i < NODES; i++)
        opjit_operator_release(f.operators[i].Operator);
    opjit_context_destroy(f.g.context);
    fuzz_meter_end(&meter, MOST_BYTES);
    return 0;
}
