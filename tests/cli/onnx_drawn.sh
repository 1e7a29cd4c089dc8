#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random models against onnxruntime: conformance/onnx/drawn.py draws them, OPJIT_SEED (1) and OPJIT_CASES (200) say
# which. Needs Python with the packages of requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python numpy, onnx, onnxruntime
case ${OPJIT_CASES:-200} in *%) count=20 ;; *) count=${OPJIT_CASES:-200} ;; esac
exec "$python" "$here/../conformance/onnx/drawn.py" "$OPJIT" "${OPJIT_SEED:-1}" "$count"
