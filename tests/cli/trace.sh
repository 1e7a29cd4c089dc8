#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace.sh - `--trace FILE` of run and compile: valid JSON with what was compiled, its phases, calls and their steps;
# names that need escapes; files that can't be written.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: cpu is not among EXECUTORS'; exit 77 ;; esac
python=$(command -v python3 || true)

# valid NAME FILE: by Python's reader, where there is one
valid() {
    count=$((count + 1))
    [ -s "$2" ] || fail "$1: no trace"
    [ -z "$python" ] || "$python" -m json.tool "$2" >"$work/pretty" 2>"$work/err" || fail "$1: $(cat "$work/err")"
}
# has NAME FILE TEXT
has() {
    count=$((count + 1))
    grep -qF -e "$3" "$2" || fail "$1: no $3 in $(cat "$2")"
}

cat >"$work/m.json" <<'EOF'
{ "resources": { "out": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 16, "value": 0 } } },
  "dispatchables": {
    "eye \"q\" \\ \u00e9 \n": { "type": "DML_OPERATOR_DIAGONAL_MATRIX1", "desc": {
      "OutputTensor": { "DataType": "FLOAT32", "Sizes": [4, 4] },
      "ValueDataType": "FLOAT32", "Value": 1, "DiagonalFillBegin": 0, "DiagonalFillEnd": 1 } },
    "twice": { "type": "graph",
      "nodes": {
        "mask \"m\"": { "type": "DIAGONAL_MATRIX1", "desc": { "OutputTensor": { "DataType": "FLOAT32", "Sizes": [4, 4] },
          "ValueDataType": "FLOAT32", "Value": 1, "DiagonalFillBegin": 0, "DiagonalFillEnd": 1 } },
        "minus": { "type": "ELEMENT_WISE_NEGATE", "desc": { "InputTensor": { "DataType": "FLOAT32", "Sizes": [4, 4] },
          "OutputTensor": { "DataType": "FLOAT32", "Sizes": [4, 4] } } } },
      "edges": [ ["mask \"m\".OutputTensor", "minus.InputTensor"] ], "outputs": { "Out": "minus.OutputTensor" } } },
  "commands": [
    { "type": "dispatch", "dispatchable": "eye \"q\" \\ \u00e9 \n", "bindings": { "OutputTensor": "out" } },
    { "type": "dispatch", "dispatchable": "twice", "bindings": { "Out": "out" } },
    { "type": "print", "resource": "out" } ] }
EOF
expected="Resource 'out': -1, -0, -0, -0, -0, -1, -0, -0, -0, -0, -1, -0, -0, -0, -0, -1"
run run "$work/m.json" --no-cache --trace "$work/t.json"
expect_out 'run' "$expected"
valid 'run' "$work/t.json"
has 'compile' "$work/t.json" '"cat":"compile"'
for phase in lower passes codegen; do has "$phase" "$work/t.json" "\"name\":\"$phase\",\"cat\":\"phase\""; done
has 'nodes' "$work/t.json" '"nodes":["mask \"m\"","minus"]'
has 'call' "$work/t.json" '"name":"eye \"q\" \\ é \u000a","cat":"call"'
has 'step' "$work/t.json" '"kind":"stage","extent":'
has 'load' "$work/t.json" '"cat":"load"'

# interpreted, on threads, from the cache, of a run that fails
run run "$work/m.json" --executor interp --no-cache --trace "$work/i.json"
expect_out 'interpreted' "$expected"
valid 'interpreted' "$work/i.json"
has 'interpreted' "$work/i.json" ',interpreted,'
run run "$work/m.json" --threads 2 --cache-dir "$work/cache" --quiet --trace "$work/t.json"
expect_out 'threads' "$expected"
valid 'threads' "$work/t.json"
run run "$work/m.json" --cache-dir "$work/cache" --trace "$work/t.json"
expect_out 'cached' "$expected"
valid 'cached' "$work/t.json"
has 'cached' "$work/t.json" '"cat":"hit"'
echo '{' >"$work/broken.json"
run run "$work/broken.json" --trace "$work/b.json"
expect_status 'broken' 1
valid 'broken' "$work/b.json"

run compile "$work/m.json" --dispatchable twice -o "$work/aot" --trace "$work/c.json" --quiet
expect_status 'compile' 0
valid 'compile' "$work/c.json"
has 'artifact' "$work/c.json" '"name":"twice","cat":"compile"'

run run "$work/m.json" --no-cache --trace /nowhere/t.json
expect_status 'no folder' 1
run run "$work/m.json" --trace ''
expect_status 'no name' 2
finish
