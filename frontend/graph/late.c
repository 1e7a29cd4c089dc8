/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - late fields of a graph: "node.Field", the node by its label or index. */
#include <string.h>

#include "frontend/graph/reader.h"

/* The node that `name`, of `length` characters, is the label of, or the index of where no label is. */
static opjit_status find_node(const fe_reader *r, const char *name, size_t length, uint32_t late, uint32_t *out)
{
    uint32_t found = 0, index = 0;

    for (uint32_t i = 0; i < r->desc->NodeCount; i++) {
        if (strncmp(r->nodes[i].name, name, length) != 0 || r->nodes[i].name[length] != '\0' || length == 0)
            continue;
        *out = i;
        found++;
    }
    if (found > 1)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{late[%u]}: \"{%.64s}\": %u nodes have that label; give the node's index",
                               late, name, found);
    if (found == 1)
        return OPJIT_OK;
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

opjit_status opjit_fe_reader_late(fe_reader *r, const fe_subject *subject, uint32_t i)
{
    const char *name = subject->late[i], *dot = strrchr(name, '.');
    fe_graph *graph = r->graph;
    uint32_t node = 0, field;

    TRY(find_node(r, name, dot == NULL ? 0 : (size_t)(dot - name), i, &node));
    if (r->nodes[node].op == NULL || r->nodes[node].number == FE_NO_NUMBER)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%.64s}\": %s %s", i, name,
                               fe_reader_text(r, node).text,
                               r->nodes[node].op == NULL ? "has no fields" : "is not used by any output");
    TRY(opjit_fe_late_field(r->nodes[node].op->def, dot + 1, i, &field, r->error));
    node = r->nodes[node].number;
    for (uint32_t k = 0; k < graph->late_count; k++)
        if (graph->late[k].node == node && graph->late[k].field == field)
            return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%.64s}\" is there twice",
                                   i, name);
    graph->late[graph->late_count++] = (fe_late){ node, field, name, graph->nodes[node].op };
    return OPJIT_OK;
}
