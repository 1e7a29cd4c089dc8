#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# onnxruntime.sh <library> <folder> [<slots>] - the execution provider in onnxruntime.  With <slots>, the library that
# counts calls, the tests of test_onnxruntime.py on two versions of onnxruntime, the second of which is installed in the
# folder; else published models, which the folder keeps.  Needs Python with the packages of requirements.txt: that of
# .ci/setup test, or OPJIT_PYTHON's.
set -eu

other=1.23.2 # the oldest that has all slots
here=$(cd "$(dirname "$0")/../cli" && pwd)
# shellcheck source=tests/cli/python.inc
. "$here/python.inc"
find_python numpy, onnx, onnxruntime
tests=$here/../hosts/test_onnxruntime.py
export PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore # of what makes the node tests
package=$(dirname "$(dirname "$1")") # of the Python package, if it was built
export PYTHONPATH="$package"
if [ $# -lt 3 ]; then
    exec "$python" "$tests" "$1" "${OPJIT_ONNX_MODELS:-$2}"
fi
"$python" "$tests" "$1"
"$python" "$tests" "$3" Slots "$1"
if "$python" -c "import onnxruntime, sys; sys.exit(onnxruntime.__version__ != '$other')"; then
    exit 0
fi
if [ ! -d "$2/$other" ]; then
    rm -rf "$2"
    if ! "$python" -m pip install --quiet --disable-pip-version-check --no-deps --retries=1 --target "$2/new" "onnxruntime==$other" 2>"$2.log"
    then
        echo "not on a second version: pip can't install onnxruntime $other: $(tail -n 1 "$2.log")"
        exit 0
    fi
    mv "$2/new" "$2/$other"
fi
PYTHONPATH="$2/$other:$package" "$python" "$tests" "$1"
PYTHONPATH="$2/$other:$package" "$python" "$tests" "$3" Slots "$1"
