/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - opjit_check_graph: a description is read and finished as for a kernel, of which the tensors of inputs and
 * outputs are kept. */
#include "frontend/frontend.h"

/* The caller's structures may be of another version, and so of another size, than ours. */
static opjit_status put(opjit_tensor_info *array, uint32_t index, const fe_tensor *tensor, opjit_error *error)
{
    unsigned char *const at = (unsigned char *)array + (size_t)index * array->struct_size;

    return opjit_fe_put_tensor_info((opjit_tensor_info *)(void *)at, NULL, tensor, error);
}

static opjit_status put_all(const fe_graph *graph, uint32_t input_count, opjit_tensor_info *inputs,
                            opjit_tensor_info *outputs, opjit_error *error)
{
    const fe_tensor absent = { 0 };

    for (uint32_t i = 0; i < input_count && inputs != NULL; i++)
        TRY(put(inputs, i, &absent, error));
    for (uint32_t i = 0; i < graph->input_count && inputs != NULL; i++)
        TRY(put(inputs, graph->inputs[i].given, &graph->inputs[i].tensor, error));
    for (uint32_t i = 0; i < graph->output_count && outputs != NULL; i++)
        TRY(put(outputs, i, &graph->outputs[i].tensor, error));
    return OPJIT_OK;
}

opjit_status opjit_check_graph(opjit_context *context, const DML_GRAPH_DESC *desc, opjit_tensor_info *inputs,
                               opjit_tensor_info *outputs, opjit_error *error)
{
    fe_graph graph = { 0 };
    fe_subject subject;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (context == NULL || desc == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "desc");
    TRY(opjit_fe_graph_subject(desc, NULL, &subject, error));
    opjit_rt_arena_init(&graph.arena, &context->core->allocator);
    status = opjit_fe_graph_read(context, &subject, true, &graph, error);
    if (status == OPJIT_OK)
        status = put_all(&graph, desc->InputCount, inputs, outputs, error);
    opjit_fe_graph_free(&graph);
    return status;
}
