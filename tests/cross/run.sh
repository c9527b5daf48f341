#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Build gpuconv for another processor with Debian's cross compiler, and test it under QEMU:
#
#     tests/cross/run.sh aarch64|s390x GPUCONV FOLDER
#
# GPUCONV is this machine's program. The other one must write the same bytes. FOLDER becomes new. The other
# architecture's libraries are unpacked there, so this machine's packages stay as they are. The unit tests that take
# minutes under QEMU are left out: the stream and the pipeline run in the batches instead, and filters in both.
set -eu
tests='container deflate exif image jpeg_decode jpeg_encode jpeg_forward library linear plan png_filter png_rows
    variants'
case $1 in
aarch64) debian=arm64 endian=little without= variants='--cpu --quick --share 293' ;;
s390x) # slower: the unit tests that depend on the order of bytes; rows of PNGs are in the batches
    debian=s390x endian=big without=libisal-dev variants=
    tests='container deflate exif image jpeg_forward library' ;;
*) echo 'usage: tests/cross/run.sh aarch64|s390x GPUCONV FOLDER' >&2; exit 2 ;;
esac
cpu=$1 triplet=$1-linux-gnu native=$(realpath "$2")
mkdir "$3"
folder=$(realpath "$3") sysroot=$(realpath "$3")/sysroot
cd "$(dirname "$0")/../.."

# The libraries of install-packages and what they need, from the mirror that apt uses here, without a change to apt's own
# folders. Debian has no libisal for s390x.
unpack() {
    local mirror name apt package libraries
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        head -n 1)
    name=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mkdir -p "$sysroot" "$folder/apt/lists/partial" "$folder/apt/archives/partial"
    touch "$folder/apt/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $name main" >"$folder/apt/sources.list"
    apt="apt-get -qq -o APT::Architecture=$debian -o APT::Architectures::=$debian -o Dir::State=$folder/apt
        -o Dir::State::status=$folder/apt/status -o Dir::Cache=$folder/apt
        -o Dir::Etc::sourcelist=$folder/apt/sources.list -o Dir::Etc::sourceparts=/dev/null"
    libraries=$(sed -n "/^build=/,/'\$/p" install-packages | grep -o '[a-z0-9]*-dev')
    $apt update
    $apt install -y --download-only --no-install-recommends ${libraries/$without/}
    for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
    [ -e "$sysroot/lib" ] || ln -s usr/lib "$sysroot/lib" # Debian 13
    # libm.so is a link to /lib/TRIPLET/libm.so.6, which this machine may lack; then libm.a would be taken.
    find "$sysroot" -type l -lname '/*' -printf '%l\n%p\n' | while read -r target && read -r link; do
        ln -sfn "$sysroot$target" "$link"
    done
}

# pictures GPUCONV FOLDER: each kind of loop on PNG and JPEG, with several borders, depths and ways to write
pictures() {
    local options number=0
    mkdir "$2"
    while read -r options; do
        number=$((number + 1))
        "$1" -q $options samples/*.png samples/*.jpg -o "$2/$number"
    done <<END
blur
sharpen
--border wrap gaussian9
--border zero motion:21:30
--border reflect gaussian:2
gaussian:12
box:64
unsharp:1.5:0.8:3
sobel
--abs laplacian
gaussian:1,edge,emboss
--depth 16 --format png gaussian9
--depth 16 --format png sobel
--depth 16 --format pnm gaussian:4
--linear gaussian:4
--linear --format pnm sharpen
--threads 3 --quality 75 --subsampling 420 identity
--threads 3 --format jpg --subsampling 422 blur
--threads 3 --format jpg --subsampling 444 --quality 98 blur
--format jpg --subsampling 440 --progressive blur
--format jpg --subsampling 411 blur
--format png --compression 6 blur
--format png --compression 9 identity
END
    "$1" -q --codec parallel-jpeg blur samples/rocket.jpg "$2/rocket.jpg" # libjpeg-turbo would read so few pixels
    "$1" -q -r sharpen tests/data/pngsuite -o "$2/pngsuite" 2>/dev/null || true # it has damaged files
}

unpack
cat >"$folder/constants.ini" <<END
[constants]
cpu = '$cpu'
triplet = '$triplet'
endian = '$endian'
sysroot = '$sysroot'
END
export QEMU_LD_PREFIX=$sysroot
meson setup "$folder/build" --cross-file "$folder/constants.ini" --cross-file tests/cross/debian.ini -Dwerror=true \
    -Dcuda=disabled
ninja -C "$folder/build" gpuconv ${variants:+tests/variants/check_variants} $(printf 'tests/unit/test_%s ' $tests)
meson test -C "$folder/build" --no-rebuild --print-errorlogs --timeout-multiplier 10 --suite unit $tests
[ -z "$variants" ] || "qemu-$cpu" "$folder/build/tests/variants/check_variants" $variants

mkdir "$folder/run"
printf '#!/bin/sh\nexec qemu-%s "%s" "$@"\n' "$cpu" "$folder/build/gpuconv" >"$folder/run/gpuconv"
chmod +x "$folder/run/gpuconv"
tests/golden/golden.py "$folder/run/gpuconv" cpu
pictures "$native" "$folder/native"
pictures "$folder/run/gpuconv" "$folder/other"
diff -r "$folder/native" "$folder/other"
echo "$(find "$folder/other" -type f | wc -l) files have the same bytes"
