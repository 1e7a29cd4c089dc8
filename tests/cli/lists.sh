#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lists.sh - `opjit ops`, `targets`, `version` and `explain`: that they print what other programs look for.
. "$(dirname "$0")/common.inc"

# has NAME TEXT: a line of the output holds the text
has() {
    count=$((count + 1))
    grep -qF -- "$2" "$work/out" || fail "$1: no line with: $2"
}

run ops
expect_status ops 0
for name in DIAGONAL_MATRIX DIAGONAL_MATRIX1 FILL_VALUE_CONSTANT FILL_VALUE_SEQUENCE; do
    has ops "$name "
done
has ops 'ELEMENT_WISE_IF                             all eleven                               condition ? a : b'
has ops 'ELEMENT_WISE_LOGICAL_NOT                    UINT32/8                                 !x'
has 'ops, types behind a count of tensors' 'JOIN                                        all eleven                               Output = '
run ops DML_OPERATOR_FILL_VALUE_SEQUENCE
expect_status 'ops NAME' 0
has 'ops NAME' 'number 104, since feature level 2.1'
has 'ops NAME' 'ValueDelta'
has 'ops NAME' 'from feature level 5.0'
run ops ELEMENT_WISE_ROUND
expect_status 'ops with an enum' 0
has 'ops with an enum' '      HALVES_TO_NEAREST_EVEN'
run ops element_Wise_round
expect_status 'ops in any case' 0
has 'ops in any case' 'number 99,'
run ops softm
expect_status 'ops that have it in their name' 0
has 'ops that have it in their name' 'ACTIVATION_SOFTMAX1 '
[ "$(grep -vc SOFTM "$work/out")" = 0 ] || fail 'ops that have it in their name: others'
run ops SFTMAX1
expect_error 'ops misspelt' 1 'opjit: there is no operator SFTMAX1; did you mean ACTIVATION_SOFTMAX1?'
run ops --markdown
expect_status 'ops --markdown' 0
[ -z "${OPJIT_UPDATE_GOLDEN:-}" ] || cp "$work/out" "$tests/../docs/OPERATORS.md"
cmp -s "$work/out" "$tests/../docs/OPERATORS.md" || fail 'ops --markdown: docs/OPERATORS.md is another page; OPJIT_UPDATE_GOLDEN=1 rewrites it'
run ops ROI_WARP
expect_error 'ops of nothing' 1 'opjit: there is no operator ROI_WARP'
run ops --onnx quant
expect_status 'ops --onnx NAME' 0
has 'ops --onnx NAME' 'DynamicQuantizeLinear '
[ "$(grep -vic quant "$work/out")" = 0 ] || fail 'ops --onnx NAME: others'
run ops --onnx Einsom
expect_error 'ops --onnx of nothing' 1 'opjit: there is no ONNX operator Einsom'
run ops --onnx --json
expect_error 'ops as two things' 2 'opjit: ops: one of --json, --markdown and --onnx at a time: see opjit --help'
run ops --markdown softmax
expect_error 'the page of one' 2 'opjit: --markdown is for all operators: see opjit --help'

export OPJIT_CUDA_DRIVER=/nowhere/libcuda.so.1
run targets
expect_status targets 0
has targets 'host    cpu:'
has targets 'cpu:x86-64-v3'
OPJIT_HIP_DRIVER=/nowhere/libamdhip64.so run targets
has targets 'device  hip: absent, HIP driver: /nowhere/libamdhip64.so: cannot open shared object file'
has targets 'device  cuda: absent, CUDA driver: /nowhere/libcuda.so.1: cannot open shared object file'
if [ -n "${OPJIT_TEST_CUDA:-}" ]; then
    export OPJIT_CUDA_DRIVER="$OPJIT_TEST_CUDA" FAKE_CUDA_DEVICES=80,120
    run targets
    expect_status 'targets with devices' 0
    has 'targets with devices' 'device  cuda:0 PTX interpreter sm_80, sm_80, 1.0 GiB, driver 13.0'
    has 'targets with devices' 'device  cuda:1 PTX interpreter sm_120, sm_120, 1.0 GiB, driver 13.0'
    export FAKE_CUDA_FAIL=cuDeviceGetName:999
    run targets
    has 'targets with a broken device' 'device  cuda:1: unusable, cuda:1: cuDeviceGetName: error 999'
    export FAKE_CUDA_DEVICES= FAKE_CUDA_FAIL=
    run targets
    has 'targets without devices' 'device  cuda: absent, CUDA driver: cuInit: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected'
fi
if [ -n "${OPJIT_TEST_HIP:-}" ]; then
    OPJIT_HIP_DRIVER="$OPJIT_TEST_HIP" FAKE_HIP_DEVICES=gfx90a:xnack-,gfx1100 run targets
    has 'targets with AMD devices' 'device  hip:0 stand-in 0, gfx90a, 1.0 GiB, driver 6.4'
    has 'targets with AMD devices' 'device  hip:1 stand-in 1, gfx1100, 1.0 GiB, driver 6.4'
fi
unset OPJIT_CUDA_DRIVER

run version
expect_status version 0
has version 'opjit '
has version 'LLVM '
has version 'numerics 1'
has version 'kernel ABI 2'

run explain "$tests/examples/models/band_inplace.json"
expect_status explain 0
has explain 'dispatchable band: DIAGONAL_MATRIX1'
has explain 'OutputTensor: INT32 [5, 5], strides [5, 1], 100 bytes'
has explain 'DiagonalFillBegin: 2'
for pass in lower fold place collapse split cleanup schedule; do
    has explain "after $pass:"
done
has explain 'steps: flatten 1'
has explain 'plan:'
has explain 'stage @0: '
has explain 'a call writes 100 bytes'
has explain 'in place: OutputTensor may be the memory of InputTensor'
has explain 'filled: 12 of 25 elements'
has explain '    ==###'
has explain '    #===#'
has explain '    ###=='
cat >"$work/weight.json" <<'EOF'
{
    "resources": {
        "W": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 4096, "valueStart": 1, "valueDelta": 1 } }
    },
    "dispatchables": {
        "product": {
            "type": "graph",
            "nodes": {
                "gemm": {
                    "type": "GEMM",
                    "desc": {
                        "ATensor": { "DataType": "FLOAT32", "Sizes": [1, 1, 64, 64] },
                        "BTensor": { "DataType": "FLOAT32", "Sizes": [1, 1, 64, 64] },
                        "OutputTensor": { "DataType": "FLOAT32", "Sizes": [1, 1, 64, 64] },
                        "TransA": "NONE", "TransB": "TRANSPOSE", "Alpha": 1, "Beta": 0
                    }
                },
                "w": { "type": "constant", "data": "W" }
            },
            "inputs": { "A": ["gemm.ATensor"] },
            "edges": [["w", "gemm.BTensor"]],
            "outputs": { "C": "gemm.OutputTensor" }
        }
    },
    "commands": []
}
EOF
run explain "$work/weight.json"
expect_status 'explain a packed weight' 0
has 'explain a packed weight' '  kept: 16384 bytes, made of constants once, in 1 step'
run explain "$tests/examples/models/position_ids.json" --dispatchable countdown
expect_status 'explain one' 0
has 'explain one' 'dispatchable countdown: FILL_VALUE_SEQUENCE'
! grep -q 'dispatchable ids' "$work/out" || fail 'explain one: another one is there too'
run explain "$tests/examples/models/eye.json" --dispatchable eye --late Value
expect_status 'explain late' 0
has 'explain late' 'param %1 "Value": f32'
run explain "$tests/examples/models/eye.json" --dispatchable shfited
expect_error 'explain misspelt' 1 "$tests/examples/models/eye.json: \$.dispatchables: there is no dispatchable \"shfited\"; did you mean \"shifted\"?"
run explain "$tests/examples/models/eye.json" --dispatchable nose
expect_error 'explain nothing' 1 "$tests/examples/models/eye.json: \$.dispatchables: there is no dispatchable \"nose\""

# what programs read is JSON
if command -v python3 >/dev/null 2>&1; then
    json() { # NAME EXPRESSION ARGUMENT...: the expression holds for the JSON `it`
        name=$1 expression=$2
        shift 2
        run "$@"
        expect_status "$name" 0
        python3 -c "import json, sys; it = json.load(sys.stdin); sys.exit(not ($expression))" <"$work/out" ||
            fail "$name: not $expression"
    }
    json 'ops --json' 'len(it) > 100 and all(o["formula"] and o["fields"] and o["support"] for o in it)' ops --json
    json 'ops --json of one' '[o["name"] for o in it] == ["ELEMENT_WISE_ROUND"] and "HALVES_TO_NEAREST_EVEN" in it[0]["fields"][2]["values"]' \
        ops element_wise_round --json
    json 'ops --json of some' '2 <= len(it) and all("SOFTM" in o["name"] for o in it)' ops --json softm
    json 'targets --json' 'it["host"].startswith("cpu:") and any(t["name"] == "cpu:x86-64-v3" for t in it["targets"]) and it["devices"]' \
        targets --json
    json 'version --json' 'it["numerics"] == 1 and it["kernel_abi"] == 2 and it["opjit"]' version --json
    run run "$tests/examples/models/eye.json" --cache-dir "$work/cache"
    json 'cache list --json' 'len(it["files"]) == it["kernels"] == 2 and it["files"][0]["name"]' cache list --json --cache-dir "$work/cache"
    run cache verify --json --cache-dir "$work/cache"
    expect_error 'cache verify --json' 1 'opjit: cache verify: --json is for list'
else
    echo 'skipped: no python3 to read JSON'
fi

# a large matrix is drawn small: 16 lines of 32 characters
printf '{ "resources": {}, "dispatchables": { "mask": { "type": "DIAGONAL_MATRIX1", "desc": { "OutputTensor":
    { "DataType": "FLOAT16", "Sizes": [512, 512] }, "ValueDataType": "FLOAT16", "Value": "-inf", "DiagonalFillBegin": 1,
    "DiagonalFillEnd": 2147483647 } } }, "commands": [] }' >"$work/m.json"
run explain "$work/m.json"
expect_status 'large' 0
has large 'filled: 130816 of 262144 elements'
has large '    row 511: columns [512, 512)'
[ "$(grep -c '^    [#.+]*$' "$work/out")" = 16 ] || fail 'large: not 16 lines'
has large "    ++$(printf '%30s' '' | tr ' ' '#')"
finish
