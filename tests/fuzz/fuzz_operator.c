/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_operator.c - bytes as the descriptor of any operator: either it is refused with a message at a bounded cost, or
 * its compiled kernel computes what its interpreted one does, within its buffers. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/fuzz_descriptor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The limit of any input's memory: a compile of at most 4 buffers of FUZZ_BYTES. */
enum { MOST_BYTES = 96 << 20 };

static opjit_kernel *compile(opjit_context *context, opjit_operator *op, uint32_t flags, opjit_level level)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    options.flags = flags | OPJIT_COMPILE_NO_CACHE;
    options.level = level;
    const opjit_status status = opjit_compile_operator(context, op, &options, &kernel, &error);
    fuzz_require_refusal(status, &error, kernel != NULL, "compile");
    return kernel;
}

/* Runs both on equal memory and compares every byte. */
static void compare(opjit_kernel *a, opjit_kernel *b, uint64_t seed)
{
    fuzz_memory x = { 0 }, y = { 0 };
    opjit_error error = { 0 };
    if (fuzz_memory_create(&x, a, seed) && fuzz_memory_create(&y, b, seed)) {
        test_require(fuzz_memory_call(&x, a, &error) == OPJIT_OK, "interpreted: %s", error.message);
        test_require(fuzz_memory_call(&y, b, &error) == OPJIT_OK, "compiled: %s", error.message);
        fuzz_memory_require_equal(&x, &y, "compiled against interpreted");
    }
    fuzz_memory_free(&x);
    fuzz_memory_free(&y);
}

static void run(opjit_context *context, opjit_operator *op, uint32_t how)
{
    opjit_kernel *const interpreted = compile(context, op, OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_AUTO);
    opjit_kernel *const compiled =
        (how & 7) == 1 ? compile(context, op, 0, (how & 8) != 0 ? OPJIT_LEVEL_PEAK : OPJIT_LEVEL_QUICK) : NULL;
    fuzz_memory m = { 0 };
    if (interpreted != NULL && compiled != NULL)
        compare(interpreted, compiled, how);
    else if (interpreted != NULL && fuzz_memory_create(&m, interpreted, how))
        test_require(fuzz_memory_call(&m, interpreted, NULL) == OPJIT_OK, "an interpreted kernel failed");
    fuzz_memory_free(&m);
    opjit_kernel_release(interpreted);
    opjit_kernel_release(compiled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz_descriptor d;
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_operator *op = NULL;
    opjit_error error = { 0 };
    fuzz_reader r = { data, size };
    uint32_t count = 0;
    fuzz_meter meter;

    while (opjit_fe_op_at(count) != NULL)
        count++;
    const op_def *def = opjit_fe_op_at(fuzz_choose(&r, count));
    const uint32_t how = (uint32_t)fuzz_take(&r, 1);
    const fuzz_shape shape = fuzz_take_shape(&r);
    fuzz_take_descriptor(&r, def, &shape, &d);
    fuzz_meter_begin(&meter);
    options.allocator = &meter.memory.allocator;
    test_require(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    const opjit_status status = opjit_operator_create(context, &d.desc, &op, &error);
    fuzz_require_refusal(status, &error, op != NULL, def->name);
    if (status == OPJIT_INVALID_ARGUMENT || status == OPJIT_UNSUPPORTED || status == OPJIT_LIMIT)
        test_require_place(&error);
    if (op != NULL && fuzz_is_small(op))
        run(context, op, how);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, MOST_BYTES, 0);
    return 0;
}
