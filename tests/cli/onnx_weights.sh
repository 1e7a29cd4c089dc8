#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Weights in other files, and where links may lead: conformance/onnx/weights.py says it.  Needs Python with the packages
# of requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python numpy, onnx
exec "$python" "$here/../conformance/onnx/weights.py" "$OPJIT"
