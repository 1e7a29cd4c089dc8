#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cache.sh - the disk cache from outside: what a second process finds in it, how damage is handled, and `opjit cache`.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: cpu is not among EXECUTORS'; exit 77 ;; esac
cp "$tests/examples/models/causal_mask.json" "$work/m.json"
expected=$(cat "$tests/examples/models/causal_mask.out")
folder=$work/cache/deep
verbose() { OPJIT_VERBOSE=1 "$OPJIT" "$@" 2>&1 >"$work/verbose.out"; }

# expect_line NAME PATTERN TEXT
expect_line() {
    count=$((count + 1))
    printf '%s\n' "$3" | grep -q "$2" || fail "$1: no line like $2 in: $3"
}

run cache list --cache-dir "$folder"
expect_out 'no folder yet' '0 kernels, 0 bytes'
run run "$work/m.json" --cache-dir "$folder"
expect_out 'first run' "$expected"
[ "$(stat -c %a "$folder")" = 700 ] || fail 'the folder is for others too'
[ "$(ls "$folder" | wc -l)" = 1 ] || fail 'one file'
file=$folder/$(ls "$folder")

lines=$(verbose run "$work/m.json" --cache-dir "$folder")
expect_line 'second run' '^opjit,hit,.*,disk$' "$lines"
count=$((count + 1))
! printf '%s\n' "$lines" | grep -q 'opjit,\(compile\|load,codegen\)' || fail "LLVM was asked: $lines"
run run "$work/m.json" --cache-dir "$folder"
expect_out 'third run' "$expected"
lines=$(verbose run "$work/m.json" --cache-dir "$folder" --no-cache)
expect_line '--no-cache' '^opjit,compile,' "$lines"
run cache list --cache-dir "$folder"
expect_status 'list' 0
expect_line 'list' "$(basename "$file")  diagonal_matrix1_" "$(cat "$work/out")"
run cache verify --cache-dir "$folder"
expect_status 'verify' 0

# spoil NAME REASON COMMAND...: the damage that COMMAND does to the file is noticed and repaired
spoil() {
    name=$1 reason=$2
    shift 2
    "$@"
    run cache verify --cache-dir "$folder"
    expect_status "$name: verify" 1
    expect_line "$name: verify" "$reason" "$(cat "$work/out")"
    lines=$(verbose run "$work/m.json" --cache-dir "$folder")
    expect_line "$name: warning" "^opjit,warning,disk cache,.*$reason" "$lines"
    expect_line "$name: compiled" '^opjit,compile,' "$lines"
    run run "$work/m.json" --cache-dir "$folder"
    expect_out "$name" "$expected"
    run cache verify --cache-dir "$folder"
    expect_status "$name: mended" 0
}
flip() { printf "\\$(printf %o $((255 - $(od -An -tu1 -j"$1" -N1 "$file"))))" | dd of="$file" bs=1 seek="$1" conv=notrunc status=none; }
as_link() { mv "$file" "$work/elsewhere" && ln -s "$work/elsewhere" "$file"; }
as_hard_link() { ln "$file" "$work/second"; }
spoil 'truncated' 'its size is not what it says' truncate -s -1 "$file"
spoil 'emptied' 'its size is that of no kernel' truncate -s 0 "$file"
spoil 'magic' 'it is of another format' flip 0
spoil 'version' 'it is of another format' flip 9
spoil 'key' 'its checksum is wrong' flip 60
spoil 'code' 'its image is damaged' flip $(($(stat -c %s "$file") - 9))
spoil 'writable' 'others may write to it' chmod 666 "$file"
spoil 'link' 'it is a link' as_link
[ -s "$work/elsewhere" ] || fail 'what a link led to was touched'
spoil 'hard link' 'it has another name elsewhere' as_hard_link
[ -s "$work/second" ] || fail 'what a hard link named was touched'
spoil 'folder for a file' 'it is no plain file' sh -c "rm '$file' && mkfifo '$file'"

# folders that are not to be used, and a full disk
chmod 777 "$folder"
lines=$(verbose run "$work/m.json" --cache-dir "$folder")
expect_line 'open folder' '^opjit,warning,disk cache,.*not used: others may write to it' "$lines"
run run "$work/m.json" --quiet --cache-dir "$folder"
expect_out 'open folder' "$expected"
chmod 700 "$folder"
ln -s "$folder" "$work/link"
lines=$(verbose run "$work/m.json" --cache-dir "$work/link")
expect_line 'linked folder' '^opjit,warning,disk cache,.*not used: it is no folder' "$lines"
lines=$(verbose run "$work/m.json" --cache-dir "$file")
expect_line 'a file as folder' '^opjit,warning,disk cache,.*not used: it is no folder' "$lines"
lines=$(verbose run "$work/m.json" --cache-dir /proc/opjit)
expect_line 'no such place' '^opjit,warning,disk cache,/proc/opjit,No such file' "$lines"

# files left by dead writers are removed; files that are not the cache's stay
mkdir "$folder/.opjit-new"
touch "$folder/.opjit-new/1-2" "$folder/notes.txt"
run run "$work/m.json" --cache-dir "$folder"
expect_out 'leftovers' "$expected"
[ ! -e "$folder/.opjit-new" ] && [ -e "$folder/notes.txt" ] || fail 'leftovers'
run cache clear --cache-dir "$folder"
expect_status 'clear' 0
[ ! -e "$file" ] && [ -e "$folder/notes.txt" ] || fail 'clear'
run cache list --cache-dir "$folder"
expect_out 'cleared' '0 kernels, 0 bytes'

# functions that kernels share: listed and removed with the kernels, and named in no line where there are none
cp "$tests/examples/models/causal_softmax.json" "$work/s.json"
run run "$work/s.json" --quiet --cache-dir "$folder"
expect_out 'softmax' "$(cat "$tests/examples/models/causal_softmax.out")"
if [ "$(uname -m)" = x86_64 ] && grep -qw fma /proc/cpuinfo; then
    run cache list --cache-dir "$folder"
    expect_line 'functions' '\.opjit  math\.exp_f32x' "$(cat "$work/out")"
    expect_line 'functions' '^1 kernels, [1-9][0-9]* functions, [0-9]* bytes$' "$(cat "$work/out")"
    run cache verify --cache-dir "$folder"
    expect_line 'functions: verify' '^1 kernels, [1-9][0-9]* functions, [0-9]* bytes$' "$(cat "$work/out")"
    for file in "$folder"/*.opjit; do
        ! grep -q '^opjitfn' "$file" || truncate -s -1 "$file"
    done
    run cache verify --cache-dir "$folder"
    expect_status 'functions: verify' 1
    run run "$work/s.json" --quiet --level peak --cache-dir "$folder"
    expect_out 'softmax at peak' "$(cat "$tests/examples/models/causal_softmax.out")"
fi
run cache clear --cache-dir "$folder"
expect_line 'clear' '^[1-9][0-9]* kernels.* bytes removed$' "$(cat "$work/out")"
run cache list --cache-dir "$folder"
expect_out 'cleared again' '0 kernels, 0 bytes'
run cache polish --cache-dir "$folder"
expect_error 'unknown' 1 'opjit: cache polish: must be list, verify or clear'
finish
