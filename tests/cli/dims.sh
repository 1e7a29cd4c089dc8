#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dims.sh - models with dynamic dimensions: for each size what the model prints that has numbers in their place; what is
# refused.
. "$(dirname "$0")/common.inc"
cd "$work"
cat >dims.json <<'END'
{
    "dims": { "n": [1, 64, 32], "rows": [1, 9] },
    "resources": {
        "X": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 3000, "valueStart": 1, "valueDelta": 0.25 } },
        "Soft": { "initialValues": "deferred" }, "Moved": { "initialValues": "deferred" },
        "Cut": { "initialValues": "deferred" }, "Eye": { "initialValues": "deferred" }
    },
    "dispatchables": {
        "soft": {
            "type": "ACTIVATION_SOFTMAX1",
            "desc": { "InputTensor": { "DataType": "FLOAT32", "Sizes": ["rows", "n"] },
                      "OutputTensor": { "DataType": "FLOAT32", "Sizes": ["rows", "n"] }, "Axes": [1] }
        },
        "cut": {
            "type": "SLICE1",
            "desc": { "InputTensor": { "DataType": "FLOAT32", "Sizes": [25, 120] },
                      "OutputTensor": { "DataType": "FLOAT32", "Sizes": ["rows", "n"] },
                      "InputWindowOffsets": [2, 3], "InputWindowSizes": ["rows", "n"], "InputWindowStrides": [1, 1] }
        },
        "eye": {
            "type": "DIAGONAL_MATRIX",
            "desc": { "OutputTensor": { "DataType": "FLOAT32", "Sizes": ["n", "n"] }, "Offset": 0, "Value": 1 }
        },
        "moved": {
            "type": "graph",
            "nodes": {
                "add": {
                    "type": "ELEMENT_WISE_ADD",
                    "desc": { "ATensor": { "DataType": "FLOAT32", "Sizes": ["n", 2] },
                              "BTensor": { "DataType": "FLOAT32", "Sizes": ["n", 2], "Strides": [0, 1] },
                              "OutputTensor": { "DataType": "FLOAT32", "Sizes": ["n", 2] } }
                },
                "relu": {
                    "type": "ACTIVATION_RELU",
                    "desc": { "InputTensor": { "DataType": "FLOAT32", "Sizes": ["n", 2] },
                              "OutputTensor": { "DataType": "FLOAT32", "Sizes": ["n", 2] } }
                },
                "bias": { "type": "constant", "data": "X" }
            },
            "inputs": { "A": "add.ATensor" },
            "edges": [["bias", "add.BTensor"], ["add.OutputTensor", "relu.InputTensor"]],
            "outputs": { "C": "relu.OutputTensor" }
        }
    },
    "commands": [
        { "type": "dispatch", "dispatchable": "soft", "bindings": { "InputTensor": "X", "OutputTensor": "Soft" } },
        { "type": "dispatch", "dispatchable": "cut", "bindings": { "InputTensor": "X", "OutputTensor": "Cut" } },
        { "type": "dispatch", "dispatchable": "eye", "bindings": { "OutputTensor": "Eye" } },
        { "type": "dispatch", "dispatchable": "moved", "bindings": { "A": "X", "C": "Moved" } },
        { "type": "print", "resource": "Soft" }, { "type": "print", "resource": "Cut" },
        { "type": "print", "resource": "Eye" }, { "type": "print", "resource": "Moved" }
    ]
}
END

fixed() # N ROWS: the model with numbers
{
    sed -e '/"dims":/d' -e "s/\"n\"/$1/g" -e "s/\"rows\"/$2/g" dims.json >fixed.json
}
for size in 1,1 3,2 32,5 41,9 64,1; do
    n=${size%,*} rows=${size#*,}
    fixed "$n" "$rows"
    for executor in interp cpu; do
        "$OPJIT" run fixed.json --executor "$executor" >expected
        "$OPJIT" run dims.json --executor "$executor" --dim "n=$n" --dim "rows=$rows" >out
        count=$((count + 1))
        cmp out expected || fail "n=$n, rows=$rows on $executor: other numbers than of this size alone"
    done
done
fixed 32 5
"$OPJIT" run fixed.json >expected
"$OPJIT" run dims.json >out
cmp out expected || fail 'without --dim sizes are typical'
"$OPJIT" explain dims.json --dispatchable soft --dim n=3 --dim rows=2 >out || fail 'explain shows one size'

refused() # TEXT ARGUMENT...
{
    text=$1
    shift
    got=0 count=$((count + 1))
    "$OPJIT" "$@" >out 2>err || got=$?
    [ "$got" = 1 ] && grep -qF -e "$text" err && [ "$(wc -l <err)" = 1 ] || { cat err; fail "$*: $text"; }
}
edited() # TEXT SED
{
    sed -e "$2" dims.json >edited.json
    refused "$1" run edited.json
}
refused '$.dims: --dim n=65: must be a size from 1 to 64' run dims.json --dim n=65
refused '$.dims: --dim n=1..8: must be a size from 1 to 64' run dims.json --dim n=1..8
refused '$.dims: --dim k=6: there is no dimension of this name' run dims.json --dim k=6
edited '$.dims.n: bounds 9 to 8, must be at least 1, in order' 's/\[1, 64, 32\]/[9, 8]/'
edited '$.dims.n: bounds 0 to 64, must be at least 1, in order' 's/\[1, 64, 32\]/[0, 64]/'
edited '$.dims.n[2]: 65 is outside of 1 to 64' 's/\[1, 64, 32\]/[1, 64, 65]/'
edited '$.dims.n: this has to be an array of the least' 's/\[1, 64, 32\]/5/'
edited '$.dims: this is an array, but has to be an object' 's/"dims": {.*}/"dims": []/'
edited '$.dims.d9: more than 8 dimensions' \
    's/"dims": { /&"d1": [1, 2], "d2": [1, 2], "d3": [1, 2], "d4": [1, 2], "d5": [1, 2], "d6": [1, 2], "d7": [1, 2], "d8": [1, 2], "d9": [1, 2], /'
edited '$.dispatchables.soft.desc.InputTensor.Sizes[0]: there is no dimension "row"' 's/"Sizes": \["rows", "n"\]/"Sizes": ["row", "n"]/'
edited '$.dispatchables.soft.desc.InputTensor.Sizes[0]' '/"dims":/d'
"$OPJIT" compile dims.json -o made --quiet --dim n=4 --dim rows=2 || fail 'with sizes it is compiled ahead of time'

# Few sizes of three dimensions, and dimensions that nothing has: samples tell which one a size is.
few() # MOST SIZE: a model with three of up to MOST, or one of SIZE
{
    cat <<END
{   "dims": { "a": [1, $1], "b": [1, $1], "unused": [1, 3], "c": [1, $1] },
    "resources": {
        "X": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 5000, "valueStart": 1, "valueDelta": 0.25 } },
        "Y": { "initialValues": "deferred" } },
    "dispatchables": { "tanh": { "type": "ACTIVATION_TANH", "desc": {
        "InputTensor": { "DataType": "FLOAT32", "Sizes": $2 },
        "OutputTensor": { "DataType": "FLOAT32", "Sizes": $2 } } } },
    "commands": [
        { "type": "dispatch", "dispatchable": "tanh", "bindings": { "InputTensor": "X", "OutputTensor": "Y" } },
        { "type": "print", "resource": "Y" }] }
END
}
for most in 2 3 4 8 16; do
    few $most '["a", "b", "c"]' >few.json
    few $most "[1, 2, $most]" >fixed.json
    count=$((count + 1))
    "$OPJIT" run fixed.json >expected && "$OPJIT" run few.json --dim a=1 --dim b=2 --dim c=$most >out &&
        cmp out expected || fail "three of up to $most: other numbers than of these sizes alone"
done

# Functions for parts of the sizes have equal loops, but not equally many iterations: a function that starts with four
# was called where there is one.
parts() # N M DIMS
{
    cat <<END
{   ${3-}
    "resources": {
        "A": { "initialValuesDataType": "INT8", "initialValues": { "valueCount": 1620, "valueStart": 1, "valueDelta": 1 } },
        "B": { "initialValuesDataType": "FLOAT64", "initialValues": { "valueCount": 68, "valueStart": 1, "valueDelta": 0.5 } },
        "C": { "initialValues": "deferred" }, "D": { "initialValues": "deferred" } },
    "dispatchables": { "parts": { "type": "graph",
        "nodes": {
            "cut": { "type": "SLICE1", "desc": {
                "InputTensor": { "DataType": "INT8", "Sizes": [$1, $1, 5, 4] },
                "OutputTensor": { "DataType": "INT8", "Sizes": [$1, $1, 1, 1] },
                "InputWindowOffsets": [0, 0, 4, 0], "InputWindowSizes": [$1, $1, 1, 2],
                "InputWindowStrides": [1, 1, 1, 2] } },
            "norm": { "type": "MEAN_VARIANCE_NORMALIZATION1", "desc": {
                "InputTensor": { "DataType": "FLOAT64", "Sizes": [4, $2] },
                "OutputTensor": { "DataType": "FLOAT64", "Sizes": [4, $2] },
                "Axes": [0], "NormalizeVariance": true, "Epsilon": 0.001 } } },
        "inputs": { "A": "cut.InputTensor", "B": "norm.InputTensor" }, "edges": [],
        "outputs": { "C": "cut.OutputTensor", "D": "norm.OutputTensor" } } },
    "commands": [
        { "type": "dispatch", "dispatchable": "parts", "bindings": { "A": "A", "B": "B", "C": "C", "D": "D" } },
        { "type": "print", "resource": "C" }, { "type": "print", "resource": "D" }] }
END
}
parts '"n"' '"m"' '"dims": { "n": [1, 9, 1], "m": [1, 17, 12] },' >parts.json
for size in 1,1 1,3 1,12 2,12 3,12 9,12 9,1; do
    n=${size%,*} m=${size#*,}
    parts "$n" "$m" >fixed.json
    count=$((count + 1))
    "$OPJIT" run fixed.json >expected && "$OPJIT" run parts.json --dim "n=$n" --dim "m=$m" >out &&
        cmp out expected || fail "parts, n=$n, m=$m: other numbers than of this size alone"
done

# Ahead of time: for all sizes, the bits of the static kernel; outside of the bounds, a status.
fixed 41 3
sed -e 's/"soft"/"one_soft"/g' fixed.json >one.json
"$OPJIT" compile dims.json -o all --quiet || fail 'without sizes it is compiled for all of them'
"$OPJIT" compile one.json -o all --quiet --dispatchable one_soft || fail 'and for one'
grep -q '^int soft(const float \*InputTensor, float \*OutputTensor, int64_t n, int64_t rows' all/soft.h ||
    { cat all/soft.h; fail 'the prototype has the dimensions'; }
room() # HEADER: the last argument, where there is one
{
    if grep -q '^[a-z]* [a-z_]*soft(.*void \*workspace);' "$1"; then echo ', room'; fi
}
cat >app.c <<END
#include <stdio.h>
#include <string.h>
#include "all/one_soft.h"
#include "all/soft.h"

static _Alignas(64) float in[9 * 64], all[9 * 64], one[9 * 64];
static _Alignas(64) char room[soft_WORKSPACE_BYTES + one_soft_WORKSPACE_BYTES + 64];

int main(void)
{
    for (int i = 0; i < 9 * 64; i++)
        in[i] = (float)(i * 37 % 101) / 16.0f;
    (void)room;
    if (soft_IN0_BYTES(41, 3) != one_soft_IN0_BYTES || soft_OUT0_BYTES(64, 9) != sizeof all)
        return puts("bytes"), 1;
    if (soft_DIM0_LEAST != 1 || soft_DIM0_MOST != 64 || soft_DIM1_MOST != 9)
        return puts("bounds"), 1;
    one_soft(in, one$(room all/one_soft.h));
    if (soft(in, all, 41, 3$(room all/soft.h)) != 0 || memcmp(all, one, one_soft_OUT0_BYTES) != 0)
        return puts("bits"), 1;
    memset(all, 0, sizeof all);
    if (soft(in, all, 65, 3$(room all/soft.h)) != 1 || soft(in, all, 0, 3$(room all/soft.h)) != 1 ||
        soft(in, all, 64, 10$(room all/soft.h)) != 2)
        return puts("status"), 1;
    for (int i = 0; i < 9 * 64; i++)
        if (all[i] != 0)
            return puts("written"), 1;
    return 0;
}
END
count=$((count + 1))
cc -std=c11 -Wall -Wextra -Wpedantic -Werror app.c all/soft.o all/one_soft.o -o app 2>err ||
    { cat err all/soft.h; fail 'it compiles'; }
./app >out || { cat out; fail 'a program that calls it'; }
"$OPJIT" compile dims.json -o lib --quiet --emit lib,header,json --name kernels || fail 'as a library'
grep -q '"dimension": true, "least": 1, "most": 64' lib/soft.json || fail 'the description has the bounds'
refused 'dynamic dimensions' compile dims.json -o ffi --dispatchable soft --emit tvmffi
finish
