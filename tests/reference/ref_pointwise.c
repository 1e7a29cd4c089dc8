/* SPDX-License-Identifier: Apache-2.0 */
/* ref_pointwise.c - the loop over the elements of a pointwise operator, and conversions between elements and numbers.
 * FLOAT16 is computed in FLOAT32 and rounded at the end.  The formulas are in the files of the families. */
#include "tests/reference/pointwise.h"

#include <math.h>
#include <string.h>

/* --- numbers ------------------------------------------------------------------------------------------------------ */

bool ref_dtype_is_signed(DML_TENSOR_DATA_TYPE dtype)
{
    return dtype == DML_TENSOR_DATA_TYPE_INT8 || dtype == DML_TENSOR_DATA_TYPE_INT16 ||
           dtype == DML_TENSOR_DATA_TYPE_INT32 || dtype == DML_TENSOR_DATA_TYPE_INT64;
}

double ref_float_of(ref_element x)
{
    const uint32_t low = (uint32_t)x.bits;
    double wide;
    float single;
    switch (x.dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT16: return (double)ref_float_of_half((uint16_t)x.bits);
    case DML_TENSOR_DATA_TYPE_FLOAT32: memcpy(&single, &low, sizeof single); return (double)single;
    default: memcpy(&wide, &x.bits, sizeof wide); return wide;
    }
}

uint64_t ref_integer_of(ref_element x)
{
    const uint32_t width = 8 * ref_dtype_size(x.dtype);
    const uint64_t sign = UINT64_C(1) << (width - 1), bits = x.bits & UINT64_MAX >> (64 - width);
    return ref_dtype_is_signed(x.dtype) ? (bits ^ sign) - sign : bits;
}

static uint64_t float_bits(DML_TENSOR_DATA_TYPE dtype, double value)
{
    uint64_t bits = 0;
    float single;
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT16: return ref_half_of_float((float)value);
    case DML_TENSOR_DATA_TYPE_FLOAT32:
        single = (float)value;
        memcpy(&bits, &single, sizeof single);
        return bits;
    default: memcpy(&bits, &value, sizeof bits); return bits;
    }
}

ref_result ref_result_of(DML_TENSOR_DATA_TYPE dtype, ref_range range)
{
    const uint64_t lo = float_bits(dtype, range.lo), hi = float_bits(dtype, range.hi);
    ref_result result = { isnan(range.hi) || lo == hi, lo, range };
    result.range.lo = ref_float_of((ref_element){ dtype, lo });
    result.range.hi = ref_float_of((ref_element){ dtype, hi });
    return result;
}

ref_result ref_result_bits(uint64_t bits)
{
    return (ref_result){ true, bits, { 0, 0 } };
}

/* --- ScaleBias ---------------------------------------------------------------------------------------------------- */

#define SCALE_BIAS(NAME) \
    case DML_OPERATOR_ELEMENT_WISE_##NAME: return ((const DML_ELEMENT_WISE_##NAME##_OPERATOR_DESC *)op->Desc)->ScaleBias

static const DML_SCALE_BIAS *scale_bias_of(const DML_OPERATOR_DESC *op)
{
    switch (op->Type) {
        SCALE_BIAS(IDENTITY);
        SCALE_BIAS(ABS);
        SCALE_BIAS(ACOS);
        SCALE_BIAS(ASIN);
        SCALE_BIAS(ATAN);
        SCALE_BIAS(CEIL);
        SCALE_BIAS(CLIP);
        SCALE_BIAS(CLIP1);
        SCALE_BIAS(COS);
        SCALE_BIAS(EXP);
        SCALE_BIAS(FLOOR);
        SCALE_BIAS(LOG);
        SCALE_BIAS(POW);
        SCALE_BIAS(CONSTANT_POW);
        SCALE_BIAS(RECIP);
        SCALE_BIAS(SIN);
        SCALE_BIAS(SQRT);
        SCALE_BIAS(TAN);
        SCALE_BIAS(THRESHOLD);
        SCALE_BIAS(ERF);
        SCALE_BIAS(SINH);
        SCALE_BIAS(COSH);
        SCALE_BIAS(TANH);
        SCALE_BIAS(ASINH);
        SCALE_BIAS(ACOSH);
        SCALE_BIAS(ATANH);
    default: return NULL;
    }
}

/* A whole float modulo 2^64. */
static uint64_t whole(float value)
{
    const double rest = fmod((double)value, 18446744073709551616.0);
    return rest < 0 ? 0 - (uint64_t)-rest : (uint64_t)rest;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

static ref_result float_element(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const ref_element *x)
{
    const ref_floats f = { dtype == DML_TENSOR_DATA_TYPE_FLOAT64 };
    const DML_SCALE_BIAS *pair = scale_bias_of(op);
    ref_range values[REF_INPUTS_MAX], out = { NAN, NAN };
    for (int i = 0; i < REF_INPUTS_MAX; i++)
        values[i] = ref_exactly(x[i].dtype == DML_TENSOR_DATA_TYPE_UNKNOWN ? 0 : ref_float_of(x[i]));
    if (pair != NULL) {
        values[0] = ref_mul(f, values[0], ref_exactly((double)pair->Scale));
        values[0] = ref_add(f, values[0], ref_exactly((double)pair->Bias));
    }
    if (!ref_element_wise_float(op, f, values, &out))
        ref_activation(op, f, values, &out);
    return ref_result_of(dtype, out);
}

static ref_result integer_element(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const ref_element *x)
{
    const DML_SCALE_BIAS *pair = scale_bias_of(op);
    const uint64_t mask = UINT64_MAX >> (64 - 8 * ref_dtype_size(dtype));
    uint64_t values[REF_INPUTS_MAX];
    ref_result out = ref_result_bits(0);
    for (int i = 0; i < REF_INPUTS_MAX; i++)
        values[i] = x[i].dtype == DML_TENSOR_DATA_TYPE_UNKNOWN ? 0 : ref_integer_of(x[i]);
    if (pair != NULL) {
        const uint64_t scaled = (values[0] * whole(pair->Scale) + whole(pair->Bias)) & mask;
        values[0] = ref_integer_of((ref_element){ dtype, scaled });
    }
    ref_element_wise_integer(op, dtype, values, &out);
    out.bits &= mask;
    return out;
}

static ref_result element(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const ref_element *x)
{
    ref_result result;
    if (ref_mixed(op, dtype, x, &result))
        return result;
    return ref_dtype_is_float(dtype) ? float_element(op, dtype, x) : integer_element(op, dtype, x);
}

static bool allows(ref_result result, ref_element actual)
{
    const double value = ref_dtype_is_float(actual.dtype)    ? ref_float_of(actual)
                         : ref_dtype_is_signed(actual.dtype) ? (double)(int64_t)ref_integer_of(actual)
                                                             : (double)ref_integer_of(actual);
    const bool above = isnan(result.range.lo) || value >= result.range.lo;
    return !result.exact && ((isnan(value) && isnan(result.range.lo)) || (above && value <= result.range.hi));
}

uint64_t ref_pointwise_offset(const ref_tensor *input, const uint32_t coordinates[8])
{
    uint32_t own[8];
    for (uint32_t d = 0; d < input->rank; d++)
        own[d] = input->sizes[d] == 1 ? 0 : coordinates[d];
    return ref_tensor_offset(input, own);
}

void ref_pointwise(const DML_OPERATOR_DESC *op, const ref_argument inputs[REF_INPUTS_MAX],
                   const DML_TENSOR_DESC *output_desc, const void *actual, void *output)
{
    const ref_tensor out = ref_tensor_of(output_desc);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_element x[REF_INPUTS_MAX] = { { DML_TENSOR_DATA_TYPE_UNKNOWN, 0 } };
        uint32_t c[8];
        ref_tensor_coordinates(&out, e, c);
        for (int i = 0; i < REF_INPUTS_MAX; i++) {
            if (inputs[i].desc == NULL)
                continue;
            const ref_tensor in = ref_tensor_of(inputs[i].desc);
            x[i] = (ref_element){ in.dtype, ref_load(&in, inputs[i].data, ref_pointwise_offset(&in, c)) };
        }
        const uint64_t offset = ref_tensor_offset(&out, c);
        const ref_element got = { out.dtype, ref_load(&out, actual, offset) };
        const ref_result result = element(op, out.dtype, x);
        ref_store(&out, output, offset, allows(result, got) ? got.bits : result.bits);
    }
}
