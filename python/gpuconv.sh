#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command of a wheel: the program is in the Python package, beside the library that has its code. The last path is
# that of `pip install --target`.
folder=$(dirname "$(readlink -f "$0")")
for program in "$folder"/../lib*/python3*/*-packages/gpuconv/gpuconv "$folder/../gpuconv/gpuconv"; do
    if [ -x "$program" ]; then exec "$program" "$@"; fi
done
echo "gpuconv: there is no Python package gpuconv for $0; install it again: pip install --force-reinstall gpuconv" >&2
exit 1
