#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each operator of ONNX with dynamic dimensions, where the Python package was built: conformance/onnx/swept.py says
# which.  Needs Python with the packages of requirements.txt: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python numpy, onnx
package=$(dirname "$OPJIT")/python
if ! [ -d "$package/opjit" ]; then
    echo "skipped: the Python package was not built"
    exit 77
fi
PYTHONPATH=$package exec "$python" "$here/../conformance/onnx/swept.py"
