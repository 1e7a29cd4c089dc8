#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile.sh - `opjit compile`: which files it makes and what they are called, what it refuses, that the files are the
# same each time, and that a C program can use them.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: cpu is not among EXECUTORS'; exit 77 ;; esac
models=$tests/examples/models
out=$work/deep/out

# expect_file FILE...
expect_file() {
    for file in "$@"; do
        count=$((count + 1))
        [ -s "$file" ] || fail "$file is missing or empty"
    done
}

# expect_text NAME PATTERN FILE
expect_text() {
    count=$((count + 1))
    grep -q -- "$2" "$3" || fail "$1: no line like $2 in $3"
}

# one dispatchable, every kind, for another CPU than this one
run compile "$models/causal_mask.json" --target cpu:x86-64-v4 --emit obj,header,llvm,asm,ir,json -o "$out"
expect_status 'all kinds' 0
for kind in o h ll s ir json; do echo "$out/mask.$kind"; done >"$work/listed"
count=$((count + 1))
cmp -s "$work/listed" "$work/out" || fail 'all kinds: not what was written'
for kind in o h ll s ir json; do expect_file "$out/mask.$kind"; done
[ "$(ls "$out" | wc -l)" = 6 ] || fail 'other files were written'
expect_text 'header' '^void mask(uint16_t \*OutputTensor);$' "$out/mask.h"
expect_text 'header' '  OutputTensor: FLOAT16 \[2, 3, 4\], strides \[12, 4, 1\], 48 bytes' "$out/mask.h"
expect_text 'json' '"name": "OutputTensor", "argument": "OutputTensor"' "$out/mask.json"
expect_text 'json' '"target": "cpu:x86-64-v4"' "$out/mask.json"
expect_text 'llvm' 'avx512f' "$out/mask.ll"
expect_text 'ir' '^kernel @mask ' "$out/mask.ir"

# fields that are given at each call
run compile "$models/masked_scores.json" "$models/eye.json" --late Value,mask.Value --emit header,json --quiet -o "$work/late"
expect_status 'late' 0
[ ! -s "$work/out" ] || fail 'late: --quiet lists files'
expect_text 'late' '^void eye(float \*OutputTensor, float Value);$' "$work/late/eye.h"
expect_text 'late' '^void masked(const float \*Scores, float \*Masked, float mask_Value);$' "$work/late/masked.h"
expect_text 'late' '"name": "mask.Value", "argument": "mask_Value", "type": "FLOAT32"' "$work/late/masked.json"
run compile "$models/eye.json" --late Vlue -o "$work/x"
expect_error 'late misspelt' 1 'opjit: --late: no dispatchable has a field "Vlue" that can be given at a call; did you mean Value?'

# the same bytes in another folder, and next to other kernels
run compile "$models/eye.json" "$models/causal_mask.json" --target cpu:x86-64-v4 --emit obj,header,llvm,asm,ir,json \
    -o "$work/again/"
expect_status 'again' 0
for kind in o h ll s ir json; do
    count=$((count + 1))
    cmp -s "$out/mask.$kind" "$work/again/mask.$kind" || fail "mask.$kind differs the second time"
done

# libraries of all kernels, the same in any order of models
run compile "$models/eye.json" "$models/causal_mask.json" --target cpu:x86-64-v2,cpu:x86-64-v3 --emit lib,header -o "$work/lib"
expect_status 'libraries' 0
run compile "$models/causal_mask.json" "$models/eye.json" --target cpu:x86-64-v3,cpu:x86-64-v2 --emit lib -o "$work/lib2"
expect_status 'libraries again' 0
expect_file "$work/lib/libkernels.a" "$work/lib/libkernels.so" "$work/lib/kernels.h" "$work/lib/mask.h"
for file in libkernels.a libkernels.so; do
    count=$((count + 1))
    cmp -s "$work/lib/$file" "$work/lib2/$file" || fail "$file differs the second time"
done
[ "$(ls "$work/lib2" | wc -l)" = 2 ] || fail 'a library is two files'
run compile "$models/eye.json" --emit lib --name mine -o "$work/lib2"
expect_status 'a library of another name' 0
expect_file "$work/lib2/libmine.a" "$work/lib2/libmine.so"
run compile "$models/eye.json" --emit lib,header --name eye -o "$work/x"
expect_error 'one header for two' 1 "$work/x/eye.h: would be the header of both a kernel and the library: see --name"
run compile "$models/eye.json" --emit lib --name int -o "$work/x"
expect_status 'a library named int' 2

# options of the command line
run compile "$models/eye.json" -o "$work/default"
expect_status 'defaults' 0
[ "$(echo $(ls "$work/default" | sed 's/.*\.//' | sort -u))" = 'h o' ] || fail 'obj and header are the default'
run compile "$models/eye.json" --dispatchable eye --emit=ir -o "$work/one"
expect_status 'one dispatchable' 0
expect_file "$work/one/eye.ir"
[ "$(ls "$work/one" | wc -l)" = 1 ] || fail 'more than was asked for'
run compile "$models/eye.json" --emit obj
expect_error 'no folder' 2 'opjit: compile: -o DIR is missing: see opjit --help'
run compile "$models/eye.json" --emit obj,,header -o "$work/x"
expect_error 'emit of nothing' 2 'opjit: --emit: a name is empty'
run compile "$models/eye.json" --emit obj,tar -o "$work/x"
expect_error 'emit' 2 'opjit: --emit: tar is none of obj, header, lib, llvm, asm, ir, json, ptx, cubin, hsaco, spirv, tvmffi'
run compile "$models/eye.json" --emit ptx --target cpu:x86-64-v4+avx512vnni+avx512vbmi+avx512vbmi2+avx512bitalg,tune=znver4,l2=1048576 -o "$work/x"
expect_error 'another target' 1 "$work/x/eye.ptx: ptx is not for target cpu:x86-64-v4, which has obj, header, lib, llvm, asm, ir, json, tvmffi"
run compile "$models/eye.json" --dispatchable ear -o "$work/x"
expect_error 'no such dispatchable' 1 "$models/eye.json: there is no dispatchable \"ear\""
run compile "$models/eye.json" --dispatchable shfited -o "$work/x"
expect_error 'dispatchable misspelt' 1 "$models/eye.json: there is no dispatchable \"shfited\"; did you mean \"shifted\"?"
run compile "$models/eye.json" --target cpu:x86-64-v2,cpu:x86-64-v3,l1=65536 --target cpu:x86-64-v2,l1=16384 -o "$work/x"
expect_error 'equal targets' 1 'opjit: options.targets: cpu:x86-64-v2 and cpu:x86-64-v2,l1=16384 have the same features, so that there is nothing to choose by'
run run "$models/eye.json" --target cpu:x86-64-v2,cpu:x86-64-v3
expect_error 'several targets elsewhere' 2 'opjit: several targets are for compile, not for run: see opjit --help'
run compile "$models/eye.json" -o /proc/opjit/deep
expect_status 'no such place' 1
[ ! -e "$work/x" ] || fail 'something was written'

# names: letters, digits and underscores, no word of C; two of one name are refused, naming both
cat >"$work/names.json" <<'END'
{ "resources": {}, "commands": [], "dispatchables": {
    "row mask / 2": { "type": "DIAGONAL_MATRIX", "desc": { "OutputTensor": { "DataType": "FLOAT32", "Sizes": [2, 3] }, "Offset": 0, "Value": 1 } },
    "2nd": { "type": "DIAGONAL_MATRIX", "desc": { "OutputTensor": { "DataType": "FLOAT32", "Sizes": [2, 3] }, "Offset": 1, "Value": 1 } },
    "exp": { "type": "DIAGONAL_MATRIX", "desc": { "OutputTensor": { "DataType": "FLOAT32", "Sizes": [2, 3] }, "Offset": 2, "Value": 1 } } } }
END
run compile "$work/names.json" --emit ir -o "$work/names"
expect_status 'names' 0
printf '%s\n' "$work/names.json: \$.dispatchables[\"row mask / 2\"]: note: its symbol in C is row_mask_2" \
    "$work/names.json: \$.dispatchables.2nd: note: its symbol in C is k2nd" \
    "$work/names.json: \$.dispatchables.exp: note: its symbol in C is exp_op" >"$work/expected"
count=$((count + 1))
cmp -s "$work/expected" "$work/err" || fail 'names: what the symbols are'
run compile "$work/names.json" --emit ir -o "$work/names" --quiet
[ ! -s "$work/err" ] || fail 'names: notes with --quiet'
run compile "$work/names.json" --dispatchable exp --prefix-model --emit ir -o "$work/named"
[ ! -s "$work/err" ] || fail 'names: a note about names_exp'
[ "$(echo $(ls "$work/names"))" = 'exp_op.ir k2nd.ir row_mask_2.ir' ] || fail "names: $(ls "$work/names")"
sed 's/"exp"/"row mask (2)"/' "$work/names.json" >"$work/twice.json"
run compile "$work/twice.json" --emit ir -o "$work/x"
expect_error 'one name twice' 1 "$work/twice.json: \$.dispatchables[\"row mask (2)\"]: its symbol would be row_mask_2, as that of \"row mask / 2\" of $work/twice.json"
cp "$models/eye.json" "$work/other.json"
run compile "$models/eye.json" "$work/other.json" --emit ir -o "$work/x"
expect_error 'two models of one name' 1 "$work/other.json: \$.dispatchables.eye: its symbol would be eye, as that of \"eye\" of $models/eye.json; see --prefix-model"
run compile "$models/eye.json" "$work/other.json" --prefix-model --emit ir -o "$work/prefixed"
expect_status 'prefixed' 0
expect_file "$work/prefixed/eye_eye.ir" "$work/prefixed/other_eye.ir"
sed 's/"exp"/"row mask 2 packed"/' "$work/names.json" >"$work/part.json"
run compile "$work/part.json" --emit ir -o "$work/x"
expect_error 'part of another' 1 "$work/part.json: \$.dispatchables[\"row mask 2 packed\"]: name \"row_mask_2_packed\": its symbols would be those of kernel 0, \"row_mask_2\""
[ ! -e "$work/x" ] || fail 'something was written'

# a C program
if command -v cc >/dev/null 2>&1; then
    run compile "$models/position_ids.json" --target cpu:x86-64-v1,cpu:x86-64-v2,cpu:x86-64-v3 -o "$work/use"
    expect_status 'three versions' 0
    cat >"$work/use/main.c" <<'END'
#include "ids.h"
#include <stdio.h>
int main(void)
{
    int64_t row[ids_OUT0_BYTES / sizeof(int64_t)];
    if (!ids_runs_here())
        return 1;
    ids(row);
    return row[1] != 101 || row[7] != 107;
}
END
    count=$((count + 1))
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$work/use/main.c" "$work/use/ids.o" -o "$work/use/main" &&
        "$work/use/main" || fail 'a C program'
    run compile "$models/position_ids.json" --target cpu:x86-64-v1,cpu:x86-64-v3 --emit lib -o "$work/use"
    for library in libkernels.a libkernels.so; do
        count=$((count + 1))
        cc "$work/use/main.c" "$work/use/$library" -Wl,-rpath,"$work/use" -o "$work/use/main" && "$work/use/main" ||
            fail "a C program with $library"
    done
else
    echo 'skipped: no C compiler'
fi
finish
