#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nodes.sh - one operator at a time with a known answer: the models in conformance/nodes, whose .out files were not made
# with opjit, on every executor, code level and CPU level that runs here.
. "$(dirname "$0")/common.inc"

runs_here() {
    "$OPJIT" targets | grep -q "^named *$1 *runs here"
}

# nodes TITLE OPTION...
nodes() {
    title=$1
    shift
    for model in "$tests"/conformance/nodes/*.json; do
        run run --no-cache "$@" "$model"
        expect_out "$(basename "$model" .json) ($title)" "$(cat "${model%.json}.out")"
    done
}

for executor in $executors; do
    nodes "$executor" --executor "$executor"
    [ "$executor" = cpu ] || continue
    nodes peak --level peak
    for level in v1 v2 v3 v4; do
        if runs_here "cpu:x86-64-$level"; then
            nodes "$level" --target "cpu:x86-64-$level"
        else
            echo "skipped: x86-64-$level does not run here"
        fi
    done
done
finish
