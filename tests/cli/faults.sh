#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# faults.sh - `opjit run` on a disk that fails (machines/fake_files.c): each call that touches files fails once, with
# each error, is short, or is the last one before a power failure.  In every case: one clear line or the right result,
# no descriptor left open, files complete or unchanged, nothing wrong from the disk cache, and the next run succeeds.
. "$(dirname "$0")/common.inc"
[ -n "${OPJIT_TEST_FILES:-}" ] || { echo 'skipped: a sanitizer does not go with a preloaded library'; exit 77; }

mkdir "$work/model"
printf '\001\002\003\004' >"$work/model/in.raw"
printf '{ "resources": { "A": { "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": "in.raw" } },
        "B": { "initialValues": "deferred" } },
    "dispatchables": { "bit": { "type": "ELEMENT_WISE_BIT_NOT", "desc": {
        "InputTensor": { "DataType": "UINT8", "Sizes": [4] }, "OutputTensor": { "DataType": "UINT8", "Sizes": [4] } } } },
    "commands": [{ "type": "dispatch", "dispatchable": "bit", "bindings": { "InputTensor": "A", "OutputTensor": "B" } },
        { "type": "writeFile", "resource": "B", "targetPath": "out.raw" }, { "type": "print", "resource": "B" }] }' >"$work/model/m.json"
printf "Resource 'B': 254, 253, 252, 251\n" >"$work/expected"
printf '\376\375\374\373' >"$work/new"
export OPJIT_CACHE_DIR="$work/cache"

# whole NAME: the files that the run left are sound, and a run without faults succeeds.
whole() {
    if [ -e "$work/model/out.raw" ] && ! cmp -s "$work/model/out.raw" "$work/new" && ! cmp -s "$work/model/out.raw" "$work/old"; then
        fail "$1: out.raw is neither the old one nor the new one"
    fi
    [ "$before" = none ] || [ -e "$work/model/out.raw" ] || fail "$1: out.raw is gone"
    "$OPJIT" run "$work/model/m.json" >"$work/out" 2>"$work/err" || fail "$1: the next run"
    cmp -s "$work/out" "$work/expected" && cmp -s "$work/model/out.raw" "$work/new" || fail "$1: the next run's result"
    [ $status != 99 ] || "$OPJIT" cache verify >"$work/out" 2>"$work/err" || fail "$1: the cache is damaged"
}

# sweep KIND CACHE BEFORE: makes each call fail.  CACHE: cold or warm; BEFORE: whether out.raw exists (old) or not
# (none).
sweep() {
    before=$3
    n=0
    while [ $failed = 0 ]; do
        n=$((n + 1))
        name="$1, $2, $3, call $n"
        [ "$2" = warm ] || rm -rf "$work/cache"
        rm -f "$work/hit" "$work/model/out.raw"
        [ "$3" = none ] || cp "$work/old" "$work/model/out.raw"
        status=0
        FAKE_FILES_AT=$n FAKE_FILES_KIND=$1 FAKE_FILES_HIT="$work/hit" LD_PRELOAD=$OPJIT_TEST_FILES \
            "$OPJIT" run "$work/model/m.json" >"$work/out" 2>"$work/err" || status=$?
        [ -e "$work/hit" ] || break # there are no more
        count=$((count + 1))
        ! grep -q descriptors "$work/hit" || fail "$name: descriptors are left open"
        case $status in
        0) cmp -s "$work/out" "$work/expected" && cmp -s "$work/model/out.raw" "$work/new" || fail "$name: a wrong result" ;;
        1) [ "$(grep -vc '^opjit,' "$work/err")" = 1 ] || fail "$name: not one line" ;;
        99) [ "$1" = lost ] || [ "$1" = zeros ] || fail "$name: status 99" ;;
        *) fail "$name: status $status" ;;
        esac
        if [ $status != 99 ] && ls -A "$work/model" | grep -q '^\.opjit'; then
            fail "$name: a temporary file is left"
        fi
        whole "$name"
        rm -f "$work/model"/.opjit-*
    done
    [ $n -gt 20 ] || [ $failed != 0 ] || fail "$1, $2: only $n calls are seen"
    echo "$1, $2, $3: $n calls"
}
# The files of `compile` are complete or unchanged, too.
compiled() {
    n=0
    while [ $failed = 0 ]; do
        n=$((n + 1))
        rm -rf "$work/hit" "$work/out.d"
        cp -r "$work/old.d" "$work/out.d"
        status=0
        FAKE_FILES_AT=$n FAKE_FILES_KIND=$1 FAKE_FILES_HIT="$work/hit" LD_PRELOAD=$OPJIT_TEST_FILES \
            "$OPJIT" compile "$work/model/m.json" --no-cache --target cpu:x86-64-v2 --emit json,header -o "$work/out.d" \
            >"$work/out" 2>"$work/err" || status=$?
        [ -e "$work/hit" ] || break
        count=$((count + 1))
        ! grep -q descriptors "$work/hit" || fail "compile, $1, call $n: descriptors are left open"
        for file in bit.h bit.json; do
            cmp -s "$work/out.d/$file" "$work/new.d/$file" || { [ $status != 0 ] && [ "$(cat "$work/out.d/$file")" = old ]; } ||
                fail "compile, $1, call $n: $file is neither old nor new"
        done
    done
    [ $n -gt 10 ] || [ $failed != 0 ] || fail "compile, $1: only $n calls are seen"
    echo "compile, $1: $n calls"
}
"$OPJIT" compile "$work/model/m.json" --no-cache --quiet --target cpu:x86-64-v2 --emit json,header -o "$work/new.d"
mkdir "$work/old.d"
printf old >"$work/old.d/bit.h"
printf old >"$work/old.d/bit.json"
for kind in ENOSPC lost; do
    compiled $kind
done

printf old >"$work/old"
for kind in EIO short lost; do
    sweep $kind cold old
done
for kind in ENOSPC EINTR zeros; do
    sweep $kind warm none
done
finish
