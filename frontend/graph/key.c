/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - the canonical key of a graph.  Equal keys lower to equal IR, and their edges fit or don't alike.
 *
 * Nodes stand in the graph's own order, so the order of the description makes no difference; labels are not in it,
 * nor is the content of constants that are bound to the kernel.  Layout, little endian, of sources in as few bytes as
 * they need; counts before contents.
 * The hash is made of the operators', which they have already: a hit takes little more than reading the
 * description. */
#include <string.h>

#include "frontend/frontend.h"

#define NAMED_GRAPH_KEY (UINT32_MAX - 1) /* the same, with names of inputs and outputs */
#define GRAPH_KEY UINT32_MAX             /* where an operator's key has its type */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t sources_key(const fe_source *sources, uint32_t count, uint64_t hash, rt_bytes *out)
{
    uint8_t *const begin = opjit_rt_bytes_extend(out, (size_t)count * 2 * RT_NUMBER_MOST), *at = begin;

    if (begin == NULL)
        return hash;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = sources[i].kind | sources[i].output << 2;
        at = rt_put_number(at, from);
        at = rt_put_number(at, sources[i].index);
        hash = mix(hash, (uint64_t)from << 32 | sources[i].index);
    }
    out->size = (size_t)(at - out->data);
    return hash;
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

bool opjit_fe_graph_binds(const fe_graph *graph)
{
    for (uint32_t i = 0; i < graph->constant_count; i++)
        if (graph->constants[i].bytes > FE_FOLDED_BYTES)
            return true;
    return false;
}

static void names_key(const fe_graph *graph, rt_bytes *out)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        opjit_rt_bytes_str(out, graph->inputs[i].named ? graph->inputs[i].name : "");
    for (uint32_t i = 0; i < graph->output_count; i++)
        opjit_rt_bytes_str(out, graph->outputs[i].named ? graph->outputs[i].name : "");
}

static uint64_t node_key(const fe_graph *graph, uint32_t index, uint64_t hash, rt_bytes *out)
{
    const fe_node *node = &graph->nodes[index];
    const size_t begin = out->size;
    uint64_t late = 0;

    for (uint32_t i = 0; i < graph->late_count; i++)
        late |= graph->late[i].node == index ? UINT64_C(1) << graph->late[i].field : 0;
    if (late != 0) {
        opjit_fe_operator_key(node->op, late, out);
        hash = mix(hash, opjit_rt_hash64(out->data + begin, out->size - begin));
    } else {
        opjit_rt_bytes_append(out, node->op->key.data, node->op->key.size);
        hash = mix(hash, node->op->hash);
    }
    return sources_key(node->sources, node->op->input_count, hash, out);
}

uint64_t opjit_fe_graph_key(const fe_graph *graph, rt_bytes *out)
{
    const uint32_t counts[] = { graph->is_named ? NAMED_GRAPH_KEY : GRAPH_KEY,
                                graph->input_count,
                                graph->output_count,
                                graph->node_count,
                                graph->constant_count,
                                graph->late_count };
    const size_t begin = out->size;
    size_t size = FE_OPTIONS_KEY_SIZE + graph->output_count * 2 * (size_t)RT_NUMBER_MOST; /* of what follows */
    uint64_t hash;

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
    if (graph->is_named)
        names_key(graph, out);
    for (uint32_t i = 0; i < graph->node_count; i++)
        size += graph->nodes[i].op->key.size + graph->nodes[i].op->input_count * 2 * (size_t)RT_NUMBER_MOST;
    opjit_rt_bytes_reserve(out, size);
    if (out->failed)
        return 0;
    hash = opjit_rt_hash64(out->data + begin, out->size - begin);
    for (uint32_t i = 0; i < graph->node_count; i++)
        hash = node_key(graph, i, hash, out);
    return sources_key(graph->results, graph->output_count, hash, out);
}
