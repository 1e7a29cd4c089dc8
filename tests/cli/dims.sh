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
refused 'one size of dimension "n": give --dim n=N' compile dims.json -o made
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
finish
