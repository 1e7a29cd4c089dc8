#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coverage.sh [CTEST-OPTION...] - lines and branches of the product that the tests run.  Prints a row per folder; in
# build/coverage, lines.txt has every file with the lines that no test ran.  Needs gcovr (Debian's package).  Options go
# to ctest: -R '^(ir|fe)\.' measures some tests alone.
set -eu

cd "$(dirname "$0")/.."
cmake -B build/coverage -G Ninja -DCMAKE_BUILD_TYPE=Debug -DOPJIT_LLVM=shared \
    -DCMAKE_C_FLAGS_DEBUG="-O1 -g --coverage -fprofile-update=atomic" >/dev/null
cmake --build build/coverage
find build/coverage -name '*.gcda' -delete
# Tests that build opjit once more would measure that build.
OPJIT_CASES=${OPJIT_CASES:-20%} ctest --test-dir build/coverage -j2 -E '^api\.(consumer|none|symbols|runtime)' "$@" \
    >build/coverage/ctest.log 2>&1 || tail -n 20 build/coverage/ctest.log
gcovr --root . --filter runtime/ --filter ir/ --filter codegen/ --filter frontend/ --exclude-unreachable-branches \
    --gcov-ignore-parse-errors --csv build/coverage/files.csv --txt build/coverage/lines.txt build/coverage
awk -F, 'NR > 1 {
    folder = $1; sub("/[^/]*$", "", folder)
    lines[folder] += $2; run[folder] += $3; branches[folder] += $5; taken[folder] += $6
    lines["all"] += $2; run["all"] += $3; branches["all"] += $5; taken["all"] += $6
}
END {
    print "| folder | lines | run | branches | taken |\n| --- | --- | --- | --- | --- |"
    for (f in lines)
        printf "| %s | %d | %.1f %% | %d | %.1f %% |\n", f, lines[f], 100 * run[f] / lines[f], branches[f], 100 * taken[f] / (branches[f] + !branches[f]) | "sort"
}' build/coverage/files.csv
