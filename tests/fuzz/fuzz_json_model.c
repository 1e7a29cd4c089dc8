/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json_model.c - any bytes as a model: JSON reader, resources, descriptors, operators, commands.  No file is read
 * or written and nothing is compiled; resources are kept small, so that a large one costs no time. */
#include "frontend/cli/model/model.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_model(cli_model *m)
{
    if (opjit_cli_model_parse(m) == OPJIT_OK && opjit_cli_read_resources(m) == OPJIT_OK &&
        opjit_cli_read_dispatchables(m) == OPJIT_OK)
        (void)!opjit_cli_read_commands(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    fuzz_meter meter;
    cli_model m;

    fuzz_meter_begin(&meter);
    options.allocator = &meter.memory.allocator;
    if (opjit_context_create(&options, &context, NULL) != OPJIT_OK)
        return 0;
    opjit_cli_model_init(&m, "model.json", context);
    m.no_files = true;
    m.max_bytes = 1 << 16;
    m.max_total = 1 << 20;
    opjit_rt_bytes_append(&m.text, data, size);
    opjit_rt_bytes_zero_end(&m.text);
    if (!m.text.failed)
        read_model(&m);
    opjit_cli_model_free(&m);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, 1 << 20, 1024);
    return 0;
}
