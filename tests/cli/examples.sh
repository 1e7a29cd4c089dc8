#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples.sh - the models in examples/models print the contents of the .out files beside them; and DxDispatch's sample
# models, if $OPJIT_DXDISPATCH_MODELS names their folder, print the known results.
. "$(dirname "$0")/common.inc"

mkdir "$work/models"
cp "$tests"/examples/models/*.json "$work/models"
for model in "$work"/models/*.json; do
    name=$(basename "$model" .json)
    for executor in $executors; do
        run run --no-cache --executor "$executor" "$model"
        expect_out "$name ($executor)" "$(cat "$tests/examples/models/$name.out")"
    done
done
[ "$(wc -c <"$work/models/pi.npy")" = 176 ] || fail 'pi.npy'
[ "$(wc -c <"$work/models/pi.raw")" = 48 ] || fail 'pi.raw'

# sample NAME EXPECTED
sample() {
    run run --no-cache --executor "${executors%% *}" "$work/samples/$1.json"
    expect_out "$1" "$2"
}
if [ -d "${OPJIT_DXDISPATCH_MODELS:-/nonexistent}" ]; then
    cp -R "$OPJIT_DXDISPATCH_MODELS" "$work/samples"
    sample dml_fill_value_sequence "Resource 'Out': 3.2, 4.7, 6.2, 7.7, 9.2"
    sample dml_scalar_union_fp16 "Resource 'output': 2, 2, 3, 4, 4"
    sample dml_element_wise_clip "Resource 'A': -2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5"
    sample dml_element_wise_identity "Resource 'Out': 12, 14, 16"
    sample dml_element_wise_add "Resource 'Out': 6, 10, -2"
    sample dml_owned_tensors "Resource 'Out': 6, 10, -2"
    sample dml_element_wise_add1 "Resource 'Out': 6, 10, -0.432332"
    sample dml_cumulative_product "Resource 'Out': 2, 8, 64, 192"
    sample dml_reduce "Resource 'input': 1, 2, 3, 4, 5, 6, 7, 8, 9
Resource 'output': 6, 15, 24"
    sample dml_element_wise_add_npy "Resource 'Out': 2, 4, 6, 8, 10, 12"
else
    echo 'skipped: DxDispatch models: OPJIT_DXDISPATCH_MODELS names no folder'
fi
finish
