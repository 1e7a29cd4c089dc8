#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# print.sh - what `print` writes: every type, corner cases of floats, and how numbers in models are rounded.
. "$(dirname "$0")/common.inc"

# prints TYPE VALUES EXPECTED
prints() {
    print_model "{ \"initialValuesDataType\": \"$1\", \"initialValues\": $2 }"
    run run "$work/m.json"
    expect_out "$1 $2" "Resource 'R': $3"
}

# integers: both ends
prints INT8 '[-128, 127, 0, -0]' '-128, 127, 0, 0'
prints UINT8 '[0, 255, 65]' '0, 255, 65'
prints INT16 '[-32768, 32767]' '-32768, 32767'
prints UINT16 '[65535]' '65535'
prints INT32 '[-2147483648, 2147483647]' '-2147483648, 2147483647'
prints UINT32 '[4294967295]' '4294967295'
prints INT64 '[-9223372036854775808, 9223372036854775807, 9007199254740993]' \
    '-9223372036854775808, 9223372036854775807, 9007199254740993'
prints UINT64 '[18446744073709551615, 9007199254740993]' '18446744073709551615, 9007199254740993'

# floats: %.6g, the words in any case, the sign of zero
prints FLOAT32 '[1, -1.5, 0.1, 1e10, 1e-7, 123456.7, 1234567]' '1, -1.5, 0.1, 1e+10, 1e-07, 123457, 1.23457e+06'
prints FLOAT32 '["inf", "-INF", "NaN", -0, -0.0, 0]' 'inf, -inf, nan, -0, -0, 0'
prints FLOAT16 '["Inf", "-inf", "NAN", -0.0, 65504, 65519.99, 6e-8, 1e-30]' 'inf, -inf, nan, -0, 65504, 65504, 5.96046e-08, 0'
prints FLOAT64 '["inf", "-inf", "nan", -0.0, 1e308, 1e-320]' 'inf, -inf, nan, -0, 1e+308, 9.99989e-321'
prints DML_TENSOR_DATA_TYPE_FLOAT32 '[3.4028235e38, 1e-46]' '3.40282e+38, 0'

# bits TYPE VALUES BYTES: what is stored, by its bytes in octal
bits() {
    printf '{ "resources": { "R": { "initialValuesDataType": "%s", "initialValues": %s } }, "dispatchables": {},
        "commands": [{ "type": "writeFile", "resource": "R", "targetPath": "r.raw" }] }' "$1" "$2" >"$work/m.json"
    run run "$work/m.json"
    count=$((count + 1))
    got=$(od -An -tx1 -v "$work/r.raw" | tr -d ' \n')
    [ "$got" = "$3" ] || fail "$1 $2: stored $got, expected $3"
}
bits FLOAT16 '["nan", "inf"]' 007e007c
bits FLOAT32 '["nan"]' 0000c07f
bits FLOAT64 '["nan"]' 000000000000f87f
# Halfway between two halves, to even; a little above and below it, in digits that a double does not hold: rounding to
# double first would give the same half for all of them.
bits FLOAT16 '[1.00048828125, 1.00146484375]' 003c023c
bits FLOAT16 '[1.00048828125000000000000000000000000001, 1.00048828124999999999999999999999999999]' 013c003c
bits FLOAT16 '[-1.00048828125000000000000000000000000001, -1.00146484374999999999999999999999999999]' 01bc01bc
bits FLOAT16 '[2.98023223876953125e-8, 2.98023223876953125000000000000000000001e-8]' 00000100
bits FLOAT16 '[65519.99999999999999999999999, 6.103515625e-5]' ff7b0004
# Halfway between two floats, likewise.
bits FLOAT32 '[1.000000059604644775390625]' 0000803f
bits FLOAT32 '[1.000000059604644775390625000000000000000000001]' 0100803f
bits FLOAT64 '[1.00000000000000011102230246251565404]' 000000000000f03f
bits FLOAT64 '[1.00000000000000011102230246251565405]' 010000000000f03f

# how values may be given
prints INT32 '{ "valueCount": 3, "value": 7 }' '7, 7, 7'
prints UINT8 '{ "valueCount": 4, "valueStart": 254, "valueDelta": 1 }' '254, 255, 0, 1'
prints INT8 '{ "valueCount": 3, "valueStart": -127, "valueDelta": -1 }' '-127, -128, 127'
prints FLOAT16 '{ "valueCount": 3, "valueStart": 2048, "valueDelta": 1 }' '2048, 2048, 2048'
prints FLOAT32 '{ "valueCount": 4, "valueStart": 3.2, "valueDelta": 1.5 }' '3.2, 4.7, 6.2, 7.7'
print_model '{ "initialValues": [{ "type": "UINT8", "value": 200 }, { "type": "FLOAT32", "value": 0.5 }, { "name": "x", "value": -3, "type": "INT64" }] }'
run run "$work/m.json"
expect_out 'values with types' "Resource 'R': 200, 0.5, -3"

# only what was initialised is printed, wherever it lies
print_model '{ "initialValuesDataType": "INT32", "initialValues": [5, 6], "sizeInBytes": 64, "initialValuesOffsetInBytes": 8 }'
run run "$work/m.json"
expect_out 'offset' "Resource 'R': 5, 6"

# names are printed on one line
printf '{ "resources": { "a\\nb\\u0000": { "initialValuesDataType": "INT8", "initialValues": [1] } }, "dispatchables": {},
    "commands": [{ "type": "PRINT", "resource": "a\\nb\\u0000" }] }' >"$work/m.json"
run run "$work/m.json"
expect_out 'name' "Resource 'a?b?': 1"
finish
