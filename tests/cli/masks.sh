#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# masks.sh - --masks-absorb: -inf of a generated or constant operand of ADD decides alone; without it NaN + -inf is NaN.
. "$(dirname "$0")/common.inc"

# model TYPE MASK: scores of 2 x 4 plus the mask node, whose -inf are the last three of row 0 and the last two of row 1
model() {
    cat >"$work/m.json" <<END
{ "resources": {
    "Scores": { "initialValuesDataType": "$1", "initialValues": [1, "nan", "inf", 4, 5, 6, "-inf", "nan"] },
    "Mask": { "initialValuesDataType": "$1", "initialValues": [0, "-inf", "-inf", "-inf", 0, 0, "-inf", "-inf"] },
    "Out": { "initialValuesDataType": "$1", "initialValues": { "valueCount": 8, "value": 9 } } },
  "dispatchables": { "masked": { "type": "graph",
    "nodes": {
      "mask": $2,
      "add": { "type": "ELEMENT_WISE_ADD", "desc": {
        "ATensor": { "DataType": "$1", "Sizes": [2, 4] }, "BTensor": { "DataType": "$1", "Sizes": [2, 4] },
        "OutputTensor": { "DataType": "$1", "Sizes": [2, 4] } } } },
    "inputs": { "Scores": ["add.ATensor"] },
    "edges": [["$3", "add.BTensor"]],
    "outputs": { "Out": "add.OutputTensor" } } },
  "commands": [
    { "type": "dispatch", "dispatchable": "masked", "bindings": { "Scores": "Scores", "Out": "Out" } },
    { "type": "print", "resource": "Out" } ] }
END
}

for type in FLOAT64 FLOAT32 FLOAT16; do
    generated='{ "type": "DIAGONAL_MATRIX1", "desc": { "OutputTensor": { "DataType": "'$type'", "Sizes": [2, 4] },
        "ValueDataType": "'$type'", "Value": "-inf", "DiagonalFillBegin": 1, "DiagonalFillEnd": 2147483647 } }'
    for executor in $executors; do
        model $type "$generated" mask.OutputTensor
        run run --no-cache --executor "$executor" "$work/m.json"
        expect_out "$type, $executor: a mask is added" \
            "Resource 'Out': 1, nan, nan, -inf, 5, 6, -inf, nan"
        run run --no-cache --executor "$executor" --masks-absorb "$work/m.json"
        expect_out "$type, $executor: a generated mask decides" \
            "Resource 'Out': 1, -inf, -inf, -inf, 5, 6, -inf, -inf"
        model $type '{ "type": "constant", "data": "Mask" }' mask
        run run --no-cache --executor "$executor" --masks-absorb "$work/m.json"
        expect_out "$type, $executor: a constant mask decides" \
            "Resource 'Out': 1, -inf, -inf, -inf, 5, 6, -inf, -inf"
    done
done

# What the mask decides is not read: the loop beyond the cut has no load.
model FLOAT32 "$(printf '%s' "$generated" | sed 's/FLOAT16/FLOAT32/g')" mask.OutputTensor
sed -i 's/"Sizes": \[2, 4\]/"Sizes": [64, 64]/g' "$work/m.json"
run explain --masks-absorb "$work/m.json"
sed -n '/after split/,/after cleanup/p' "$work/out" >"$work/split"
count=$((count + 1))
grep -q 'store %1\[%[0-9]*,%[0-9]*\], f32 bits 0xff800000$' "$work/split" || fail 'the masked range is computed'
count=$((count + 1))
! grep -q 'select' "$work/split" || fail 'a condition is left'

# A softmax of masked scores: its loops end where the mask does, only one row of it is in memory, and it moves only its
# input and output: 128 bytes each, while four separate nodes would write 32 + 3 * 128 and read 32 + 3 * 128.
run explain "$tests/examples/models/causal_softmax.json"
sed -n '/^after cleanup/,/^after schedule/p' "$work/out" >"$work/loops"
count=$((count + 4))
[ "$(grep -c 'for %[0-9]* in 0\.\.%6 {' "$work/loops")" = 4 ] || fail 'a loop goes on behind the mask'
! grep -q 'temp\|lt(' "$work/loops" || fail 'the mask is in memory, or asked for'
grep -q '^  bytes moved: 256; node by node: 832 (416 written, 416 read)$' "$work/out" || fail 'bytes moved'
grep -q '^  workspace: 64 bytes$' "$work/out" || fail 'workspace'
finish
