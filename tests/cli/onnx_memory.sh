#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How much memory the weights of a model take: conformance/onnx/memory.py says how.  Needs Python with the packages of
# requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python numpy, onnx
exec "$python" "$here/../conformance/onnx/memory.py" "$OPJIT"
