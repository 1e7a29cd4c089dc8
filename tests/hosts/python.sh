#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python.sh <folder> [test [module ...]] - a test of the Python package that was put together in the folder,
# test_python.py unless another is named.  Needs Python 3.11 or later with NumPy and the modules: that of .ci/setup
# test, or OPJIT_PYTHON's, or any.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=$1
test=${2:-python}
[ $# -lt 2 ] || shift
shift
for python in "${OPJIT_PYTHON:-}" "$here/../../build/python/bin/python" python3; do
    if [ -n "$python" ] && "$python" - "$@" 2>/dev/null <<'END'
import importlib.util, sys
sys.exit(sys.version_info < (3, 11) or not all(importlib.util.find_spec(m) for m in ("numpy", *sys.argv[1:])))
END
    then
        export PYTHONPATH="$folder" PYTHONDONTWRITEBYTECODE=1
        exec "$python" "$here/test_$test.py"
    fi
done
echo "skipped: no Python 3.11 with NumPy${1:+, $*}: .ci/setup test installs one"
exit 77
