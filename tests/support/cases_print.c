/* SPDX-License-Identifier: Apache-2.0 */
/* cases_print.c - prints a case as C, for the report of a failure. */
#include <inttypes.h>

#include "tests/reference/reference.h"
#include "tests/support/cases.h"

const char *test_type_name(DML_TENSOR_DATA_TYPE type)
{
    static const char *const names[] = { "UNKNOWN", "FLOAT32", "FLOAT16", "UINT32", "UINT16",  "UINT8", "INT32",
                                         "INT16",   "INT8",    "FLOAT64", "UINT64", "INT64",   "UINT4", "INT4" };
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "?";
}

const char *test_operator_name(DML_OPERATOR_TYPE type)
{
    switch (type) {
    case DML_OPERATOR_DIAGONAL_MATRIX: return "DIAGONAL_MATRIX";
    case DML_OPERATOR_DIAGONAL_MATRIX1: return "DIAGONAL_MATRIX1";
    case DML_OPERATOR_FILL_VALUE_CONSTANT: return "FILL_VALUE_CONSTANT";
    case DML_OPERATOR_FILL_VALUE_SEQUENCE: return "FILL_VALUE_SEQUENCE";
    default: return "?";
    }
}

static void print_array(FILE *file, const char *name, const char *what, const uint32_t *values, uint32_t count)
{
    fprintf(file, "static const uint32_t %s_%s[] = {", name, what);
    for (uint32_t i = 0; i < count; i++)
        fprintf(file, "%s %" PRIu32, i != 0 ? "," : "", values[i]);
    fprintf(file, " };\n");
}

static void print_tensor(FILE *file, const char *name, const test_tensor *t)
{
    const DML_BUFFER_TENSOR_DESC *b = &t->buffer;
    print_array(file, name, "sizes", b->Sizes, b->DimensionCount);
    if (b->Strides != NULL)
        print_array(file, name, "strides", b->Strides, b->DimensionCount);
    fprintf(file,
            "static const DML_BUFFER_TENSOR_DESC %s_buffer = { DML_TENSOR_DATA_TYPE_%s, %d, %" PRIu32 ", %s_sizes, ",
            name, test_type_name(b->DataType), (int)b->Flags, b->DimensionCount, name);
    if (b->Strides != NULL)
        fprintf(file, "%s_strides", name);
    else
        fprintf(file, "NULL");
    fprintf(file, ", %" PRIu64 ", %" PRIu32 " };\n", b->TotalTensorSizeInBytes, b->GuaranteedBaseOffsetAlignment);
    fprintf(file, "static const DML_TENSOR_DESC %s = { DML_TENSOR_TYPE_BUFFER, &%s_buffer };\n", name, name);
}

static void print_scalar(FILE *file, const char *field, DML_TENSOR_DATA_TYPE type, const DML_SCALAR_UNION *value)
{
    fprintf(file, "    .%s.UInt64 = 0x%" PRIx64 ",\n", field, ref_scalar_bits(type, value));
}

void test_case_print(FILE *file, const test_case *c)
{
    const test_desc *d = &c->desc;
    const DML_TENSOR_DATA_TYPE type = c->output.buffer.DataType;
    if (c->has_input)
        print_tensor(file, "input", &c->input);
    print_tensor(file, "output", &c->output);
    fprintf(file, "static const DML_%s_OPERATOR_DESC desc = { /* %s */\n", test_operator_name(c->op.Type),
            c->in_place ? "in place" : "separate buffers");
    if (c->has_input)
        fprintf(file, "    .InputTensor = &input,\n");
    fprintf(file, "    .OutputTensor = &output,\n");
    if (c->op.Type != DML_OPERATOR_DIAGONAL_MATRIX)
        fprintf(file, "    .ValueDataType = DML_TENSOR_DATA_TYPE_%s,\n", test_type_name(type));
    switch (c->op.Type) {
    case DML_OPERATOR_DIAGONAL_MATRIX:
        fprintf(file, "    .Offset = %" PRId32 ",\n    .Value = %af, /* 0x%" PRIx64 " */\n", d->diagonal_matrix.Offset,
                (double)d->diagonal_matrix.Value,
                ref_element_of_float(DML_TENSOR_DATA_TYPE_FLOAT32, d->diagonal_matrix.Value));
        break;
    case DML_OPERATOR_DIAGONAL_MATRIX1:
        print_scalar(file, "Value", type, &d->diagonal_matrix1.Value);
        fprintf(file, "    .DiagonalFillBegin = %" PRId32 ",\n    .DiagonalFillEnd = %" PRId32 ",\n",
                d->diagonal_matrix1.DiagonalFillBegin, d->diagonal_matrix1.DiagonalFillEnd);
        break;
    case DML_OPERATOR_FILL_VALUE_CONSTANT:
        print_scalar(file, "Value", type, &d->fill_value_constant.Value);
        break;
    default:
        print_scalar(file, "ValueStart", type, &d->fill_value_sequence.ValueStart);
        print_scalar(file, "ValueDelta", type, &d->fill_value_sequence.ValueDelta);
        break;
    }
    fprintf(file, "};\n");
    fflush(file);
}
