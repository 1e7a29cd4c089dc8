/* SPDX-License-Identifier: Apache-2.0 */
/* origin.c - which nodes of the graph a stage computes.  Tensors know the node that defines them; a node whose tensors
 * no stage stores was written where they are read, so it belongs to the stages behind it. */
#include "frontend/frontend.h"

#define SEVERAL UINT32_MAX

typedef struct finder {
    const fe_graph *graph;
    const ir_func *f;
    uint32_t *owner;  /* by node: the stage that stores of it, counted from 1; SEVERAL; 0: none */
    uint32_t *reader; /* by tensor: the last stage that loads it, counted from 1 */
    uint32_t *start;  /* by stage: a node that it stores of, counted from 1; 0: none */
    uint32_t *seen;   /* by node: the last stage that met it, counted from 1 */
} finder;

static const ir_node *section_node(const finder *s, uint32_t stage, uint32_t k)
{
    return ir_at(s->f, s->f->sections[stage].first + k);
}

static uint32_t section_size(const finder *s, uint32_t stage)
{
    return s->f->sections[stage].end - s->f->sections[stage].first;
}

static void find_owners(finder *s)
{
    for (uint32_t i = 0; i < s->f->section_count; i++)
        for (uint32_t k = 0; k < section_size(s, i); k++) {
            const ir_node *n = section_node(s, i, k);
            const uint32_t root = n->op == IR_LOAD || n->op == IR_STORE ? opjit_ir_root(s->f, n->ref) : 0;
            const uint32_t origin = s->f->tensors[root].origin;
            if (n->op == IR_LOAD)
                s->reader[root] = i + 1;
            if (n->op != IR_STORE || origin == 0)
                continue;
            s->start[i] = origin;
            if (s->f->tensors[root].role != IR_SCRATCH)
                s->owner[origin - 1] = s->owner[origin - 1] == 0 || s->owner[origin - 1] == i + 1 ? i + 1 : SEVERAL;
        }
}

/* A stage that only prepares what others read is of their nodes. */
static void find_prepared(finder *s)
{
    for (uint32_t i = s->f->section_count; i-- > 0;)
        for (uint32_t k = 0; k < section_size(s, i) && s->start[i] == 0; k++) {
            const ir_node *n = section_node(s, i, k);
            const uint32_t root = n->op == IR_STORE ? opjit_ir_root(s->f, n->ref) : 0;
            if (root != 0 && s->reader[root] > i + 1)
                s->start[i] = s->start[s->reader[root] - 1];
        }
}

static void add(finder *s, uint32_t stage, uint32_t node, fe_origins *out)
{
    if (s->seen[node] == stage + 1 || out->count == FE_ORIGINS_MOST)
        return;
    s->seen[node] = stage + 1;
    out->nodes[out->count++] = node;
}

static void find_nodes(finder *s, uint32_t stage, fe_origins *out)
{
    bool stores = false;

    for (uint32_t k = 0; k < section_size(s, stage); k++) {
        const ir_node *n = section_node(s, stage, k);
        const uint32_t origin = n->op == IR_STORE ? s->f->tensors[opjit_ir_root(s->f, n->ref)].origin : 0;
        stores = stores || origin != 0;
        if (origin != 0)
            add(s, stage, origin - 1, out);
    }
    if (!stores && s->start[stage] != 0)
        add(s, stage, s->start[stage] - 1, out);
    for (uint32_t i = 0; i < out->count && stores; i++) {
        const fe_node *node = &s->graph->nodes[out->nodes[i]];
        for (uint32_t k = 0; k < node->op->input_count; k++) {
            const fe_source *source = &node->sources[k];
            if (source->kind == FE_NODE && (s->owner[source->index] == 0 || s->owner[source->index] == stage + 1))
                add(s, stage, source->index, out);
        }
    }
}

static void sort(fe_origins *list)
{
    for (uint32_t i = 1; i < list->count; i++)
        for (uint32_t k = i; k > 0 && list->nodes[k - 1] > list->nodes[k]; k--) {
            const uint32_t node = list->nodes[k];
            list->nodes[k] = list->nodes[k - 1];
            list->nodes[k - 1] = node;
        }
}

opjit_status opjit_fe_origins_find(const fe_graph *graph, const ir_func *f, rt_arena *arena, fe_origins *out,
                                   opjit_error *error)
{
    finder s = { .graph = graph,
                 .f = f,
                 .owner = ARENA_ARRAY(arena, uint32_t, graph->node_count),
                 .reader = ARENA_ARRAY(arena, uint32_t, f->tensor_count),
                 .start = ARENA_ARRAY(arena, uint32_t, f->section_count),
                 .seen = ARENA_ARRAY(arena, uint32_t, graph->node_count) };

    if (s.owner == NULL || s.reader == NULL || s.start == NULL || s.seen == NULL)
        return opjit_rt_no_memory(error);
    find_owners(&s);
    find_prepared(&s);
    for (uint32_t i = 0; i < f->section_count; i++) {
        find_nodes(&s, i, &out[i]);
        for (uint32_t k = 0; k < out[i].count; k++)
            out[i].nodes[k] = graph->nodes[out[i].nodes[k]].given;
        sort(&out[i]);
    }
    return OPJIT_OK;
}
