#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh - `opjit run`: bindings, ranges, owned and deferred resources, in place, and that nothing runs before all is
# checked.
. "$(dirname "$0")/common.inc"

# model RESOURCES DISPATCHABLES COMMANDS
model() {
    printf '{ "resources": { %s }, "dispatchables": { %s }, "commands": [%s] }' "$1" "$2" "$3" >"$work/m.json"
}
# prints NAME EXPECTED: on every executor, on one thread and on three
prints() {
    for executor in $executors; do
        for threads in 1 3; do
            run run --no-cache --executor "$executor" --threads $threads "$work/m.json"
            expect_out "$1 ($executor, $threads)" "$2"
        done
    done
}
ints='"initialValuesDataType": "INT32", "initialValues"'
tensor() { printf '{ "DataType": "%s", "Sizes": %s%s }' "$1" "$2" "${3:-}"; }
eye='"eye": { "type": "DIAGONAL_MATRIX", "desc": { "OutputTensor": '"$(tensor INT32 '[2, 2]')"', "Offset": 0, "Value": 1 } }'
band() { # FLAGS-OF-INPUT REST-OF-DISPATCHABLE
    printf '"band": { "type": "DML_OPERATOR_DIAGONAL_MATRIX1", "Desc": { "InputTensor": %s, "OutputTensor": %s,
        "ValueDataType": "INT32", "Value": 9, "DiagonalFillBegin": 0, "DiagonalFillEnd": 1 }%s }' \
        "$(tensor INT32 '[2, 2]' "$1")" "$(tensor INT32 '[2, 2]')" "$2"
}

model "\"A\": { $ints: [7, 7, 7, 7, 7, 7] }" "$eye" \
    '{ "type": "dispatch", "dispatchable": "eye", "bindings": { "OutputTensor": "A" } }, { "type": "print", "resource": "A" }'
prints 'larger resource' "Resource 'A': 1, 0, 0, 1, 7, 7"

model "\"A\": { $ints: [7, 7, 7, 7, 7, 7] }" "$eye" \
    '{ "type": "Dispatch", "dispatchable": "eye", "threadGroupCount": [1, 1, 1],
       "bindings": { "OutputTensor": [{ "name": "A", "elementOffset": 2, "elementCount": 4, "elementSizeInBytes": 4 }] } },
     { "type": "print", "resource": "A", "verbose": true }'
prints 'range' "Resource 'A': 7, 7, 1, 0, 0, 1"

model "\"A\": { $ints: [1, 2, 3, 4] }, \"B\": { $ints: { \"valueCount\": 4, \"value\": 0 } }" "$(band '' '')" \
    '{ "type": "dispatch", "dispatchable": "band", "bindings": { "InputTensor": "A", "OutputTensor": "B" } },
     { "type": "dispatch", "dispatchable": "band", "bindings": { "InputTensor": "A", "OutputTensor": "A" } },
     { "type": "print", "resource": "A" }, { "type": "print", "resource": "B" }'
prints 'in place' "$(printf "Resource 'A': 9, 2, 3, 9\nResource 'B': 9, 2, 3, 9")"

# An owned input is what it was before the first command.
model "\"A\": { $ints: [1, 2, 3, 4] }, \"B\": { $ints: [0, 0, 0, 0] }" \
    "$eye, $(band ', "Flags": ["NONE", "DML_TENSOR_FLAG_OWNED_BY_DML"]' ', "bindings": { "InputTensor": "A" }')" \
    '{ "type": "dispatch", "dispatchable": "eye", "bindings": { "OutputTensor": "A" } },
     { "type": "dispatch", "dispatchable": "band", "bindings": { "OutputTensor": "B" } }, { "type": "print", "resource": "B" }'
prints 'owned' "Resource 'B': 9, 2, 3, 9"
model "\"A\": { $ints: [1, 2, 3, 4] }" "$(band ', "Flags": "OWNED_BY_DML"' ', "bindings": { "InputTensor": "A" }')" \
    '{ "type": "dispatch", "dispatchable": "band", "bindings": { "InputTensor": "A", "OutputTensor": "A" } }'
run run "$work/m.json"
expect_error 'owned, bound by the command' 1 "$work/m.json: \$.commands[0].bindings.InputTensor: InputTensor is OWNED_BY_DML: it is bound by the dispatchable's \"bindings\""

# No InputTensor in the descriptor: none may be bound.
model "\"A\": { $ints: [1, 2, 3, 4] }" '"band": { "type": "DIAGONAL_MATRIX1", "desc": { "InputTensor": null, "OutputTensor": '"$(tensor INT32 '[2, 2]')"', "ValueDataType": "INT32", "Value": { "UInt32": 4294967295 }, "DiagonalFillBegin": 1, "DiagonalFillEnd": 0 } }' \
    '{ "type": "dispatch", "dispatchable": "band", "bindings": { "OutputTensor": "A" } }, { "type": "print", "resource": "A" }'
prints 'no input' "Resource 'A': 0, -1, -1, 0"
sed 's/"OutputTensor": "A" }/"OutputTensor": "A", "InputTensor": "A" }/' "$work/m.json" >"$work/n.json"
run run "$work/n.json"
expect_error 'no input, but bound' 1 "$work/n.json: \$.commands[0].bindings.InputTensor: the descriptor has no InputTensor"

# A deferred resource gets its size and type from its bindings, and is printed as far as tensors reach.
model '"D": { "initialValues": "deferred" }' '"f": { "type": "FILL_VALUE_CONSTANT", "desc": { "OutputTensor": '"$(tensor UINT8 '[3]')"', "ValueDataType": "UINT8", "Value": 200 } }' \
    '{ "type": "dispatch", "dispatchable": "f", "bindings": { "OutputTensor": "D" } },
     { "type": "dispatch", "dispatchable": "f", "bindings": { "OutputTensor": { "name": "D", "elementOffset": 4 } } },
     { "type": "print", "resource": "D" }'
prints 'deferred' "Resource 'D': 200, 200, 200, 0, 200, 200, 200"

# An offset whose end wraps to the resource's size: nothing is written before the buffer.
model '"D": { "initialValues": "deferred" }' '"f": { "type": "FILL_VALUE_CONSTANT", "desc": { "OutputTensor": '"$(tensor UINT32 '[1048576]')"', "ValueDataType": "UINT32", "Value": 200 } }' \
    '{ "type": "dispatch", "dispatchable": "f", "bindings": { "OutputTensor": "D" } },
     { "type": "dispatch", "dispatchable": "f", "bindings": { "OutputTensor": { "name": "D", "elementOffset": 4611686018426863616, "elementSizeInBytes": 4 } } }'
run run "$work/m.json"
expect_error 'wrapped range' 1 "$work/m.json: \$.commands[1].bindings.OutputTensor: the range is beyond the end of any memory"

# FLOAT16 in the union's UInt16; bytes of another type in a union.
model '"H": { "initialValuesDataType": "FLOAT16", "initialValues": [0, 0] }' '"f": { "type": "FILL_VALUE_CONSTANT", "desc": { "OutputTensor": '"$(tensor FLOAT16 '[2]')"', "ValueDataType": "FLOAT16", "Value": { "UInt16": 15872 } } }' \
    '{ "type": "dispatch", "dispatchable": "f", "bindings": { "OutputTensor": "H" } }, { "type": "print", "resource": "H" }'
prints 'half bits' "Resource 'H': 1.5, 1.5"

# Wrapped tensors, DimensionCount, strides that leave gaps, execution flags, compile type.
model "\"A\": { $ints: [7, 7, 7, 7, 7, 7] }" '"eye": { "type": "DIAGONAL_MATRIX", "dmlCompileType": "DmlCompileGraph", "executionFlags": ["NONE", "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"],
    "desc": { "OutputTensor": { "Type": "DML_TENSOR_TYPE_BUFFER", "Desc": { "DataType": "DML_TENSOR_DATA_TYPE_INT32", "DimensionCount": 2, "Sizes": [2, 2], "Strides": [3, 1], "TotalTensorSizeInBytes": 24, "GuaranteedBaseOffsetAlignment": 64 } }, "Offset": 0, "Value": -1.75 } }' \
    '{ "type": "dispatch", "dispatchable": "eye", "bindings": { "OutputTensor": "A" } }, { "type": "print", "resource": "A" }'
prints 'strides' "Resource 'A': -1, 0, 7, 0, -1, 7"

# A feature level holds descriptors to its table.
model '"A": { "initialValuesDataType": "FLOAT64", "initialValues": [0, 0] }' '"f": { "type": "FILL_VALUE_SEQUENCE", "desc": { "OutputTensor": '"$(tensor FLOAT64 '[2]')"', "ValueDataType": "FLOAT64", "ValueStart": 1, "ValueDelta": 0.5 } }' \
    '{ "type": "dispatch", "dispatchable": "f", "bindings": { "OutputTensor": "A" } }, { "type": "print", "resource": "A" }'
prints 'FLOAT64 sequence' "Resource 'A': 1, 1.5"
run run --feature-level 6.4 "$work/m.json"
expect_status 'FLOAT64 sequence at a feature level' 1
grep -q '\.desc\.OutputTensor\.DataType: FLOAT64, must be' "$work/err" || fail 'feature level'

# Nothing is printed or written where a later command, or a dispatchable that is never used, is wrong.
model "\"A\": { $ints: [1] }" '' '{ "type": "print", "resource": "A" }, { "type": "writeFile", "resource": "A", "targetPath": "a.raw" }, { "type": "print", "resource": "B" }'
run run "$work/m.json"
expect_error 'wrong last command' 1 "$work/m.json: \$.commands[2].resource: there is no resource \"B\""
model "\"A\": { $ints: [1] }" '"unused": { "type": "ROI_WARP", "desc": {} }' '{ "type": "print", "resource": "A" }, { "type": "writeFile", "resource": "A", "targetPath": "a.raw" }'
run run "$work/m.json"
expect_error 'wrong unused dispatchable' 1 "$work/m.json: \$.dispatchables.unused.type: \"ROI_WARP\" is no operator: \`opjit ops\` lists them"
[ ! -e "$work/a.raw" ] || fail 'a.raw was written'
# Places with keys that are no words.
model "\"A\": { $ints: [1] }" '"a b\"": 1' ''
run run "$work/m.json"
expect_error 'quoted key' 1 "$work/m.json: \$.dispatchables[\"a b\"\"]: this is a number, but has to be an object"
finish
