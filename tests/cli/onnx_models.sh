#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ONNX project's node tests as models, through `opjit run MODEL.onnx`: conformance/onnx/models.py says how.
# Needs Debian's libonnx-testdata, and Python with the onnx package: that of .ci/setup test, or OPJIT_PYTHON's.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${OPJIT_PYTHON:-$here/../../build/python/bin/python}
data=${OPJIT_ONNX_DATA:-/usr/share/libonnx-testdata/data/node}
for needed in "$python" "$data"; do
    if [ ! -e "$needed" ]; then
        echo "skipped: no $needed: .ci/setup test installs it"
        exit 77
    fi
done
exec "$python" "$here/../conformance/onnx/models.py" "$OPJIT" "$data"
