#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile_gpu.sh - `compile` for GPUs: PTX, machine code where ptxas is installed, code objects, SPIR-V, how to launch
# them, refusals.
. "$(dirname "$0")/common.inc"
case " $executors " in *' cpu '*) ;; *) echo 'skipped: cpu is not among EXECUTORS'; exit 77 ;; esac
models=$tests/examples/models

# expect_file FILE
expect_file() {
    count=$((count + 1))
    [ -s "$1" ] || fail "$1 is missing or empty"
}

run compile "$models/causal_softmax.json" --target nvptx:sm_90 --emit ptx,llvm,ir,json -o "$work/gpu"
expect_status 'PTX' 0
for kind in ptx ll ir json; do expect_file "$work/gpu/attention.$kind"; done
grep -q '^\.target sm_90' "$work/gpu/attention.ptx" || fail 'the PTX is for sm_90'
grep -q 'visible .entry attention_v0_s0(' "$work/gpu/attention.ptx" || fail 'the kernel has the name that the JSON gives'
grep -q '"symbol": "attention_v0_s0", "extent": 8, "grid": \[1, 1, 1\], "block": \[256, 1, 1\]' "$work/gpu/attention.json" ||
    fail 'the JSON says how to launch it'

# constants are in the PTX, late parameters and the workspace are arguments
run compile "$models/masked_scores.json" --target nvptx:sm_80 --emit ptx -o "$work/gpu"
expect_status 'constants' 0
grep -q 'masked_constant0' "$work/gpu/masked.ptx" || fail 'the constant is in the PTX'

run compile "$models/eye.json" --target nvptx:sm_90 --emit obj -o "$work/x"
expect_error 'objects' 1 "$work/x/eye.o: obj is not for target nvptx:sm_90, which has llvm, asm, ir, json, ptx, cubin"
run compile "$models/eye.json" --target nvptx:sm_90 --emit lib -o "$work/x"
expect_status 'libraries' 1
run compile "$models/eye.json" --target cpu:aarch64 --emit ptx -o "$work/x"
expect_error 'PTX for a CPU' 1 "$work/x/eye.ptx: ptx is not for target cpu:aarch64, which has obj, header, lib, llvm, asm, ir, json, tvmffi"
run compile "$models/eye.json" --target nvptx:sm_90,cpu:x86-64-v3 --emit ptx -o "$work/x"
expect_status 'a GPU beside a CPU' 1
[ ! -e "$work/x" ] || fail 'something was written'

run compile "$models/eye.json" --target nvptx:sm_90 --emit cubin -o "$work/cubin"
if [ "$status" = 0 ]; then
    expect_file "$work/cubin/eye.cubin"
else
    grep -q 'the program ptxas is needed' "$work/err" || fail 'no cubin, and another reason than the missing ptxas'
    echo 'skipped: no cubin is made, because ptxas was not found'
fi

run compile "$models/causal_softmax.json" --target amdgpu:gfx942 --emit hsaco,llvm,asm,ir,json -o "$work/amd"
expect_status 'a code object' 0
for kind in hsaco ll s ir json; do expect_file "$work/amd/attention.$kind"; done
grep -q 'global_load_dword' "$work/amd/attention.s" || fail 'the assembly is of an AMD GPU'
run compile "$models/causal_softmax.json" --target amdgpu:gfx942 --emit hsaco -o "$work/amd2"
cmp -s "$work/amd/attention.hsaco" "$work/amd2/attention.hsaco" || fail 'the same code object again'
run compile "$models/eye.json" --target amdgpu:gfx803 --emit hsaco -o "$work/x"
expect_status 'an unknown GPU' 2

# code objects are loaded and launched by a fake driver, which does not run them
if [ -n "${OPJIT_TEST_HIP:-}" ]; then
    for arch in gfx90a gfx1100; do
        OPJIT_HIP_DRIVER="$OPJIT_TEST_HIP" FAKE_HIP_DEVICES="$arch" run run "$models/causal_softmax.json" --executor hip --no-cache
        expect_status "launched on $arch" 0
    done
    OPJIT_HIP_DRIVER="$OPJIT_TEST_HIP" FAKE_HIP_DEVICES=gfx906 run run "$models/eye.json" --executor hip
    expect_error 'an architecture without code' 1 "$models/eye.json: device hip:0: gfx906 is an architecture that opjit makes no code for"
    OPJIT_HIP_DRIVER="$OPJIT_TEST_HIP" run run "$models/eye.json" --executor hip --target nvptx:sm_90
    expect_error "another's target" 1 "$models/eye.json: target nvptx:sm_90 is not for device hip, which runs amdgpu:gfx942"
fi

run compile "$models/causal_softmax.json" --target spirv --emit spirv,llvm,ir,json -o "$work/cl"
expect_status 'SPIR-V' 0
for kind in spv ll ir json; do expect_file "$work/cl/attention.$kind"; done
[ "$(od -An -tx4 -N4 "$work/cl/attention.spv")" = ' 07230203' ] || fail 'a module of SPIR-V'
run compile "$models/causal_softmax.json" --target spirv:opencl --emit spirv -o "$work/cl2"
cmp -s "$work/cl/attention.spv" "$work/cl2/attention.spv" || fail 'the same module again'
run compile "$models/eye.json" --target spirv --emit asm -o "$work/x"
expect_error 'text of SPIR-V' 1 "$work/x/eye.s: asm is not for target spirv:opencl, which has llvm, ir, json, spirv"
finish
