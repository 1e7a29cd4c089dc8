#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python.sh <folder> - the tests of the Python package that was put together in the folder.  Needs Python 3.11 or later
# with NumPy: that of .ci/setup test, or OPJIT_PYTHON's, or any.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
for python in "${OPJIT_PYTHON:-}" "$here/../../build/python/bin/python" python3; do
    if [ -n "$python" ] && "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        export PYTHONPATH="$1" PYTHONDONTWRITEBYTECODE=1
        exec "$python" "$here/test_python.py"
    fi
done
echo "skipped: no Python 3.11 with NumPy: .ci/setup test installs one"
exit 77
