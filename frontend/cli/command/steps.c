/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - which nodes of a graph a kernel's steps compute, by their labels. */
#include "frontend/cli/command/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *label_of(const DML_GRAPH_DESC *desc, uint32_t node)
{
    const DML_GRAPH_NODE_DESC *const n = &desc->Nodes[node];
    const char *const name =
        n->Type == DML_GRAPH_NODE_TYPE_OPERATOR ? ((const DML_OPERATOR_GRAPH_NODE_DESC *)n->Desc)->Name : NULL;
    return name == NULL ? "" : name;
}

cli_step opjit_cli_step(const opjit_plan *plan, const DML_GRAPH_DESC *desc, uint32_t step)
{
    const uint32_t *nodes = NULL;
    const uint32_t count = opjit_plan_step_nodes(plan, step, &nodes);
    cli_step out = { NULL, NULL, 0 };
    for (uint32_t i = 0; i < count; i++) {
        const char *const label = label_of(desc, nodes[i]);
        if (label[0] == '\0' || (out.last != NULL && strcmp(label, out.last) == 0))
            continue;
        out.first = out.first == NULL ? label : out.first;
        out.last = label;
        out.count++;
    }
    return out;
}

cli_step_text opjit_cli_step_text(const opjit_plan *plan, const DML_GRAPH_DESC *desc, uint32_t step)
{
    const cli_step s = opjit_cli_step(plan, desc, step);
    cli_step_text out = { "" };
    if (s.count == 1)
        snprintf(out.text, sizeof out.text, "%s", s.first);
    else if (s.count != 0)
        snprintf(out.text, sizeof out.text, "%s .. %s, %" PRIu32 " nodes", s.first, s.last, s.count);
    return out;
}

void opjit_cli_put_steps(rt_bytes *out, const opjit_plan *plan, const DML_GRAPH_DESC *desc)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error ignored;
    if (opjit_plan_get_info(plan, &info, &ignored) != OPJIT_OK)
        return;
    for (uint32_t i = 0; i < info.meta->steps; i++) {
        const cli_step_text nodes = opjit_cli_step_text(plan, desc, i);
        const bool once = i >= info.meta->once_first && i - info.meta->once_first < info.meta->once_steps;
        if (nodes.text[0] != '\0')
            opjit_rt_bytes_printf(out, "  step %" PRIu32 "%s: %s\n", i, once ? ", once" : "", nodes.text);
    }
}
