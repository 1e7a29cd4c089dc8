#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# model_page.sh - the models on the page that describes them run, and print what the page says.
. "$(dirname "$0")/common.inc"
page=$tests/../frontend/cli/MODEL.md
awk -v out="$work" '/^```json$/ { file = out "/" ++n ".json"; next } /^```output$/ { file = out "/" n ".text"; next }
                    /^```/ { file = ""; next } file != "" { print > file }' "$page"
for model in "$work"/*.json; do
    expected=$(cat "${model%.json}.text")
    for executor in $executors; do
        run run "$model" --executor "$executor"
        expect_out "$(basename "$model") on $executor" "$expected"
    done
done
[ -f "$work/3.json" ] || fail 'the page was not read'
finish
