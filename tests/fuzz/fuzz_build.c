/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_build.c - bytes as calls of the graph builder, any operator's descriptor among them: each call gives a tensor or
 * marks the graph with a one-line message, and what compiles runs within its buffers. */
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/reflect.h>

#include "tests/support/fuzz_descriptor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSORS = 48, STEPS = 16, MOST_BYTES = 96 << 20 };

/* Handles so far; now and then one is null or another graph's. */
typedef struct builder {
    opjit_graph *g;
    opjit_tensor tensors[TENSORS];
    uint32_t count;
    uint64_t elements; /* of all tensors */
    fuzz_shape shape;
} builder;

static opjit_tensor take_handle(fuzz_reader *r, const builder *b)
{
    opjit_tensor t = { 0, 0 };
    if (b->count != 0 && !fuzz_sometimes(r, 8))
        t = b->tensors[fuzz_choose(r, b->count)];
    if (fuzz_sometimes(r, 4))
        t.graph++;
    return t;
}

/* The call's result: a tensor of a graph that goes on, or null with the reason. */
static void put(builder *b, opjit_tensor t)
{
    opjit_error error = { 0 };
    opjit_tensor_type type;
    const opjit_status status = opjit_graph_status(b->g, &error);
    uint64_t elements = 1;
    fuzz_require_refusal(status, &error, status == OPJIT_OK, "builder");
    test_require(status == OPJIT_OK || t.index == 0, "a tensor of a graph that has failed");
    if (t.index == 0 || b->count == TENSORS)
        return;
    test_require(opjit_graph_get_type(b->g, t, &type) == OPJIT_OK, "a tensor without a type");
    for (uint32_t d = 0; d < type.rank; d++)
        elements *= type.sizes[d];
    b->elements += elements;
    b->tensors[b->count++] = t;
}

/* Up to 8 numbers, small ones and any. */
static void take_numbers(fuzz_reader *r, uint32_t numbers[8])
{
    for (uint32_t d = 0; d < 8; d++)
        numbers[d] = fuzz_sometimes(r, 8) ? (uint32_t)fuzz_take(r, 4) : fuzz_choose(r, 6);
}

static void add_operator(fuzz_reader *r, builder *b)
{
    static fuzz_descriptor d;
    opjit_tensor inputs[16], outputs[8];
    opjit_tensor_type types[8] = { { DML_TENSOR_DATA_TYPE_UNKNOWN, 0, { 0 } } };
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    uint32_t operators = 0;
    while (opjit_fe_op_at(operators) != NULL)
        operators++;
    const op_def *def = opjit_fe_op_at(fuzz_choose(r, operators));
    fuzz_take_descriptor(r, def, &b->shape, &d);
    unsigned char *fields = (unsigned char *)(uintptr_t)d.desc.Desc;
    for (uint32_t i = 0; i < def->field_count && fields != NULL; i++)
        if (def->fields[i].kind <= OP_OUTPUTS && !fuzz_sometimes(r, 16))
            memset(fields + def->fields[i].offset, 0, sizeof(void *));
    node.type = fuzz_sometimes(r, 4) ? (DML_OPERATOR_TYPE)fuzz_take(r, 2) : d.desc.Type;
    node.desc = node.type == d.desc.Type && !fuzz_sometimes(r, 4) ? fields : NULL;
    for (uint32_t i = 0; i < def->field_count; i++)
        node.input_count += def->fields[i].kind == OP_INPUT || def->fields[i].kind == OP_INPUTS;
    if (fuzz_sometimes(r, 16))
        node.input_count = fuzz_choose(r, 8);
    node.output_count = fuzz_sometimes(r, 32) ? fuzz_choose(r, 8) : 1;
    test_require(node.input_count <= 16, "%s has %u inputs", def->name, node.input_count);
    for (uint32_t i = 0; i < 8 || i < node.input_count; i++)
        inputs[i] = take_handle(r, b);
    if (fuzz_sometimes(r, 64)) {
        types[0].dtype = (DML_TENSOR_DATA_TYPE)(fuzz_take(r, 1) % 16);
        types[0].rank = fuzz_choose(r, 10);
        take_numbers(r, types[0].sizes);
    }
    node.inputs = inputs;
    node.output_types = types;
    node.name = fuzz_sometimes(r, 16) ? "name" : NULL;
    (void)opjit_graph_add_node(b->g, &node, outputs);
    for (uint32_t i = 0; i < node.output_count; i++)
        put(b, outputs[i]);
}

static void add_source(fuzz_reader *r, builder *b)
{
    static const uint8_t data[4096] = { 1, 2, 3 };
    const DML_TENSOR_DATA_TYPE dtype = b->shape.dtype;
    const double value = (double)(int32_t)fuzz_take(r, 1);
    uint32_t sizes[8], rank = b->shape.rank;
    memcpy(sizes, b->shape.sizes, sizeof sizes);
    if (fuzz_sometimes(r, 16)) {
        rank = fuzz_choose(r, 10);
        take_numbers(r, sizes);
    }
    uint64_t bytes = opjit_data_type_size(dtype);
    for (uint32_t d = 0; d < rank && d < 8; d++)
        bytes *= sizes[d];
    if (bytes > sizeof data || fuzz_sometimes(r, 16))
        bytes = fuzz_choose(r, 256);
    switch (fuzz_choose(r, 5)) {
    case 0: put(b, opjit_graph_input(b->g, fuzz_sometimes(r, 16) ? "in\n" : NULL, dtype, rank, sizes)); break;
    case 1: put(b, opjit_graph_scalar(b->g, dtype, value)); break;
    case 2: put(b, opjit_graph_sequence(b->g, dtype, rank, sizes, value, 1)); break;
    case 3: put(b, opjit_graph_band(b->g, dtype, rank, sizes, value, (int32_t)fuzz_take(r, 1), 3)); break;
    default:
        put(b,
            opjit_graph_constant(b->g, dtype, rank, sizes, data, bytes, fuzz_sometimes(r, 16) ? fuzz_choose(r, 3) : 0));
    }
}

/* Numbers that fit the tensor for each kind of view, unless bytes change them. */
static void add_view(fuzz_reader *r, builder *b)
{
    const opjit_tensor t = take_handle(r, b);
    const uint32_t what = fuzz_choose(r, 4), turn = fuzz_choose(r, 8);
    uint32_t numbers[8] = { 0 }, offsets[8] = { 0 };
    int32_t strides[8];
    opjit_tensor_type type;
    (void)opjit_graph_get_type(b->g, t, &type);
    uint32_t rank = what == 0 && turn == 0 ? 1 : type.rank;
    for (uint32_t d = 0; d < type.rank; d++) {
        const uint32_t from = (d + turn) % type.rank;
        numbers[d] = what == 1 ? from : what == 3 ? 1 + (type.sizes[d] - 1) / 2 : type.sizes[what == 0 ? from : d];
    }
    if (what == 0 && turn == 0)
        numbers[0] = 0;
    if (fuzz_sometimes(r, 32)) {
        rank = fuzz_choose(r, 10);
        take_numbers(r, numbers);
    }
    if (fuzz_sometimes(r, 32))
        take_numbers(r, offsets);
    for (uint32_t d = 0; d < 8; d++)
        strides[d] = (int32_t)(fuzz_sometimes(r, 16) ? (uint32_t)fuzz_take(r, 4) : 1 + fuzz_choose(r, 2));
    switch (what) {
    case 0: put(b, opjit_graph_reshape(b->g, t, rank, numbers)); break;
    case 1: put(b, opjit_graph_transpose(b->g, t, numbers)); break;
    case 2: put(b, opjit_graph_broadcast(b->g, t, rank, numbers)); break;
    default: put(b, opjit_graph_slice(b->g, t, offsets, numbers, fuzz_sometimes(r, 64) ? NULL : strides));
    }
}

static void compile(builder *b)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    fuzz_memory m = { 0 };
    options.flags = OPJIT_COMPILE_INTERPRET;
    const opjit_status status = opjit_graph_compile(b->g, &options, &kernel, &error);
    fuzz_require_refusal(status, &error, kernel != NULL, "compile");
    if (kernel != NULL && fuzz_memory_create(&m, kernel, 1))
        test_require(fuzz_memory_call(&m, kernel, &error) == OPJIT_OK, "%s", error.message);
    fuzz_memory_free(&m);
    opjit_kernel_release(kernel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    const DML_GRAPH_DESC *desc = NULL;
    opjit_error error = { 0 };
    fuzz_reader r = { data, size };
    builder b = { .count = 0 };
    fuzz_meter meter;
    fuzz_meter_begin(&meter);
    options.allocator = &meter.memory.allocator;
    test_require(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    test_require(opjit_graph_create(context, &b.g, &error) == OPJIT_OK, "%s", error.message);
    b.shape = fuzz_take_shape(&r);
    for (uint32_t steps = 2 + fuzz_choose(&r, STEPS); steps > 0 && opjit_graph_status(b.g, NULL) == OPJIT_OK; steps--) {
        const uint32_t what = b.count == 0 ? 0 : fuzz_choose(&r, 8);
        if (what == 0)
            add_source(&r, &b);
        else if (what < 3)
            add_view(&r, &b);
        else
            add_operator(&r, &b);
    }
    if (b.count != 0)
        (void)opjit_graph_output(b.g, "out", b.tensors[b.count - 1]);
    const opjit_status status = opjit_graph_get_desc(b.g, &desc, &error);
    fuzz_require_refusal(status, &error, desc != NULL, "describe");
    if (desc != NULL && b.elements <= 4 * FUZZ_ELEMENTS)
        compile(&b);
    opjit_graph_destroy(b.g);
    opjit_context_destroy(context);
    fuzz_meter_end(&meter, size, MOST_BYTES, 0);
    return 0;
}
