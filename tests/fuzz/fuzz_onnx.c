/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_onnx.c - any bytes as an .onnx model: it is refused with one line, or becomes a graph whose inputs and outputs
 * have sizes and bindings that fit each other. */
#include <string.h>

#include <opjit/model.h>

#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_port(const opjit_model_port *p, const bool *seen, int32_t bindings)
{
    test_require(p->name != NULL && p->rank <= 8, "a port without a name, or of %u dimensions", p->rank);
    test_require(p->binding < bindings && (p->binding < 0 || !seen[p->binding]), "binding %d", p->binding);
    for (uint32_t d = 0; d < p->rank; d++)
        test_require((p->sizes[d] >= 1 || p->binding < 0) && p->sizes[d] <= UINT32_MAX, "size %u", d);
}

static void check_model(const opjit_model *model)
{
    opjit_error error = { 0 };
    bool seen[4096] = { false };
    const uint32_t inputs = opjit_model_input_count(model), outputs = opjit_model_output_count(model);
    for (uint32_t i = 0; i < inputs + outputs && inputs + outputs <= 4096; i++) {
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        test_require((i < inputs ? opjit_model_get_input(model, i, &port, &error)
                                 : opjit_model_get_output(model, i - inputs, &port, &error)) == OPJIT_OK,
                     "%s", error.message);
        check_port(&port, seen, (int32_t)(inputs + outputs));
        if (port.binding >= 0)
            seen[port.binding] = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opjit_context_options context_options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    fuzz_meter meter;
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_model *model;

    fuzz_meter_begin(&meter);
    context_options.allocator = &meter.memory.allocator;
    test_require(opjit_context_create(&context_options, &context, &error) == OPJIT_OK, "%s", error.message);
    options.dims = &(opjit_model_dim){ "n", 3 };
    options.dim_count = size % 2; /* half of the inputs know a dimension */
    const opjit_status status = opjit_model_read(context, data, size, &options, &model, &error);
    fuzz_require_refusal(status, &error, model != NULL, "onnx");
    if (status == OPJIT_OK)
        check_model(model);
    opjit_model_close(model);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, 256u << 20, 4096);
    return 0;
}
