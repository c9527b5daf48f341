#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Try the wheel and the archive of FOLDER in new roots of other releases of Debian or Ubuntu, which have nothing of
# gpuconv's:
#
#     packaging/try.sh FOLDER ROOT...     such as bullseye bookworm trixie focal jammy bionic
#     packaging/try.sh FOLDER musl        those of musl, in a root of busybox and musl, which has no glibc
#
# It runs as root and needs debootstrap. The roots are made in FOLDER/roots, unless they are there. The wheel is
# installed in a new environment with NumPy, whose wheel this machine's pip downloads. Where Python is older than 3.10,
# pip must refuse it, and only the archive is tried. Where glibc is older than 2.28, the archive must say so.
set -eu
cd "$(dirname "$0")/.."
work=/tmp sudo=
. .ci/functions
folder=$(realpath "$1")
shift
wheel=$(basename "$folder"/gpuconv-*manylinux*_x86_64.whl)

# No Python there, so the wheel's program stands for its package: both take their code from the library. One program is
# static and works without /proc; threads, locales and a missing library are as with glibc.
try_musl() {
    local root=$folder/roots/musl
    rm -rf "$root" "$root.apt"
    foreign_apt amd64 bookworm "$root.apt"
    (cd "$root.apt/archives" && $foreign download busybox-static musl)
    unpack_packages "$root.apt" "$root"
    mkdir "$root/srv" "$root/tmp"
    tar -xf "$folder"/gpuconv-*-linux-x86_64-static.tar.zst -C "$root/srv" --strip-components=1
    python3 -m zipfile -e "$folder"/gpuconv-*musllinux*_x86_64.whl "$root/srv/wheel"
    chmod +x "$root/srv/wheel/gpuconv/gpuconv"
    cp samples/cat.png "$root/srv/photo.png"
    cp samples/cat.png samples/rocket.jpg packaging/blur.digest "$root/srv"
    chroot "$root" /bin/busybox env -i LC_ALL=xx_YY.UTF-8 LD_LIBRARY_PATH=/srv/wheel/gpuconv /bin/busybox sh -e -c '
        cd /srv && ./gpuconv blur photo.png blurred.png && ./gpuconv --version && ./gpuconv --check blur.digest --filter blur --backend cpu
        ./gpuconv -q -j 4 --threads 8 median,gaussian:9,resize:50% photo.png cat.png rocket.jpg -o out
        wheel/gpuconv/gpuconv blur photo.png again.png && busybox cmp blurred.png again.png
        ./gpuconv --conformance | busybox tail -n 1
        ! ./gpuconv --tar -q blur photo.png - 2>refused && busybox grep "which a static program cannot load" refused'
    ! "$root/srv/gpuconv" --digest samples/cat.png 2>&1 >/dev/full | grep temporarily # which is not the reason
}

new_root() { # new_root RELEASE FOLDER
    case $1 in
    bionic | focal | jammy | noble)
        debootstrap --variant=minbase --components=main,universe "$1" "$2" "${UBUNTU-http://archive.ubuntu.com/ubuntu}"
        ;;
    *) debian_root "$1" "$2" ;;
    esac
    mkdir "$2/srv/a clone"
    in_root "$2" 'apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv zstd' >/dev/null
}

try_archive() { # the line of README, and the definition's vectors
    in_root "$1" 'cd /srv && rm -rf gpuconv-*-linux-x86_64 blurred.png && cp cat.png photo.png &&
        tar -xf gpuconv-*-linux-x86_64.tar.zst && gpuconv-*-linux-x86_64/gpuconv blur photo.png blurred.png &&
        cd gpuconv-*-linux-x86_64 && ./gpuconv --version && ./gpuconv --conformance | tail -n 1 &&
        cd .. && gpuconv-*-linux-x86_64/gpuconv --check blur.digest --filter blur --backend cpu'
}

old_glibc() { # the archive needs a newer one: the loader says which, before anything else happens
    tar -xf "$folder"/gpuconv-*-linux-x86_64.tar.zst -C "$1/srv"
    ! in_root "$1" '/srv/gpuconv-*-linux-x86_64/gpuconv --version' 2>&1 | tee "$folder/refused.log"
    grep 'GLIBC_2.28. not found' "$folder/refused.log"
}

try_wheel() { # its command and its package
    python3 -m pip download --quiet --only-binary :all: --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
        --python-version "$(in_root "$1" 'python3 -c "import sys; print(*sys.version_info[:2], sep=\".\")"')" --dest "$1/srv/numpy" numpy
    in_root "$1" "cd /srv && rm -rf venv && python3 -m venv venv &&
        venv/bin/pip install --quiet --no-index --find-links numpy $wheel && ln -sf \$PWD/venv/bin/gpuconv /usr/bin/gpuconv &&
        gpuconv --conformance | tail -n 1 && venv/bin/python -c \"
import gpuconv
gpuconv.write('cat.png', gpuconv.filter(gpuconv.read('cat.png'), 'blur'))\" &&
        gpuconv --check blur.digest"
}

refused() { # the wheel is for other Pythons, or for another C library, and pip says so
    ! in_root "$1" "cd /srv && python3 -m venv venv && venv/bin/pip install --no-index --no-deps --target other $wheel" 2>&1 |
        tee "$folder/refused.log"
    grep -E 'not a supported wheel|requires a different Python' "$folder/refused.log"
}

for release; do
    [ "$release" != musl ] || { try_musl; continue; }
    root=$folder/roots/$release
    [ -d "$root" ] || { mkdir -p "$folder/roots" && new_root "$release" "$root"; }
    cp "$folder/$wheel" "$folder"/gpuconv-*-linux-x86_64.tar.zst samples/cat.png packaging/blur.digest "$root/srv"
    glibc=$(in_root "$root" 'ldd --version' | sed -n '1s/.* //p')
    echo "== $release, glibc $glibc: the archive"
    if [ "$(printf '2.28\n%s\n' "$glibc" | sort -V | head -n 1)" = 2.28 ]; then
        try_archive "$root"
    else
        old_glibc "$root"
    fi
    echo "== $release: the wheel"
    if in_root "$root" 'python3 -c "import sys; sys.exit(sys.version_info < (3, 10))"'; then
        try_wheel "$root"
    else
        refused "$root"
    fi
done
