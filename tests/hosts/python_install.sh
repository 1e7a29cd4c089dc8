#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python_install.sh <cmake> <build folder> <work folder> - the component python, of which wheels are made: installed and
# moved, it loads what lies in it and nothing of the build.
set -eu

for python in "${OPJIT_PYTHON:-}" "$(dirname "$0")/../../build/python/bin/python" python3; do
    if [ -n "$python" ] && "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        break
    fi
    python=
done
if [ -z "$python" ]; then
    echo "skipped: no Python 3.11 with NumPy: .ci/setup test installs one"
    exit 77
fi
rm -rf "$3"
"$1" --install "$2" --component python --prefix "$3/first" > /dev/null
mv "$3/first" "$3/moved"
package=$(dirname "$(find "$3/moved" -name opjit -type d)")
unset OPJIT_CODEGEN OPJIT_DEVICE OPJIT_CACHE_DIR # a cached kernel would need no code generation
cd /
PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1 "$python" - "$package" <<'END'
import os, sys
import numpy, opjit
k = opjit.compile(opjit.eye(3, 4))
assert (k() == numpy.eye(3, 4)).all()
folder = os.path.realpath(sys.argv[1])
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "opjit" in line.rpartition("/")[2]}
assert loaded and all(path.startswith(folder) for path in loaded), loaded
assert k.info["interpreted"] or any("libopjit-codegen" in path for path in loaded), loaded
for name in ("_opjit.abi3.so", "ops.pyi", "_opjit.pyi", "torch/__init__.py", "py.typed", "LICENSE", "THIRD-PARTY.txt"):
    assert os.path.exists(os.path.join(folder, "opjit", name)), name
END
rm -rf "$3"
