/* SPDX-License-Identifier: Apache-2.0 */
/* number.c - decimal text to elements and back.  The program never calls setlocale, so that strtod reads JSON's
 * form. */
#include "frontend/cli/text/number.h"

#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <opjit/reflect.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* As much of a number's or string's text as a message shows, for "%.*s%s". */
#define SHOWN(value) \
    (int)((value)->length > 40 ? 37 : (value)->length), (value)->text, (value)->length > 40 ? "..." : ""

/* Splits a whole number into sign and magnitude; overflow beyond 64 bits counts as out of range. */
static opjit_status whole(const json_value *value, const char *type, bool *negative, uint64_t *magnitude, bool *fits,
                          opjit_error *error)
{
    uint64_t sum = 0;
    if (value->kind != JSON_NUMBER)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "this is %s, but has to be a whole number (%s)",
                                  opjit_cli_kind_name(value->kind), type);
    *negative = value->text[0] == '-';
    *fits = true;
    for (size_t i = *negative; i < value->length; i++) {
        const char c = value->text[i];
        if (c < '0' || c > '9')
            return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                      "%.*s%s is not written as a whole number (%s): decimal digits only", SHOWN(value),
                                      type);
        if (!checked_mul(sum, 10, &sum) || !checked_add(sum, (uint64_t)(c - '0'), &sum)) {
            *fits = false;
            sum = 0;
        }
    }
    *magnitude = sum;
    return OPJIT_OK;
}

/* A whole decimal number in [lo, hi]; type: as of opjit_cli_unsigned. */
static opjit_status read_integer(const json_value *value, const char *type, int64_t lo, int64_t hi, int64_t *out,
                                 opjit_error *error)
{
    bool negative = false, fits = false;
    uint64_t magnitude = 0;
    TRY(whole(value, type, &negative, &magnitude, &fits, error));
    fits = fits && magnitude <= (negative ? (uint64_t)1 << 63 : (uint64_t)INT64_MAX);
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    if (!fits || *out < lo || *out > hi)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                  "%.*s%s is out of range: %s is %" PRId64 " to %" PRId64, SHOWN(value), type, lo, hi);
    return OPJIT_OK;
}

opjit_status opjit_cli_unsigned(const json_value *value, const char *type, uint64_t hi, uint64_t *out,
                                opjit_error *error)
{
    bool negative = false, fits = false;
    *out = 0;
    TRY(whole(value, type, &negative, out, &fits, error));
    if (negative || !fits || *out > hi)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%.*s%s is out of range: %s is 0 to %" PRIu64,
                                  SHOWN(value), type, hi);
    return OPJIT_OK;
}

/* The decimal text rounded to odd: where it is no double, the neighbour with an odd last bit.  Rounding that to half
 * precision gives what rounding the text itself would; rounding to nearest twice does not. */
static double round_to_odd(const char *text)
{
    const int mode = fegetround();
    uint64_t bits;
    double below, above;
    fesetround(FE_DOWNWARD);
    below = strtod(text, NULL);
    fesetround(FE_UPWARD);
    above = strtod(text, NULL);
    fesetround(mode);
    memcpy(&bits, &below, sizeof bits);
    return (bits & 1) != 0 ? below : above;
}

static opjit_status float_word(const json_value *value, DML_TENSOR_DATA_TYPE type, DML_SCALAR_UNION *out,
                               opjit_error *error)
{
    static const struct {
        const char *text;
        uint16_t half;
        uint32_t single;
        uint64_t full;
    } words[] = {
        { "inf", 0x7c00, 0x7f800000, 0x7ff0000000000000 },
        { "-inf", 0xfc00, 0xff800000, 0xfff0000000000000 },
        { "nan", 0x7e00, 0x7fc00000, 0x7ff8000000000000 },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].text) != value->length || strcasecmp(words[i].text, value->text) != 0)
            continue;
        if (type == DML_TENSOR_DATA_TYPE_FLOAT16)
            out->UInt16 = words[i].half;
        else if (type == DML_TENSOR_DATA_TYPE_FLOAT32)
            out->UInt32 = words[i].single;
        else
            out->UInt64 = words[i].full;
        return OPJIT_OK;
    }
    return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                              "\"%.*s%s\" is no %s: a number, \"inf\", \"-inf\" or \"nan\" is allowed", SHOWN(value),
                              opjit_data_type_name(type));
}

static opjit_status float_element(const json_value *value, DML_TENSOR_DATA_TYPE type, DML_SCALAR_UNION *out,
                                  opjit_error *error)
{
    bool finite;
    if (value->kind == JSON_STRING)
        return float_word(value, type, out, error);
    if (value->kind != JSON_NUMBER)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "this is %s, but has to be a number (%s)",
                                  opjit_cli_kind_name(value->kind), opjit_data_type_name(type));
    if (type == DML_TENSOR_DATA_TYPE_FLOAT16) {
        out->UInt16 = opjit_float16_from_double(round_to_odd(value->text));
        finite = (out->UInt16 & 0x7c00) != 0x7c00;
    } else if (type == DML_TENSOR_DATA_TYPE_FLOAT32) {
        out->Float32 = strtof(value->text, NULL);
        finite = isfinite(out->Float32) != 0;
    } else {
        out->Float64 = strtod(value->text, NULL);
        finite = isfinite(out->Float64) != 0;
    }
    if (!finite)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "%.*s%s is out of range of %s", SHOWN(value),
                                  opjit_data_type_name(type));
    return OPJIT_OK;
}

opjit_status opjit_cli_element(const json_value *value, DML_TENSOR_DATA_TYPE type, uint32_t flags,
                               DML_SCALAR_UNION *out, opjit_error *error)
{
    const uint32_t bits = 8 * opjit_data_type_size(type);
    const char *const name = opjit_data_type_name(type);
    const int64_t half = bits != 0 ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1) : 0;
    int64_t number = 0;
    memset(out, 0, sizeof *out);
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT16:
    case DML_TENSOR_DATA_TYPE_FLOAT32:
    case DML_TENSOR_DATA_TYPE_FLOAT64: return float_element(value, type, out, error);
    case DML_TENSOR_DATA_TYPE_INT8:
    case DML_TENSOR_DATA_TYPE_INT16:
    case DML_TENSOR_DATA_TYPE_INT32:
    case DML_TENSOR_DATA_TYPE_INT64: TRY(read_integer(value, name, -half - 1, half, &number, error)); break;
    case DML_TENSOR_DATA_TYPE_UINT8:
    case DML_TENSOR_DATA_TYPE_UINT16:
    case DML_TENSOR_DATA_TYPE_UINT32:
    case DML_TENSOR_DATA_TYPE_UINT64:
        if ((flags & NUMBER_WRAPS) != 0 && value->kind == JSON_NUMBER && value->text[0] == '-')
            TRY(read_integer(value, "a negative number here", -half - 1, 0, &number, error));
        else
            TRY(opjit_cli_unsigned(value, name, UINT64_MAX >> (64 - bits), (uint64_t *)&number, error));
        break;
    default: return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "values of type %s can't be written in a model", name);
    }
    for (uint32_t i = 0; i < bits / 8; i++)
        out->Bytes[i] = (uint8_t)((uint64_t)number >> 8 * i);
    return OPJIT_OK;
}

static void print_float(rt_bytes *out, double x)
{
    if (isnan(x)) /* printf would show the sign */
        opjit_rt_bytes_append(out, "nan", 3);
    else
        opjit_rt_bytes_printf(out, "%.6g", x);
}

void opjit_cli_print_element(rt_bytes *out, DML_TENSOR_DATA_TYPE type, const void *data)
{
    DML_SCALAR_UNION v = { { 0 } };
    memcpy(&v, data, opjit_data_type_size(type));
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT16: print_float(out, (double)opjit_float16_to_float(v.UInt16)); break;
    case DML_TENSOR_DATA_TYPE_FLOAT32: print_float(out, (double)v.Float32); break;
    case DML_TENSOR_DATA_TYPE_FLOAT64: print_float(out, v.Float64); break;
    case DML_TENSOR_DATA_TYPE_INT8: opjit_rt_bytes_printf(out, "%d", v.Int8); break;
    case DML_TENSOR_DATA_TYPE_INT16: opjit_rt_bytes_printf(out, "%d", v.Int16); break;
    case DML_TENSOR_DATA_TYPE_INT32: opjit_rt_bytes_printf(out, "%" PRId32, v.Int32); break;
    case DML_TENSOR_DATA_TYPE_INT64: opjit_rt_bytes_printf(out, "%" PRId64, v.Int64); break;
    case DML_TENSOR_DATA_TYPE_UINT8: opjit_rt_bytes_printf(out, "%u", v.UInt8); break;
    case DML_TENSOR_DATA_TYPE_UINT16: opjit_rt_bytes_printf(out, "%u", v.UInt16); break;
    case DML_TENSOR_DATA_TYPE_UINT32: opjit_rt_bytes_printf(out, "%" PRIu32, v.UInt32); break;
    case DML_TENSOR_DATA_TYPE_UINT64: opjit_rt_bytes_printf(out, "%" PRIu64, v.UInt64); break;
    default: opjit_rt_bytes_append(out, "?", 1); break;
    }
}
