#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh - `opjit bench`: which rows and columns it prints, and what it refuses.  Does not check the times themselves.
. "$(dirname "$0")/common.inc"

columns='case type bytes align threads compile lower passes codegen load hit call GB/s x memset x zero x nt x memcpy'
models=$tests/examples/models

# expect_rows NAME ROW...: a header, and then rows that begin with these texts, in this order.
expect_rows() {
    name=$1
    shift
    count=$((count + 1))
    printf '%s\n' "$columns" "$@" >"$work/expected"
    sed -e 1d -e 's/  */ /g' "$work/out" >"$work/rows"
    n=0
    while IFS= read -r row; do
        n=$((n + 1))
        case $(sed -n "${n}p" "$work/rows") in "$row"*) ;; *) fail "$name: row $n has to begin with: $row" ;; esac
    done <"$work/expected"
    [ "$(wc -l <"$work/rows")" = $n ] || fail "$name: $n rows expected"
    [ "$status" = 0 ] || fail "$name: status $status"
}

run bench --no-cache "$models/eye.json"
expect_rows 'a model' 'all kernels - - - -' 'resident at start' 'resident with kernels' 'eye f32 64 B - 1 ' 'shifted i32 48 B - 1 '
run bench --no-cache --level peak --threads 2 "$models/causal_mask.json"
expect_rows 'two threads' 'all kernels' 'resident at start' 'resident with kernels' 'mask f16 48 B - 2 '

run bench --quick --no-cache
set --
for operator in FILL_VALUE_CONSTANT FILL_VALUE_SEQUENCE DIAGONAL_MATRIX; do
    for type in f32 f16; do
        set -- "$@" "$operator $type 16 KiB 64 1 " "$operator $type 1 MiB 64 1 "
    done
done
for type in f32 f16; do
    set -- "$@" "DIAGONAL_MATRIX1 $type 24 KiB 64 1 " "DIAGONAL_MATRIX1 $type 1536 KiB 64 1 "
done
expect_rows 'generators' 'first result' 'resident at start' 'resident with kernels' "$@"

# The same as JSON, for programs: one object per row, with numbers in ns and bytes.
run bench --no-cache --json "$models/eye.json"
expect_status 'json' 0
if command -v python3 >/dev/null; then
    count=$((count + 1))
    python3 - "$work/out" <<'PROGRAM' || fail 'json'
import json, sys
text = json.load(open(sys.argv[1]))
rows = {row["case"]: row for row in text["rows"]}
assert text["benchmark"].endswith("eye.json") and text["target"], text
assert list(rows) == ["all kernels", "resident at start", "resident with kernels", "eye", "shifted"], rows
assert rows["eye"]["bytes"] == 64 and rows["eye"]["type"] == "f32" and rows["eye"]["threads"] == 1
for phase in ("compile", "lower", "passes", "codegen", "load", "hit", "call", "GB/s", "x memset"):
    assert rows["shifted"][phase] > 0, phase
assert sum(rows["eye"][phase] for phase in ("lower", "passes", "codegen", "load")) < 1e9
PROGRAM
else
    echo 'skipped: the JSON is not read, as there is no python3'
fi

run bench "$work/nothing.json"
expect_error 'no such model' 1 "$work/nothing.json: can't be opened: No such file or directory"
run bench --executor cuda
expect_error 'no such option' 2 'opjit: --executor is no option of this command: see opjit --help'
run bench --threads 0
expect_error 'threads' 2 'opjit: --threads: 0 is not a number from 1 to 256'
printf '{ "resources": {}, "dispatchables": {}, "commands": [] }' >"$work/m.json"
run bench --no-cache "$work/m.json"
expect_rows 'nothing to measure' 'all kernels' 'resident at start' 'resident with kernels'
finish
