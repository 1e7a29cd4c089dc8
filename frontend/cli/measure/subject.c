/* SPDX-License-Identifier: Apache-2.0 */
/* subject.c - see subject.h. */
#include "frontend/cli/measure/subject.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/base.h"

const DML_TENSOR_DATA_TYPE subject_types[SUBJECT_TYPES] = {
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_DATA_TYPE_FLOAT64,
    DML_TENSOR_DATA_TYPE_INT8,    DML_TENSOR_DATA_TYPE_INT16,   DML_TENSOR_DATA_TYPE_INT32,
    DML_TENSOR_DATA_TYPE_INT64,   DML_TENSOR_DATA_TYPE_UINT8,   DML_TENSOR_DATA_TYPE_UINT16,
    DML_TENSOR_DATA_TYPE_UINT32,  DML_TENSOR_DATA_TYPE_UINT64,
};

/* Exact for zero and normal halves, all that benchmarks use. */
static uint16_t half_bits(double value)
{
    int exponent;
    const double mantissa = frexp(fabs(value), &exponent);

    if (value == 0)
        return 0;
    return (uint16_t)((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | ((int)(mantissa * 2048) & 0x3ff));
}

static DML_SCALAR_UNION scalar(DML_TENSOR_DATA_TYPE type, double value)
{
    DML_SCALAR_UNION s = { { 0 } };

    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT32: s.Float32 = (float)value; break;
    case DML_TENSOR_DATA_TYPE_FLOAT64: s.Float64 = value; break;
    case DML_TENSOR_DATA_TYPE_FLOAT16: s.UInt16 = half_bits(value); break;
    default: s.Int64 = (int64_t)value; break; /* little endian: every integer type reads its low bytes */
    }
    return s;
}

uint64_t subject_bits(DML_TENSOR_DATA_TYPE type, double value)
{
    return scalar(type, value).UInt64;
}

void subject_shape(uint64_t bytes, uint32_t element, uint32_t *rows, uint32_t *columns)
{
    *rows = 1;
    while ((uint64_t)*rows * 2 * *rows * 2 * element <= bytes)
        *rows *= 2;
    *columns = (uint32_t)(bytes / element / *rows);
}

static void link_tensor(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns)
{
    memset(d, 0, sizeof *d);
    d->sizes[0] = rows;
    d->sizes[1] = columns;
    d->buffer = (DML_BUFFER_TENSOR_DESC){ .DataType = type, .DimensionCount = 2, .Sizes = d->sizes };
    d->tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->buffer };
    d->op.Desc = &d->fields;
}

void subject_constant(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, double value)
{
    link_tensor(d, type, rows, columns);
    d->op.Type = DML_OPERATOR_FILL_VALUE_CONSTANT;
    d->fields.constant = (DML_FILL_VALUE_CONSTANT_OPERATOR_DESC){ &d->tensor, type, scalar(type, value) };
}

void subject_sequence(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, double start,
                      double delta)
{
    link_tensor(d, type, rows, columns);
    d->op.Type = DML_OPERATOR_FILL_VALUE_SEQUENCE;
    d->fields.sequence =
        (DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC){ &d->tensor, type, scalar(type, start), scalar(type, delta) };
}

void subject_eye(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, int32_t offset,
                 double value)
{
    link_tensor(d, type, rows, columns);
    d->op.Type = DML_OPERATOR_DIAGONAL_MATRIX;
    d->fields.eye = (DML_DIAGONAL_MATRIX_OPERATOR_DESC){ &d->tensor, offset, (float)value };
}

void subject_band(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, int32_t begin,
                  int32_t end, double value)
{
    link_tensor(d, type, rows, columns);
    d->op.Type = DML_OPERATOR_DIAGONAL_MATRIX1;
    d->fields.band =
        (DML_DIAGONAL_MATRIX1_OPERATOR_DESC){ &d->tensor, &d->tensor, type, scalar(type, value), begin, end };
}

bool subject_complain(const char *what, const opjit_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, opjit_status_name(error->status), error->message);
    return false;
}

bool subject_make(opjit_context *context, const subject_desc *d, opjit_level level,
                  const opjit_compile_options *options, subject *out)
{
    opjit_compile_options plain = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error;

    *out = (subject){ .call = OPJIT_CALL_INIT };
    plain.level = level;
    plain.flags = OPJIT_COMPILE_NO_CACHE;
    if (opjit_operator_create(context, &d->op, &out->op, &error) != OPJIT_OK)
        return subject_complain("operator", &error);
    if (opjit_compile_operator(context, out->op, options != NULL ? options : &plain, &out->kernel, &error) !=
        OPJIT_OK) {
        opjit_operator_release(out->op);
        return subject_complain("compile", &error);
    }
    return true;
}

void subject_bind(subject *s, const void *in, void *out, uint64_t bytes, const opjit_executor *executor)
{
    uint32_t count = 0;

    if (in != NULL)
        s->bindings[count++] = (opjit_binding){ (void *)(uintptr_t)in, bytes };
    s->bindings[count++] = (opjit_binding){ out, bytes };
    s->call.bindings = s->bindings;
    s->call.binding_count = count;
    s->call.executor = executor;
}

void subject_run(void *arg)
{
    subject *const s = arg;
    opjit_error error;

    if (opjit_kernel_call(s->kernel, &s->call, &error) != OPJIT_OK && !s->failed) {
        s->failed = true;
        subject_complain("call", &error);
    }
}

void subject_free(subject *s)
{
    opjit_kernel_release(s->kernel);
    opjit_operator_release(s->op);
}
