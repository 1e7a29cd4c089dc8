/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_custom.c - bytes as an opjit_custom_desc: either it is refused with a message, or it makes an operator whose
 * kernel calls the function once. */
#include <stdlib.h>
#include <string.h>

#include <opjit/ffi.h>

#include "tests/support/fuzz_descriptor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSORS = 72, ARGS = 80 };

static uint32_t calls;

/* Ignores its arguments, whichever they are: the caller removes them. */
static int count_call(void)
{
    calls++;
    return 0;
}

static void take_args(fuzz_reader *r, opjit_custom_desc *d, opjit_custom_arg *args)
{
    d->arg_count = fuzz_sometimes(r, 16) ? fuzz_choose(r, ARGS + 1) : d->input_count + d->output_count;
    for (uint32_t i = 0; i < d->arg_count && i < ARGS; i++) {
        args[i] = (opjit_custom_arg){ .kind = i < d->input_count ? OPJIT_CUSTOM_INPUT : OPJIT_CUSTOM_OUTPUT,
                                      .index = i < d->input_count ? i : i - d->input_count };
        if (!fuzz_sometimes(r, 48))
            continue;
        args[i].kind = (uint32_t)fuzz_take(r, 1) % 6;
        args[i].index = (uint32_t)fuzz_take(r, 1) % 80;
        args[i].dtype = (DML_TENSOR_DATA_TYPE)(fuzz_take(r, 1) % 16);
        args[i].value.UInt64 = fuzz_take(r, 8);
        args[i].reserved = fuzz_sometimes(r, 8);
    }
    d->args = fuzz_sometimes(r, 4) ? NULL : args;
}

static void take_desc(fuzz_reader *r, opjit_custom_desc *d, graph_tensor *tensors, DML_TENSOR_DESC *descs,
                      opjit_custom_arg *args)
{
    const fuzz_shape shape = fuzz_take_shape(r);
    d->name = fuzz_sometimes(r, 16) ? NULL : "custom";
    d->function = fuzz_sometimes(r, 4) ? NULL : (void (*)(void))count_call;
    d->flags = fuzz_sometimes(r, 16) ? (uint32_t)fuzz_take(r, 4) : OPJIT_CUSTOM_RETURNS_STATUS;
    d->input_count = fuzz_sometimes(r, 16) ? fuzz_choose(r, TENSORS) : fuzz_choose(r, 4);
    d->output_count = fuzz_sometimes(r, 16) ? fuzz_choose(r, TENSORS) : 1 + fuzz_choose(r, 2);
    for (uint32_t i = 0; i < 2 * TENSORS; i++) {
        graph_tensor_set(&tensors[i], shape.dtype, shape.rank, shape.sizes, NULL, 0);
        if (i < 8 && fuzz_sometimes(r, 32))
            tensors[i].sizes[fuzz_choose(r, 8)] = (uint32_t)fuzz_take(r, 1);
        if (i < 8 && fuzz_sometimes(r, 16))
            tensors[i].buffer.TotalTensorSizeInBytes = fuzz_take(r, 8);
        descs[i] = tensors[i].desc;
    }
    d->inputs = fuzz_sometimes(r, 4) ? NULL : descs;
    d->outputs = fuzz_sometimes(r, 4) ? NULL : descs + 4;
    if (fuzz_sometimes(r, 32)) {
        d->key = "key";
        d->key_bytes = fuzz_sometimes(r, 64) ? fuzz_take(r, 1) % 4 : 3;
    }
    d->reserved = fuzz_sometimes(r, 4);
    if (fuzz_sometimes(r, 8))
        d->struct_size = (uint32_t)fuzz_take(r, 2);
    take_args(r, d, args);
}

/* As many bytes as struct_size says, so that a sanitizer notices reads past them. */
static void *copy_struct(const opjit_custom_desc *d)
{
    const size_t size = d->struct_size > sizeof d->struct_size ? d->struct_size : sizeof d->struct_size;
    uint8_t *copy = calloc(1, size);
    test_require(copy != NULL, "no memory");
    memcpy(copy, d, size < sizeof *d ? size : sizeof *d);
    return copy;
}

static void run(opjit_context *context, opjit_operator *op)
{
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    fuzz_memory m = { 0 };
    opjit_status status = opjit_compile_operator(context, op, NULL, &kernel, &error);
    fuzz_require_refusal(status, &error, kernel != NULL, "compile");
    if (kernel != NULL && fuzz_memory_create(&m, kernel, 1)) {
        const uint32_t before = calls;
        status = fuzz_memory_call(&m, kernel, &error);
        test_require(calls == before + 1, "%s after %u calls", opjit_status_name(status), calls - before);
    }
    fuzz_memory_free(&m);
    opjit_kernel_release(kernel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static graph_tensor tensors[2 * TENSORS];
    static DML_TENSOR_DESC descs[2 * TENSORS];
    static opjit_custom_arg args[ARGS];
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_custom_desc desc = OPJIT_CUSTOM_DESC_INIT;
    opjit_context *context = NULL;
    opjit_operator *op = NULL;
    opjit_error error = { 0 };
    fuzz_reader r = { data, size };
    fuzz_meter meter;
    memset(args, 0, sizeof args);
    take_desc(&r, &desc, tensors, descs, args);
    fuzz_meter_begin(&meter);
    options.allocator = &meter.memory.allocator;
    test_require(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    void *const given = copy_struct(&desc);
    const opjit_status status = opjit_custom_create(context, given, &op, &error);
    free(given);
    fuzz_require_refusal(status, &error, op != NULL, "custom");
    if (op != NULL && fuzz_is_small(op))
        run(context, op);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, 64 << 20, 0);
    return 0;
}
