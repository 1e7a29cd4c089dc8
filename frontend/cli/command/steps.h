/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - which nodes of a graph a kernel's steps compute. */
#ifndef OPJIT_FRONTEND_CLI_STEPS_H
#define OPJIT_FRONTEND_CLI_STEPS_H

#include <opjit/reflect.h>

#include "frontend/cli/cli.h"

/* conv1 (Conv) .. relu7 (Relu), 5 nodes; "": none. */
typedef struct cli_step_text {
    char text[448];
} cli_step_text;

typedef struct cli_step {
    const char *first, *last; /* labels of nodes, in the graph's order; NULL: none */
    uint32_t count;           /* of labels */
} cli_step;
cli_step opjit_cli_step(const opjit_plan *plan, const DML_GRAPH_DESC *desc, uint32_t step);
cli_step_text opjit_cli_step_text(const opjit_plan *plan, const DML_GRAPH_DESC *desc, uint32_t step);
/* A line for each step of the last variant. */
void opjit_cli_put_steps(rt_bytes *out, const opjit_plan *plan, const DML_GRAPH_DESC *desc);

#endif
