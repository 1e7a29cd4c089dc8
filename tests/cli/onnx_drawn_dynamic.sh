#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random models with dynamic dimensions: conformance/onnx/drawn_dynamic.py draws them, OPJIT_SEED (1) and OPJIT_CASES
# (96) say which. Needs Python with the packages of requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's; and the
# package opjit of this build.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
PYTHONPATH=$(dirname "$OPJIT")/python
export PYTHONPATH
find_python numpy, onnx, onnxruntime, opjit
case ${OPJIT_CASES:-96} in *%) count=12 ;; *) count=${OPJIT_CASES:-96} ;; esac
exec "$python" "$here/../conformance/onnx/drawn_dynamic.py" "${OPJIT_SEED:-1}" "$count"
