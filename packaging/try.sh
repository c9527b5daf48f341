#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Try the wheel and the archive of FOLDER in new roots of other releases of Debian, which have nothing of gpuconv's:
#
#     packaging/try.sh FOLDER ROOT...     such as bullseye bookworm trixie
#
# It runs as root and needs debootstrap. The roots are made in FOLDER/roots, unless they are there. The wheel is
# installed in a new environment with NumPy, whose wheel this machine's pip downloads. Where Python is older than 3.10,
# pip must refuse it, and only the archive is tried.
set -eu
cd "$(dirname "$0")/.."
work=/tmp sudo=
. .ci/functions
folder=$(realpath "$1")
shift
wheel=$(basename "$folder"/gpuconv-*manylinux*_x86_64.whl)

try_archive() { # the line of README, in the root
    in_root "$1" 'cd /srv && rm -rf gpuconv-*-linux-x86_64 && tar -xf gpuconv-*-linux-x86_64.tar.zst &&
        gpuconv-*-linux-x86_64/gpuconv --version &&
        gpuconv-*-linux-x86_64/gpuconv --check blur.digest --filter blur --backend cpu'
}

try_wheel() { # its command and its package
    python3 -m pip download --quiet --only-binary :all: --platform manylinux_2_28_x86_64 --dest "$1/srv/numpy" numpy \
        --python-version "$(in_root "$1" 'python3 -c "import sys; print(*sys.version_info[:2], sep=\".\")"')"
    in_root "$1" "cd /srv && rm -rf venv && python3 -m venv venv &&
        venv/bin/pip install --quiet --no-index --find-links numpy $wheel && ln -sf \$PWD/venv/bin/gpuconv /usr/bin/gpuconv &&
        gpuconv --check blur.digest --filter blur --backend cpu && venv/bin/python -c \"
import gpuconv
gpuconv.write('cat.png', gpuconv.filter(gpuconv.read('cat.png'), 'blur'))\" &&
        gpuconv --check blur.digest"
}

refused() { # the wheel is for other Pythons, or for another C library, and pip says so
    ! in_root "$1" "cd /srv && $2 install --no-index --no-deps --target other $wheel" 2>&1 | tee "$folder/refused.log"
    grep -E 'not a supported wheel|requires a different Python' "$folder/refused.log"
}

for release; do
    root=$folder/roots/$release
    [ -d "$root" ] || { mkdir -p "$folder/roots" && debian_root "$release" "$root"; }
    mkdir -p "$root/srv/a clone"
    in_root "$root" 'apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv zstd' >/dev/null
    cp "$folder/$wheel" "$folder"/gpuconv-*-linux-x86_64.tar.zst samples/cat.png packaging/blur.digest "$root/srv"
    echo "== $release: the archive"
    try_archive "$root"
    echo "== $release: the wheel"
    if in_root "$root" 'python3 -c "import sys; sys.exit(sys.version_info < (3, 10))"'; then
        try_wheel "$root"
    else
        in_root "$root" 'cd /srv && python3 -m venv venv'
        refused "$root" venv/bin/pip
    fi
done
