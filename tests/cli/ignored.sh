#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ignored.sh - the program says in one line, once, that it ignores a setting: OPJIT_DUMP, OPJIT_DUMP_DIR, the disk
# cache's folder.  Dumped files replace links and don't follow them.
. "$(dirname "$0")/common.inc"
cp "$tests/examples/models/eye.json" "$work/m.json" # two kernels
expected=$(cat "$tests/examples/models/eye.out")

# warns NAME LINE ARGUMENT...: the results, and this line alone on standard error
warns() {
    name=$1 line=$2
    shift 2
    run run "$@" "$work/m.json"
    count=$((count + 1))
    printf '%s\n' "$expected" | cmp -s - "$work/out" && [ "$status" = 0 ] || fail "$name: the results"
    printf '%s' "${line:+$line
}" | cmp -s - "$work/err" || fail "$name: expected $line"
    run run --quiet "$@" "$work/m.json"
    [ ! -s "$work/err" ] || fail "$name: --quiet"
}
warns 'nothing is ignored' '' --no-cache
mkdir "$work/dumps"
export OPJIT_DUMP_DIR="$work/dumps"
OPJIT_DUMP=foo warns 'unknown kind' 'opjit: warning: OPJIT_DUMP: foo: none of graph ir ir-all llvm asm obj' --no-cache
[ -z "$(ls -A "$work/dumps")" ] || fail 'unknown kind: something is dumped'
OPJIT_DUMP=ir,irs,asm warns 'unknown kind among others' 'opjit: warning: OPJIT_DUMP: irs: none of graph ir ir-all llvm asm obj' --no-cache
ls "$work/dumps" | grep -q '\.ir$' || fail 'the others are not dumped'

# Links in the folder are replaced, and their targets stay; a folder in the way is reported.
printf mine >"$work/mine"
for file in "$work/dumps"/*; do
    ln -sf "$work/mine" "$file"
done
OPJIT_DUMP=ir,asm warns 'links' '' --no-cache
[ "$(cat "$work/mine")" = mine ] || fail 'a link was followed'
[ -z "$(find "$work/dumps" -type l)" ] && [ -z "$(find "$work/dumps" -name '.opjit*')" ] || fail 'links or temporaries are left'

OPJIT_DUMP=ir OPJIT_DUMP_DIR=/proc/self/nowhere \
    warns 'no folder' 'opjit: warning: OPJIT_DUMP_DIR: /proc/self/nowhere: No such file or directory' --no-cache
OPJIT_DUMP=ir OPJIT_DUMP_DIR="$work/mine" warns 'a file' "opjit: warning: OPJIT_DUMP_DIR: $work/mine: Not a directory" --no-cache

warns 'no cache there' 'opjit: warning: disk cache: /proc/x: No such file or directory' --cache-dir /proc/x
OPJIT_CACHE_DIR=/proc/x warns 'no cache there, by the environment' 'opjit: warning: disk cache: /proc/x: No such file or directory'
mkdir -m 777 "$work/open"
warns "others' cache" "opjit: warning: disk cache: $work/open/cache: not used: others may change a folder above it" \
    --cache-dir "$work/open/cache"
unset OPJIT_CACHE_DIR
HOME=/proc/x XDG_CACHE_HOME= warns 'the usual cache is not missed' ''
finish
