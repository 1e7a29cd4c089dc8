/* SPDX-License-Identifier: Apache-2.0 */
/* directml_graph.c - causal softmax of scores as one kernel, described as DirectML describes graphs: the mask is an
 * operator and no buffer; the last node is a C function of this program.  graph.c does the same by the builder. */
#include <limits.h>
#include <math.h>
#include <opjit/ffi.h>
#include <opjit/opjit.h>
#include <stdio.h>

enum { N = 4 };

static void percent(const float *in, float *out)
{
    for (int i = 0; i < N * N; i++)
        out[i] = (float)(int)(100 * in[i] + 0.5f);
}

int main(void)
{
    const uint32_t sizes[] = { N, N }, axis = 1;
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    /* -inf where column - row >= 1, else 0 */
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC mask = { .OutputTensor = &tensor,
                                                      .ValueDataType = DML_TENSOR_DATA_TYPE_FLOAT32,
                                                      .Value.Float32 = -INFINITY,
                                                      .DiagonalFillBegin = 1,
                                                      .DiagonalFillEnd = INT32_MAX };
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = { &tensor, &tensor, &tensor };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &tensor, &tensor, 1, &axis };
    const DML_OPERATOR_DESC descs[] = { { DML_OPERATOR_DIAGONAL_MATRIX1, &mask },
                                        { DML_OPERATOR_ELEMENT_WISE_ADD, &add },
                                        { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax } };
    const opjit_custom_arg args[] = { { .kind = OPJIT_CUSTOM_INPUT }, { .kind = OPJIT_CUSTOM_OUTPUT } };
    opjit_custom_desc custom = OPJIT_CUSTOM_DESC_INIT;
    /* scores and mask -> add -> softmax -> percent */
    const DML_INPUT_GRAPH_EDGE_DESC in = { .GraphInputIndex = 0, .ToNodeIndex = 1, .ToNodeInputIndex = 0 };
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC between[] = {
        { .FromNodeIndex = 0, .ToNodeIndex = 1, .ToNodeInputIndex = 1 },
        { .FromNodeIndex = 1, .ToNodeIndex = 2 },
        { .FromNodeIndex = 2, .ToNodeIndex = 3 }
    };
    const DML_OUTPUT_GRAPH_EDGE_DESC out = { .FromNodeIndex = 3 };
    const DML_GRAPH_EDGE_DESC in_edge = { DML_GRAPH_EDGE_TYPE_INPUT, &in },
                              out_edge = { DML_GRAPH_EDGE_TYPE_OUTPUT, &out };
    DML_GRAPH_EDGE_DESC edges[3];
    DML_OPERATOR_GRAPH_NODE_DESC operators[4] = {
        { NULL, "mask" }, { NULL, "add" }, { NULL, "softmax" }, { NULL, "percent" }
    };
    DML_GRAPH_NODE_DESC nodes[4];
    const DML_GRAPH_DESC graph = { .InputCount = 1, .OutputCount = 1, .NodeCount = 4, .Nodes = nodes,
                                   .InputEdgeCount = 1, .InputEdges = &in_edge, .OutputEdgeCount = 1,
                                   .OutputEdges = &out_edge, .IntermediateEdgeCount = 3, .IntermediateEdges = edges };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_kernel *kernel = NULL;
    opjit_error error;
    float scores[N][N] = { { 1, 2, 3, 4 }, { 1, 1, 9, 9 }, { 2, 1, 0, 7 }, { 0, 0, 0, 0 } }, result[N][N];
    const opjit_binding bindings[] = { { scores, sizeof scores }, { result, sizeof result } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 2, .bindings = bindings };
    int failed = opjit_context_create(NULL, &context, &error) != OPJIT_OK;

    custom.name = "percent";
    custom.inputs = custom.outputs = &tensor;
    custom.input_count = custom.output_count = 1;
    custom.args = args;
    custom.arg_count = 2;
    custom.function = (void (*)(void))percent;
    options.flags = OPJIT_COMPILE_MASKS_ABSORB; /* masked scores count as -inf and are never read */
    for (int i = 0; i < 3; i++)
        edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &between[i] };
    for (int i = 0; i < 4; i++)
        nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &operators[i] };
    for (int i = 0; i < 3 && !failed; i++)
        failed = opjit_operator_create(context, &descs[i], &operators[i].Operator, &error) != OPJIT_OK;
    if (!failed)
        failed = opjit_custom_create(context, &custom, &operators[3].Operator, &error) != OPJIT_OK ||
                 opjit_compile_graph(context, &graph, &options, &kernel, &error) != OPJIT_OK ||
                 opjit_kernel_call(kernel, &call, &error) != OPJIT_OK;
    if (failed)
        fprintf(stderr, "%s: %s\n", opjit_status_name(error.status), error.message);
    for (int i = 0; i < N * N && !failed; i++)
        printf("%3g%s", result[i / N][i % N], i % N < N - 1 ? " " : "\n");
    opjit_kernel_release(kernel);
    for (int i = 0; i < 4; i++)
        opjit_operator_release(operators[i].Operator);
    opjit_context_destroy(context);
    if (failed)
        return error.status == OPJIT_UNAVAILABLE ? 77 : 1; /* a build without libffi has no custom operators */
    return result[0][0] != 100 || result[1][1] != 50 || result[3][3] != 25;
}
