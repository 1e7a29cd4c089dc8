#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models with dynamic dimensions, also from Python where the package was built: conformance/onnx/dynamic.py says which.
# Needs Python with the packages of requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python numpy, onnx
PYTHONPATH=$(dirname "$OPJIT")/python exec "$python" "$here/../conformance/onnx/dynamic.py" "$OPJIT"
