#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# torch.sh <folder> - the tests of torch.compile(backend="opjit"), with the package that was put together in the folder.
# Needs Python 3.11 or later with PyTorch: OPJIT_PYTHON's, that of .ci/setup test, or any; else, with
# OPJIT_INSTALL_TORCH=1 as the preset `models` has it, PyTorch is installed from PyPI (tests/requirements-torch.txt, 3
# GB) into the folder `pypi-torch` of the build, where it is kept.  Tests run in the folder of the build: a folder
# `torch` there would be a package of that name to every Python that is started with -c.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
packages=$PWD/pypi-torch
export PYTHONPATH="$1:$packages" PYTHONDONTWRITEBYTECODE=1

find_python() # of those with the module
{
    for python in "${OPJIT_PYTHON:-}" "$here/../../build/python/bin/python" python3; do
        if [ -n "$python" ] && "$python" -c "import sys, $1; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

if ! find_python torch; then
    if [ "${OPJIT_INSTALL_TORCH:-}" != 1 ]; then
        echo "skipped: no Python 3.11 with PyTorch: the preset models installs one"
        exit 77
    fi
    if ! find_python pip; then
        echo "skipped: no Python 3.11 with PyTorch, or with pip, which could install it"
        exit 77
    fi
    rm -rf "$packages"
    if ! "$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --timeout 30 --retries 1 \
        --target "$packages.part" -r "$here/../requirements-torch.txt"; then
        rm -rf "$packages.part"
        echo "skipped: no Python with PyTorch, and it can't be had from PyPI"
        exit 77
    fi
    mv "$packages.part" "$packages"
fi
for test in "$here"/torch_backend/test_*.py; do
    "$python" "$test"
done
