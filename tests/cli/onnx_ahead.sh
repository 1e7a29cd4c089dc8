#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# onnx_ahead.sh - docs/classify: a model as an object and a header, with its weights in the object and beside it, in a C
# program that is linked to nothing else; and what --weights refuses.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: cpu is not among EXECUTORS'; exit 77 ;; esac
example=$tests/../docs/classify
made=$work/made

# classifies NAME [WEIGHTS]: the image is of a five
classifies() {
    name=$1
    shift
    count=$((count + 1))
    cc -std=c11 -O1 -Wall -Wextra -Werror -I"$made" "$example/classify.c" "$made/digits.o" -o "$work/classify" || fail "$name: cc"
    "$work/classify" "$@" <"$example/image.txt" >"$work/said" || fail "$name: it runs"
    grep -q '^5 (' "$work/said" || fail "$name: $(cat "$work/said")"
}

run compile "$example/digits.onnx" --dim batch=1 -o "$made"
expect_status 'in the object' 0
classifies 'in the object'
whole=$(wc -c <"$made/digits.o")

run compile "$example/digits.onnx" --dim batch=1 --emit obj,header,json,ir -o "$made" --weights "$made/digits.weights"
expect_status 'beside it' 0
count=$((count + 1))
[ "$(head -n 1 "$work/out")" = "$made/digits.weights" ] || fail 'the file is listed'
grep -q '^#define digits_WEIGHTS_BYTES UINT64_C(5824)$' "$made/digits.h" || fail 'the header has their bytes'
grep -q '"weights_bytes": 5824,' "$made/digits.json" || fail 'the JSON has their bytes'
[ "$(wc -c <"$made/digits.weights")" = 5824 ] || fail '10 x 144 numbers, and 10, at multiples of 64'
[ "$(wc -c <"$made/digits.o")" -lt $((whole - 5000)) ] || fail 'the object has none'
classifies 'beside it' "$made/digits.weights"

# An input of that name: the header declared two arguments "weights".
sed 's/"Scores"/"weights"/g' "$tests/examples/models/masked_scores.json" >"$work/named.json"
run compile "$work/named.json" --quiet -o "$made" --weights "$made/masked.weights"
expect_status 'an input "weights"' 0
count=$((count + 1))
grep -qxF 'void masked(const float *in0, float *Masked, const void *weights);' "$made/masked.h" ||
    fail "an input \"weights\": $(grep '^void masked(' "$made/masked.h")"

run compile "$example/digits.onnx" --dim batch=1 --emit lib -o "$made" --weights "$work/w"
expect_error 'in no library' 1 "$made/libkernels.a: lib: kernels whose weights are apart are in no library, which would have to bind them"
run compile "$tests/examples/models/eye.json" --dispatchable eye -o "$made" --weights "$work/w"
expect_error 'none' 1 "$work/w: would be empty: the kernel reads no constants"
run compile "$tests/examples/models/eye.json" "$example/digits.onnx" --dispatchable eye --dim batch=1 -o "$made" --weights "$work/w"
expect_error 'two kernels' 1 "$work/w: would have the weights of 2 kernels: see --dispatchable"
cp "$example/digits.onnx" "$work/digits.onnx"
run compile "$work/digits.onnx" --dim batch=1 -o "$made" --weights "$made/../digits.onnx"
expect_error 'the model' 1 "$made/../digits.onnx: is the model, which the weights would replace"
cmp -s "$example/digits.onnx" "$work/digits.onnx" || fail 'the model stays'
run compile "$example/digits.onnx" --dim batch=1 --quiet -o "$made" --weights "$made/../made/digits.o"
expect_error 'an output' 1 "$made/digits.o: would replace the file of --weights"
run compile "$example/digits.onnx" --dim batch=1 -o "$made" --weights "$work/no/w"
expect_status 'a folder that is not there' 1

# A file's name may be longer than a name in C.
long=a_model_of_handwritten_digits_with_weights_of_a_logistic_regression
cp "$example/digits.onnx" "$work/$long.onnx"
cp "$example/digits.onnx" "$work/$long.2.onnx"
run compile "$work/$long.onnx" "$work/$long.2.onnx" --dim batch=1 -o "$work/long"
expect_status 'two long names' 0
begin=a_model_of_handwritten_digits_with_weights_of_a_logist
printf '%s\n' "$work/$long.onnx: note: its symbol in C is ${begin}_7ea229ec" \
    "$work/$long.2.onnx: note: its symbol in C is ${begin}_45ed783c" >"$work/expected"
count=$((count + 1))
cmp -s "$work/expected" "$work/err" || fail "two long names: $(cat "$work/err")"
[ -s "$work/long/${begin}_7ea229ec.o" ] && [ -s "$work/long/${begin}_45ed783c.h" ] || fail 'two long names: files'
run compile "$work/$long.onnx" --dim batch=1 --symbol digits -o "$made"
expect_status '--symbol' 0
[ ! -s "$work/err" ] || fail "--symbol: $(cat "$work/err")"
classifies '--symbol'
run compile "$work/$long.onnx" "$work/$long.2.onnx" --dim batch=1 --symbol digits -o "$work/x"
expect_error 'two kernels' 1 "$work/$long.2.onnx: --symbol digits is for one kernel, and there are more"
run compile "$work/$long.onnx" --dim batch=1 --symbol long -o "$work/x"
expect_error 'no name' 2 'opjit: --symbol: name "long": is a word of C or C++, a function of the C library, or reserved'

# Some of the sizes that are tried can't be read, and nobody asks why: this ended the program.
for level in v2 v3 v4; do # ten outputs are more than a vector of AVX2, and fewer than one of AVX-512
    run compile "$example/digits.onnx" --dim batch=1..64:8 --target cpu:x86-64-$level -o "$made"
    expect_status "of many sizes, $level" 0
done
finish
