#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models of a node or two against onnxruntime: conformance/onnx/made.py says which.  Needs Python with the packages of
# requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${OPJIT_PYTHON:-$here/../../build/python/bin/python}
if ! "$python" -c 'import onnx, onnxruntime' 2>/dev/null; then
    echo "skipped: no onnxruntime for $python: .ci/setup test installs it"
    exit 77
fi
exec "$python" "$here/../conformance/onnx/made.py" "$OPJIT"
