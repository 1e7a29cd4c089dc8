/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - late fields of a graph: "node.Field", the node by its label or index. */
#include <string.h>

#include "frontend/graph/reader.h"
#include "runtime/base/name_set.h"

/* What late names are looked up in. */
typedef struct late_finder {
    fe_reader *r;
    name_set labels;
    uint32_t *nodes, *counts; /* by label: a node that has it, and how many do */
    uint32_t *last;           /* by number of a node in the graph: 1 + its newest late field; 0: none */
    uint32_t *before;         /* by late field: likewise, its node's before it */
} late_finder;

static bool list_labels(late_finder *l, uint32_t late_count)
{
    fe_reader *r = l->r;

    l->nodes = ARENA_ARRAY(r->arena, uint32_t, r->desc->NodeCount);
    l->counts = ARENA_ARRAY(r->arena, uint32_t, r->desc->NodeCount);
    l->last = ARENA_ARRAY(r->arena, uint32_t, r->graph->node_count);
    l->before = ARENA_ARRAY(r->arena, uint32_t, late_count);
    if (l->nodes == NULL || l->counts == NULL || l->last == NULL || l->before == NULL)
        return false;
    for (uint32_t i = 0; i < r->desc->NodeCount; i++) {
        const char *const name = r->nodes[i].name;
        uint32_t number = opjit_rt_name_set_find(&l->labels, name, strlen(name));
        if (number == NAME_SET_NONE) {
            number = l->labels.count;
            if (!opjit_rt_name_set_add(&l->labels, r->arena, name))
                return false;
        }
        l->nodes[number] = i;
        l->counts[number]++;
    }
    return true;
}

/* The node that `name`, of `length` characters, is the label of, or the index of where no label is. */
static opjit_status find_node(const late_finder *l, const char *name, size_t length, uint32_t late, uint32_t *out)
{
    const fe_reader *r = l->r;
    const uint32_t number = length == 0 ? NAME_SET_NONE : opjit_rt_name_set_find(&l->labels, name, length);
    uint32_t index = 0;

    if (number != NAME_SET_NONE && l->counts[number] > 1)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{late[%u]}: \"{%.64s}\": %u nodes have that label; give the node's index",
                               late, name, l->counts[number]);
    if (number != NAME_SET_NONE) {
        *out = l->nodes[number];
        return OPJIT_OK;
    }
    for (size_t i = 0; i < length; i++) {
        if (name[i] < '0' || name[i] > '9' || index > FE_COUNT_MAX)
            length = 0;
        else
            index = index * 10 + (uint32_t)(name[i] - '0');
    }
    if (length == 0 || index >= r->desc->NodeCount)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{late[%u]}: \"{%.64s}\", must be \"node.Field\", a node's label or index",
                               late, name);
    *out = index;
    return OPJIT_OK;
}

static opjit_status enter(late_finder *l, const fe_subject *subject, uint32_t i)
{
    fe_reader *r = l->r;
    const char *name = subject->late[i], *dot = strrchr(name, '.');
    fe_graph *graph = r->graph;
    uint32_t node = 0, field;

    TRY(find_node(l, name, dot == NULL ? 0 : (size_t)(dot - name), i, &node));
    if (r->nodes[node].op == NULL || r->nodes[node].number == FE_NO_NUMBER)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%.64s}\": %s %s", i, name,
                               fe_reader_text(r, node).text,
                               r->nodes[node].op == NULL ? "has no fields" : "is not used by any output");
    TRY(opjit_fe_late_field(r->nodes[node].op->def, dot + 1, i, &field, r->error));
    node = r->nodes[node].number;
    for (uint32_t k = l->last[node]; k != 0; k = l->before[k - 1])
        if (graph->late[k - 1].field == field)
            return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%.64s}\" is there twice",
                                   i, name);
    l->before[graph->late_count] = l->last[node];
    graph->late[graph->late_count++] = (fe_late){ node, field, name, graph->nodes[node].op };
    l->last[node] = graph->late_count;
    return OPJIT_OK;
}

opjit_status opjit_fe_reader_late(fe_reader *r, const fe_subject *subject)
{
    late_finder l = { .r = r };

    if (subject->late_count == 0)
        return OPJIT_OK;
    if (!list_labels(&l, subject->late_count))
        return opjit_rt_no_memory(r->error);
    for (uint32_t i = 0; i < subject->late_count; i++)
        TRY(enter(&l, subject, i));
    return OPJIT_OK;
}
