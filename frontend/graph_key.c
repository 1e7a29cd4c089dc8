/* graph_key.c - the canonical key of a graph.  Equal keys lower to equal IR, and their edges fit or don't alike.
 *
 * Nodes stand in the graph's own order, so the order of the description makes no difference; labels are not in it, nor
 * is the content of constants that are bound to the kernel.  Layout, little endian; counts before contents. */
#include <string.h>

#include "frontend/frontend.h"

#define GRAPH_KEY UINT32_MAX /* where an operator's key has its type */

static void source_key(const fe_source *source, rt_bytes *out)
{
    const uint32_t numbers[2] = { source->kind | source->output << 2, source->index };

    opjit_rt_bytes_append(out, numbers, sizeof numbers);
}

/* What an edge that no output depends on says of an input. */
static void input_key(const fe_buffer *input, rt_bytes *out)
{
    const fe_tensor *t = &input->tensor;

    opjit_rt_bytes_u32(out, input->given);
    opjit_rt_bytes_u32(out, t->present ? t->rank : 0);
    if (!t->present)
        return;
    opjit_rt_bytes_u32(out, (uint32_t)t->dtype);
    opjit_rt_bytes_append(out, t->sizes, t->rank * sizeof *t->sizes);
    opjit_rt_bytes_append(out, t->strides, t->rank * sizeof *t->strides);
    opjit_rt_bytes_u64(out, t->bytes);
    opjit_rt_bytes_u32(out, t->align);
}

static void constant_key(const fe_buffer *constant, rt_bytes *out)
{
    opjit_rt_bytes_u64(out, constant->bytes);
    if (constant->bytes <= FE_FOLDED_BYTES)
        opjit_rt_bytes_append(out, constant->data, (size_t)constant->bytes);
}

static void node_key(const fe_graph *graph, uint32_t index, rt_bytes *out)
{
    const fe_node *node = &graph->nodes[index];
    uint64_t late = 0;

    for (uint32_t i = 0; i < graph->late_count; i++)
        late |= graph->late[i].node == index ? UINT64_C(1) << graph->late[i].field : 0;
    if (late != 0)
        opjit_fe_operator_key(node->op, late, out);
    else
        opjit_rt_bytes_append(out, node->op->key.data, node->op->key.size);
    for (uint32_t i = 0; i < node->op->input_count; i++)
        source_key(&node->sources[i], out);
}

void opjit_fe_graph_key(const fe_graph *graph, rt_bytes *out)
{
    const uint32_t counts[] = { GRAPH_KEY,         graph->input_count,    graph->output_count,
                                graph->node_count, graph->constant_count, graph->late_count };

    opjit_rt_bytes_append(out, counts, sizeof counts);
    for (uint32_t i = 0; i < graph->late_count; i++) {
        opjit_rt_bytes_u32(out, graph->late[i].node);
        opjit_rt_bytes_u32(out, graph->late[i].field);
        opjit_rt_bytes_str(out, graph->late[i].name);
    }
    for (uint32_t i = 0; i < graph->input_count; i++)
        input_key(&graph->inputs[i], out);
    for (uint32_t i = 0; i < graph->constant_count; i++)
        constant_key(&graph->constants[i], out);
    for (uint32_t i = 0; i < graph->node_count; i++)
        node_key(graph, i, out);
    for (uint32_t i = 0; i < graph->output_count; i++)
        source_key(&graph->results[i], out);
}
