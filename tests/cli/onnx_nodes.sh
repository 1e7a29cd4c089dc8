# SPDX-License-Identifier: Apache-2.0
# ONNX's node tests, as many as are one operator of opjit's: conformance/onnx says how.
# Needs Python with the onnx package: that of .ci/setup test, or the one that OPJIT_PYTHON names.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${OPJIT_PYTHON:-$here/../../build/python/bin/python}
if [ ! -x "$python" ]; then
    echo "skipped: no $python: .ci/setup test makes it"
    exit 77
fi
exec "$python" "$here/../conformance/onnx/nodes.py" "$OPJIT"
