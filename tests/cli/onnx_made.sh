#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models of a node or two against onnxruntime: conformance/onnx/made.py says which.  Needs Python with the packages of
# requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python ml_dtypes, numpy, onnx, onnxruntime
exec "$python" "$here/../conformance/onnx/made.py" "$OPJIT"
