#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python_wheel.sh <source folder> <work folder> - the wheel that pip makes of frontend/hosts/python, with PyPI's LLVM
# (mlc-llvm-static) linked in: installed in a folder of its own, without the build's libraries, it passes
# test_python.py.  It takes 60 MB from PyPI, so it runs where OPJIT_INSTALL_TORCH is set, as in the preset `models`.
set -eu

source=$1
work=$2
python="$source/build/python/bin/python"
if [ ! -x "$python" ]; then
    echo "skipped: no build/python: .ci/setup test installs it"
    exit 77
fi
if [ -z "${OPJIT_INSTALL_TORCH:-}" ]; then
    echo "skipped: it takes LLVM from PyPI: the preset models does"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work"
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps -d "$work/tried" scikit-build-core; then
    echo "skipped: PyPI can't be had"
    exit 77
fi
unset OPJIT_CODEGEN OPJIT_DEVICE OPJIT_CACHE_DIR OPJIT_INSTALL_TORCH
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$work" "$source/frontend/hosts/python"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/package" "$work"/opjit-*.whl
bytes=$(stat -c %s "$work"/opjit-*.whl)
echo "the wheel has $bytes bytes"
[ "$bytes" -lt 25000000 ]
OPJIT_PYTHON="$python" sh "$source/tests/hosts/python.sh" "$work/package"
rm -rf "$work"
