#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Check the code for each generation of GPUs on the GPU at hand. PTX for an older generation has that generation's
# kernels, and runs on all newer chips. The driver compiles it when it is first used, which takes minutes.
set -eu
cd "$(dirname "$0")/../.."

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || true
if [ -z "$capability" ]; then
    echo 'skipped: the generations of GPUs, because there is no GPU'
    exit 77
fi
for ptx in 75 80 90; do
    if [ "$ptx" -gt "$capability" ]; then
        echo "skipped: PTX for $ptx, because this GPU's compute capability times 10 is $capability"
        continue
    fi
    build=build-ptx$ptx
    [ -d "$build" ] || meson setup "$build" -Dgpu_arch="ptx$ptx"
    ninja -C "$build" tests/variants/check_variants
    "$build/tests/variants/check_variants" --cuda --quick
done
