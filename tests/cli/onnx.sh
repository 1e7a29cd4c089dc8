#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# .onnx models on the command line: run, explain, bench, compile, and what they refuse.
set -eu

# shellcheck source=tests/cli/common.inc
. "$(dirname "$0")/common.inc"
models=$(cd "$(dirname "$0")/../fuzz/corpus/onnx" && pwd)
cd "$work"

# npy FILE DTYPE SHAPE: the header of an array; its elements follow on standard input.
npy()
{
    text="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    { printf '\223NUMPY\001\000\166\000'; printf '%-117s\n' "$text"; cat; } >"$1"
}

# 1.0 eight times, as float32.
for _ in 1 2 3 4 5 6 7 8; do printf '\000\000\200\077'; done | npy ones.npy '<f4' '2, 4'
for _ in 1 2 3 4; do printf '\000\000\200\077\000\000\000\000'; done | npy wide.npy '<f8' '4,'

# --- run ---
"$OPJIT" run "$models/gemm.onnx" --input x=ones.npy >out
grep -q '^v FLOAT32 \[2,2\]: ' out || { cat out; fail "the first values are printed"; }
grep -q '^i INT64 \[2,2\]: ' out || fail "indices are INT64"
"$OPJIT" run "$models/gemm.onnx" --input x=ones.npy --executor interp >interpreted
cmp out interpreted || fail "the interpreter gives the same"
{ printf '\223NUMPY\001\000\146\000'; head -c 111 ones.npy | tail -c 101; echo; tail -c 32 ones.npy; } >near.npy
"$OPJIT" run "$models/gemm.onnx" --input x=near.npy >copied
cmp out copied || fail "elements that lie at no multiple of 64 are the same"
for n in 1 2 3 4 5 6 7 8; do printf "\\000\\000\\200\\0$((70 + n % 7))"; done | npy counted.npy '<f4' '2, 4'
for n in 1 5 2 6 3 7 4 8; do printf "\\0$((70 + n % 7))\\200\\000\\000"; done | npy turned.npy '>f4' '2, 4'
sed -i "s/'fortran_order': False, 'shape': (2, 4), } /'fortran_order': True, 'shape': (2, 4), }  /" turned.npy
"$OPJIT" run "$models/gemm.onnx" --input x=counted.npy >out
"$OPJIT" run "$models/gemm.onnx" --input x=turned.npy >turned
cmp out turned || fail "column-major and big endian elements are the same"
"$OPJIT" run "$models/gemm.onnx" --input x=ones.npy --output-dir made
[ -s made/v.npy ] && [ -s made/i.npy ] || fail "a file per output"

# --- explain, bench, compile ---
"$OPJIT" explain "$models/gemm.onnx" --dim n=2 >out
grep -q '^model of [0-9]* operators$' out && grep -q '^  input x FLOAT32 \[2,4\]$' out || fail "explain shows the inputs"
grep -q '^  step [0-9]*: .*(Gemm)$' out || fail "explain names nodes"
"$OPJIT" bench "$models/gemm.onnx" --dim n=2 --quick --json >out
grep -q '"run_ms": ' out && grep -q '"kernels": \[' out || fail "bench has times"
grep -q '"nodes": [1-9][0-9]*, "first": ".*(Gemm)", "last": ".*(Gemm)" }' out || fail "bench names nodes"
"$OPJIT" bench "$models/gemm.onnx" --dim n=500 --quick --json --threads 2 >out
grep -q '"run_ms": ' out || fail "bench on two threads has times"
"$OPJIT" compile "$models/gemm.onnx" --dim n=2 --emit obj,header -o ahead --quiet
grep -q 'gemm(' ahead/gemm.h && [ -s ahead/gemm.o ] || fail "an object and a header, called as the model"

# --- refusals ---
refused() # STATUS TEXT ARGUMENT...
{
    status=$1 text=$2
    shift 2
    got=0
    "$OPJIT" "$@" >out 2>err || got=$?
    [ "$got" = "$status" ] && grep -qF -e "$text" err && [ "$(wc -l <err)" = 1 ] || { cat err; fail "$*: $text"; }
}
refused 1 'input "x": dimension "n" is not known: give its size, by --dim NAME=N' run "$models/gemm.onnx"
refused 1 'input "x": dimension "n" is "m+1", must be a size of sums, differences and products of numbers and known dime' \
    run "$models/gemm.onnx" --dim n=m+1
refused 1 'input "x": dimension "n" is "-1", must be a size of sums' run "$models/gemm.onnx" --dim n=-1
refused 1 'input "x": dimension "n" is "", must be a size of sums' run "$models/gemm.onnx" --dim n=
refused 1 'input "x" is missing: give --input x=FILE.npy' run "$models/gemm.onnx" --dim n=2
refused 1 'input "x": FLOAT64 given, must be FLOAT32' run "$models/gemm.onnx" --input x=wide.npy
refused 1 'the model has no input "y"' run "$models/gemm.onnx" --input y=ones.npy
refused 1 'no input of the model has a dimension "m"' run "$models/gemm.onnx" --dim m=2
refused 1 'input "x": size 1 is 3, must be 4' run "$models/gemm.onnx" --shape x=2,3
refused 1 '--input x: nothing.npy' run "$models/gemm.onnx" --input x=nothing.npy
refused 1 'No such file or directory' run nothing.onnx
[ "$(cat err)" = 'nothing.onnx: No such file or directory' ] || fail 'the file is named once'
refused 1 'a tensor without elements' bench "$models/resize_of_nothing.onnx"
refused 1 'angles of 0' bench "$models/rotary_of_scalars.onnx"
cp ones.npy ones.onnx
refused 1 "this is no .onnx file" run ones.onnx
refused 2 'has no NAME= before its value' run "$models/gemm.onnx" --dim 2
exit "$failed"
