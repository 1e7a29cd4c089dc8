/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_descriptor.c - bytes as the fields of a generator's descriptor: either it is refused with a message, or its
 * interpreted kernel computes what the reference does.  Pointers are always valid and buffers small: the target looks
 * for descriptors that are accepted and should not be, and for crashes while refusing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/opjit.h>

#include "tests/reference/reference.h"
#include "tests/support/checker.h"
#include "tests/support/require.h"

#define MOST_ELEMENTS 4096u
#define MOST_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct reader {
    const uint8_t *at;
    size_t left;
} reader;

/* Little-endian; zeros past the end. */
static uint64_t take(reader *r, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && r->left != 0; i++, r->at++, r->left--)
        value |= (uint64_t)*r->at << (8 * i);
    return value;
}

/* Sizes have 16 bits: larger ones could only be refused, or be too large to run. */
static void take_tensor(reader *r, test_tensor *t)
{
    const uint64_t has_strides = take(r, 1);
    test_tensor_link(t, (DML_TENSOR_DATA_TYPE)take(r, 1), (uint32_t)take(r, 1));
    t->buffer.Flags = (DML_TENSOR_FLAGS)take(r, 1);
    t->desc.Type = (DML_TENSOR_TYPE)(take(r, 1) ^ DML_TENSOR_TYPE_BUFFER);
    t->buffer.GuaranteedBaseOffsetAlignment = (uint32_t)take(r, 2);
    t->buffer.TotalTensorSizeInBytes = take(r, 4);
    for (uint32_t i = 0; i < 8 && i < t->buffer.DimensionCount; i++)
        t->sizes[i] = (uint32_t)take(r, 2);
    if ((has_strides & 1) == 0)
        return;
    t->buffer.Strides = t->strides;
    for (uint32_t i = 0; i < 8 && i < t->buffer.DimensionCount; i++)
        t->strides[i] = (uint32_t)take(r, has_strides >> 1 & 1 ? 4 : 1);
}

static void take_scalars(reader *r, test_case *c)
{
    test_desc *d = &c->desc;
    switch (c->op.Type) {
    case DML_OPERATOR_DIAGONAL_MATRIX:
        d->diagonal_matrix.OutputTensor = &c->output.desc;
        d->diagonal_matrix.Offset = (int32_t)take(r, 4);
        memcpy(&d->diagonal_matrix.Value, &(uint32_t){ (uint32_t)take(r, 4) }, 4);
        break;
    case DML_OPERATOR_DIAGONAL_MATRIX1:
        d->diagonal_matrix1.InputTensor = c->has_input ? &c->input.desc : NULL;
        d->diagonal_matrix1.OutputTensor = &c->output.desc;
        d->diagonal_matrix1.ValueDataType = (DML_TENSOR_DATA_TYPE)take(r, 1);
        d->diagonal_matrix1.Value.UInt64 = take(r, 8);
        d->diagonal_matrix1.DiagonalFillBegin = (int32_t)take(r, 4);
        d->diagonal_matrix1.DiagonalFillEnd = (int32_t)take(r, 4);
        break;
    case DML_OPERATOR_FILL_VALUE_CONSTANT:
        d->fill_value_constant.OutputTensor = &c->output.desc;
        d->fill_value_constant.ValueDataType = (DML_TENSOR_DATA_TYPE)take(r, 1);
        d->fill_value_constant.Value.UInt64 = take(r, 8);
        break;
    default:
        d->fill_value_sequence.OutputTensor = &c->output.desc;
        d->fill_value_sequence.ValueDataType = (DML_TENSOR_DATA_TYPE)take(r, 1);
        d->fill_value_sequence.ValueStart.UInt64 = take(r, 8);
        d->fill_value_sequence.ValueDelta.UInt64 = take(r, 8);
        break;
    }
}

/* Whether input and output may be one buffer: equal layouts, written equally. */
static bool same_layout(const test_case *c)
{
    const DML_BUFFER_TENSOR_DESC *in = &c->input.buffer, *out = &c->output.buffer;
    return c->has_input && c->input.bytes == c->output.bytes && (in->Strides == NULL) == (out->Strides == NULL) &&
           (in->Strides == NULL || memcmp(c->input.strides, c->output.strides, sizeof c->input.strides) == 0);
}

/* Whether an accepted case is small enough to run. */
static bool measure(test_case *c)
{
    const ref_tensor out = ref_tensor_of(&c->output.desc);
    c->elements = ref_tensor_elements(&out);
    test_tensor_measure(&c->output);
    if (c->has_input)
        test_tensor_measure(&c->input);
    return c->elements <= MOST_ELEMENTS && c->output.bytes <= MOST_BYTES &&
           (!c->has_input || c->input.bytes <= MOST_BYTES);
}

static void broken(const char *what, const test_case *c)
{
    fprintf(stderr, "%s\n", what);
    test_case_print(stderr, c);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static opjit_context *context;   /* one for all inputs; the fuzzer ends the process */
    reader r = { data, size };
    opjit_operator *op = NULL;
    opjit_error error = { 0 };
    test_mode mode = { .name = "fuzz", .flags = OPJIT_COMPILE_INTERPRET };
    test_random random;
    char message[512];
    test_case c;
    if (context == NULL && opjit_context_create(NULL, &context, NULL) != OPJIT_OK)
        abort();
    memset(&c, 0, sizeof c);
    c.op = (DML_OPERATOR_DESC){ test_operators[take(&r, 1) % TEST_OPERATOR_COUNT], &c.desc };
    const uint64_t how = take(&r, 1);
    c.has_input = c.op.Type == DML_OPERATOR_DIAGONAL_MATRIX1 && (how & 1) != 0;
    mode.late = how >> 2 & 7;
    mode.how = (how >> 5 & 1) != 0 ? TEST_PIECES : TEST_CALL;
    take_tensor(&r, &c.output);
    if (c.has_input)
        take_tensor(&r, &c.input);
    take_scalars(&r, &c);

    const opjit_status status = opjit_operator_create(context, &c.op, &op, &error);
    if ((status == OPJIT_OK) != (op != NULL) || (status != OPJIT_OK && error.message[0] == '\0'))
        broken("a refusal without a message, or with an operator", &c);
    if (status == OPJIT_INVALID_ARGUMENT || status == OPJIT_UNSUPPORTED || status == OPJIT_LIMIT)
        test_require_place(&error);
    opjit_operator_release(op);
    if (status != OPJIT_OK || !measure(&c) ||
        (c.has_input && (c.input.buffer.Flags & DML_TENSOR_FLAG_OWNED_BY_DML) != 0))
        return 0;
    c.in_place = (how & 2) != 0 && same_layout(&c);
    test_random_init(&random, 1, 2, 3);
    if (test_check(context, &random, &c, &mode, message, sizeof message) == TEST_FAILED)
        broken(message, &c);
    return 0;
}
