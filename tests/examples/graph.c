/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - causal softmax of scores as one kernel, by the graph builder: the mask is an operator and no buffer; the
 * last node is a C function of this program.  directml_graph.c does the same without the builder. */
#include <math.h>
#include <opjit/ffi.h>
#include <opjit/graph_ops.h>
#include <stdio.h>

enum { N = 4 };

static void percent(const float *in, float *out)
{
    for (int i = 0; i < N * N; i++)
        out[i] = (float)(int)(100 * in[i] + 0.5f);
}

/* The function as an operator. */
static opjit_status make_percent(opjit_context *context, opjit_operator **out, opjit_error *error)
{
    const uint32_t sizes[] = { N, N };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const opjit_custom_arg args[] = { { .kind = OPJIT_CUSTOM_INPUT }, { .kind = OPJIT_CUSTOM_OUTPUT } };
    opjit_custom_desc desc = OPJIT_CUSTOM_DESC_INIT;

    desc.name = "percent";
    desc.inputs = desc.outputs = &tensor;
    desc.input_count = desc.output_count = 1;
    desc.args = args;
    desc.arg_count = 2;
    desc.function = (void (*)(void))percent;
    return opjit_custom_create(context, &desc, out, error);
}

/* Nothing is checked on the way: what fails first is what opjit_graph_compile returns. */
static opjit_status make_kernel(opjit_context *context, opjit_operator *op, opjit_kernel **out, opjit_error *error)
{
    const uint32_t sizes[] = { N, N };
    opjit_tensor result;
    opjit_graph *g = NULL;
    opjit_status status = opjit_graph_create(context, &g, error);

    if (status != OPJIT_OK)
        return status;
    const opjit_tensor scores = opjit_graph_input(g, "scores", DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes);
    const opjit_tensor causal = opjit_graph_fill_band(g, scores, -INFINITY, 1, INT32_MAX); /* column - row >= 1 */
    const opjit_tensor weights = opjit_graph_softmax(g, causal, 1);
    (void)opjit_graph_add_operator(g, op, "percent", &weights, 1, &result, 1);
    (void)opjit_graph_output(g, "weights", result);
    status = opjit_graph_compile(g, NULL, out, error);
    opjit_graph_destroy(g);
    return status;
}

int main(void)
{
    float scores[N][N] = { { 1, 2, 3, 4 }, { 1, 1, 9, 9 }, { 2, 1, 0, 7 }, { 0, 0, 0, 0 } }, result[N][N];
    const opjit_binding bindings[] = { { scores, sizeof scores }, { result, sizeof result } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 2, .bindings = bindings };
    opjit_context *context = NULL;
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    opjit_error error;
    const int failed = opjit_context_create(NULL, &context, &error) || make_percent(context, &op, &error) ||
                       make_kernel(context, op, &kernel, &error) || opjit_kernel_call(kernel, &call, &error);

    if (failed)
        fprintf(stderr, "%s: %s\n", opjit_status_name(error.status), error.message);
    for (int i = 0; i < N * N && !failed; i++)
        printf("%3g%s", result[i / N][i % N], i % N < N - 1 ? " " : "\n");
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    if (failed)
        return error.status == OPJIT_UNAVAILABLE ? 77 : 1; /* a build without libffi has no custom operators */
    return result[0][0] != 100 || result[1][1] != 50 || result[3][3] != 25;
}
