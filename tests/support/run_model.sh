#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_model.sh MODEL.json - runs an example model; what it prints must be MODEL.out where there is such a file.
# $OPJIT is the program.  Files that the model writes go to a folder of its own.
set -eu

model=$1
expected=${model%.json}.out
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$(dirname "$model")/." "$work"
"$OPJIT" run --quiet "$work/$(basename "$model")" >"$work/printed"
if [ -f "$expected" ]; then
    diff -u "$expected" "$work/printed"
fi
