/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - a graph that reads constants alone is computed at once, by the interpreter from the IR as it was
 * lowered: for a few elements passes and a kernel would take much longer than that. */
#include "frontend/frontend.h"

/* Where the interpreter finds outputs and constants, by slot; NULL: no memory. */
static void **buffers_of(fe_graph *graph, const DML_GRAPH_DESC *desc, void *const *outputs)
{
    void **const buffers = ARENA_ARRAY(&graph->arena, void *, (size_t)graph->output_count + graph->constant_count);

    for (uint32_t i = 0; buffers != NULL && i < graph->output_count; i++)
        buffers[i] = outputs[i];
    for (uint32_t i = 0; buffers != NULL && i < graph->constant_count; i++) {
        const DML_CONSTANT_DATA_GRAPH_NODE_DESC *const constant = desc->Nodes[graph->constants[i].given].Desc;
        buffers[graph->output_count + i] = (void *)(uintptr_t)constant->Data; /* which is only read */
    }
    return buffers;
}

static opjit_status evaluate(opjit_context *context, const DML_GRAPH_DESC *desc, uint64_t most, void *const *outputs,
                             fe_graph *graph, bool *done, opjit_error *error)
{
    const fe_subject subject = { .desc = desc };
    fe_options options;
    ir_func f;

    TRY(opjit_fe_options_read(context, NULL, NULL, &options, error));
    TRY(opjit_fe_graph_read(context, &subject, true, graph, error));
    if (graph->input_count != 0 || graph->parts != NULL)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "a graph that is computed at once reads constants alone");
    const ir_run run = { .buffers = buffers_of(graph, desc, outputs) };
    if (run.buffers == NULL)
        return opjit_rt_no_memory(error);
    TRY(opjit_fe_graph_lower(graph, &options, "constants", &context->core->allocator, &f, error));
    *done = opjit_ir_work(&f) <= most;
    const opjit_status status = *done ? opjit_ir_interpret(&f, &run, error) : OPJIT_OK;
    opjit_ir_free(&f);
    return status;
}

opjit_status opjit_fe_evaluate(opjit_context *context, const DML_GRAPH_DESC *desc, uint64_t most, void *const *outputs,
                               bool *done, opjit_error *error)
{
    _Alignas(16) uint8_t room[8192]; /* for a few nodes */
    fe_graph graph = { 0 };

    opjit_rt_arena_init_in(&graph.arena, &context->core->allocator, room, sizeof room);
    const opjit_status status = evaluate(context, desc, most, outputs, &graph, done, error);
    opjit_fe_graph_free(&graph);
    return status;
}
