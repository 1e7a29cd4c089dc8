#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reproducible.sh - the same models give the same bytes: in another folder, under another environment, named differently
# and in another order, beside other processes; and the bytes contain nothing of the place where they were made.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: cpu is not among EXECUTORS'; exit 77 ;; esac
kinds=obj,header,lib,llvm,asm,ir,json
first=$work/first second="$work/another place/deep/second"
mkdir -p "$first/models" "$second/models" "$work/home"
models='causal_mask eye band_inplace position_ids causal_softmax quantize'
for name in $models; do
    cp "$tests/examples/models/$name.json" "$first/models/"
    cp "$tests/examples/models/$name.json" "$second/models/"
done
reversed=
for name in $models; do reversed="$name $reversed"; done
program=$(readlink -f "$OPJIT")

# here TARGET LEVEL: as a build would, models by their paths from here
here() {
    (cd "$first" && "$program" compile $(printf 'models/%s.json ' $models) --target "$1" --level "$2" --emit "$kinds" -o "out/$1-$2")
}
# there TARGET LEVEL: by absolute paths, in the opposite order, with hardly any environment
there() {
    set -- "$1" "$2" "$second/out/$1-$2"
    for name in $reversed; do set -- "$@" "$second/models/$name.json"; done
    target=$1 level=$2 out=$3
    shift 3
    (cd / && env -i HOME="$work/home" TMPDIR="$work/home" LANG=tr_TR.UTF-8 LC_ALL=C.UTF-8 TZ=Asia/Tokyo USER=someone \
        ${OPJIT_CODEGEN:+OPJIT_CODEGEN="$OPJIT_CODEGEN"} SOURCE_DATE_EPOCH=1 \
        "$program" compile "$@" --target "$target" --level "$level" --emit "$kinds" -o "$out")
}

pairs='cpu:x86-64-v3/quick cpu:x86-64-v1/peak cpu:x86-64-v2,cpu:x86-64-v4/quick cpu:aarch64/quick cpu:aarch64+sve256/peak cpu:rv64gc/quick cpu:rv64gcv/peak cpu:host/peak'
for pair in $pairs; do
    here "${pair%/*}" "${pair#*/}" >"$work/out" 2>"$work/err" || fail "here: $pair"
done
jobs=
for pair in $pairs; do # all at once
    there "${pair%/*}" "${pair#*/}" >/dev/null 2>&1 &
    jobs="$jobs $!"
done
for job in $jobs; do wait "$job" || fail 'a compile beside others'; done
count=$((count + 1))
diff -r "$first/out" "$second/out" >"$work/out" 2>&1 || fail 'artifacts differ'
[ "$(find "$first/out" -name '*.o' | wc -l)" -ge 30 ] || fail 'too few objects'

# What could tell one machine from another: folders, the kernel.
for text in "$work" "$first" "$program" "$(dirname "$program")" "$tests" "$(dirname "$tests")" "${HOME:-/root}/" "$(uname -r)" /tmp/ .json; do
    count=$((count + 1))
    ! grep -rlF -- "$text" "$first/out" >"$work/out" 2>/dev/null || fail "\"$text\" is in an artifact"
done

# Kernels of the disk cache: other folder, thread counts, order; and the images of both levels.
for name in $models; do
    "$OPJIT" run "$first/models/$name.json" --cache-dir "$work/cache1" >/dev/null || fail "run $name"
    "$OPJIT" run "$first/models/$name.json" --cache-dir "$work/cache1" --level peak >/dev/null || fail "run $name"
done
for name in $reversed; do
    (cd / && env -i HOME="$work/home" ${OPJIT_CODEGEN:+OPJIT_CODEGEN="$OPJIT_CODEGEN"} "$program" run "$second/models/$name.json" \
        --cache-dir "$work/cache2" --level peak --threads 3 >/dev/null) || fail "run $name elsewhere"
    "$OPJIT" run "$second/models/$name.json" --cache-dir "$work/cache2" --threads 2 >/dev/null || fail "run $name elsewhere"
done
count=$((count + 1))
diff -r "$work/cache1" "$work/cache2" >"$work/out" 2>&1 || fail 'cached kernels differ'
[ "$(ls "$work/cache1" | wc -l)" -ge 8 ] || fail 'too few cached kernels'
finish
