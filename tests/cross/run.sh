#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Build gpuconv for another processor with Debian's cross compiler, and test it under QEMU:
#
#     tests/cross/run.sh aarch64|s390x GPUCONV FOLDER [--build]
#
# GPUCONV is this machine's program. The other one must write the same bytes. FOLDER becomes new. With --build,
# nothing is tested, and a second call with the same FOLDER tests. The other architecture's libraries are unpacked
# there, so this machine's packages stay as they are. The unit tests that take long under QEMU are left out: the batches
# and the vectors of docs/spec take their ways.
#
# Or run GPUCONV, which is in a build folder, as on an older x86-64 processor, with a part of the tests of that folder:
#
#     tests/cross/run.sh sse2|avx2 GPUCONV FOLDER [OPTIONS OF meson test]     # such as --suite cli, for all of it
#
# Some of the suite scheduling fail there: they watch the threads of the program, which are QEMU's, or their time.
set -eu
tests='container deflate exif image jpeg_forward library linear plan png_filter png_rows variants'
emulator=qemu-$1
case $1 in
aarch64) debian=arm64 endian=little variants='--cpu --quick --share 601' ;;
s390x) # slower: the unit tests that depend on the order of bytes; rows of PNGs are in the batches
    debian=s390x endian=big variants=
    tests='container deflate exif image jpeg_forward library' ;;
sse2 | avx2)
    tests='deflate jpeg_forward linear variants alpha borders chain compare depth digest formats gradients instruction-set
        jpeg-output pnm tiff webp'
    emulator='qemu-x86_64 -cpu qemu64,-sse3' # what every x86-64 processor has
    [ "$1" = sse2 ] || # one of 2013, without what QEMU does not have and warns about
        emulator='qemu-x86_64 -cpu Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid' ;;
*) echo 'usage: tests/cross/run.sh aarch64|s390x|sse2|avx2 GPUCONV FOLDER [--build | OPTIONS]' >&2; exit 2 ;;
esac
cpu=$1 triplet=$1-linux-gnu native=$(realpath "$2")
[ -e "$3/built" ] || mkdir "$3"
folder=$(realpath "$3") sysroot=$(realpath "$3")/sysroot
build=$folder/build
cd "$(dirname "$0")/../.."

# The libraries of packaging/install-packages and what they need.
unpack() {
    local libraries
    libraries=$(sed -n "/^build=/,/'\$/p" packaging/install-packages | grep -o '[a-z0-9]*-dev')
    . packaging/apt.sh
    foreign_apt "$debian" "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$folder/apt"
    $foreign install -y --download-only --no-install-recommends $libraries
    unpack_packages "$folder/apt" "$sysroot"
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
crop:60%:bottom,turn:90,pad:999x999:#f80
--depth 16 --format png mirror:y,cover:90x70
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
    for number in 30 60 100; do # the decoder makes it 1/8, 1/4 and 1/2 as large
        "$1" -q --codec parallel-jpeg "thumbnail:${number}x" samples/rocket.jpg "$2/rocket-$number.jpg"
    done
    "$1" -q -r sharpen tests/data/pngsuite -o "$2/pngsuite" 2>/dev/null || true # it has damaged files
}

cross_build() {
    unpack
    cat >"$folder/constants.ini" <<END
[constants]
cpu = '$cpu'
triplet = '$triplet'
endian = '$endian'
sysroot = '$sysroot'
END
    meson setup "$build" --cross-file "$folder/constants.ini" --cross-file tests/cross/debian.ini -Dwerror=true \
        -Dcuda=disabled
    ninja -C "$build" gpuconv ${variants:+tests/variants/check_variants} \
        $(for test in $tests; do find tests/unit codecs/tests -name "test_$test.c"; done | sed 's/\.c$//')
    touch "$folder/built"
}

cross_test() {
    meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 10 --suite unit $tests
    [ -z "$variants" ] || "qemu-$cpu" "$build/tests/variants/check_variants" $variants
}

# emulated PROGRAM: a script in run/ that runs this program of the build under QEMU
emulated() {
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$emulator" "$build/$1" >"$folder/run/${1##*/}"
    chmod +x "$folder/run/${1##*/}"
}

# build_tests OPTIONS...: tests of a build of this machine's, whose programs run under QEMU
build_tests() {
    emulated tests/gpuconv-stub
    cat >"$folder/run/command" <<END
#!/bin/bash
words=()
for word; do
    if [ -f "\$word" ] && [[ \$* != */pages.py* ]]; then # which looks for the build folder beside gpuconv
        case \$word in
        */gpuconv | */gpuconv-stub) word=$folder/run/\${word##*/} ;;
        */unit/test_* | */codecs/tests/*/test_*) words=($emulator) ;;
        esac
    fi
    words+=("\$word")
done
exec "\${words[@]}"
END
    chmod +x "$folder/run/command"
    meson test -C "$build" --print-errorlogs --timeout-multiplier 10 --wrapper "$folder/run/command" "$@"
}

case $cpu in
aarch64 | s390x)
    export QEMU_LD_PREFIX=$sysroot # Meson runs one program
    [ -e "$folder/built" ] || cross_build
    [ "${4-}" != --build ] || exit 0 ;;
esac
mkdir "$folder/run"
pictures "$native" "$folder/native" &
pictures=$!
case $cpu in
sse2 | avx2)
    build=$(dirname "$native")
    [ $# -gt 3 ] || set -- "$@" $tests
    emulated gpuconv
    build_tests "${@:4}" ;;
*)
    cross_test
    emulated gpuconv ;;
esac
# The test `pages` compares all vectors with each instruction set of this machine. Here only the instructions and the
# order of bytes are others, in loops and in what calls them. A quarter of the vectors is enough for that.
vectors=$folder/vectors.jsonl
sed -n '1~4p' docs/spec/vectors.jsonl >"$vectors"
case $cpu in sse2 | avx2) export GPUCONV_CPU=$cpu ;; esac
{ "$folder/run/gpuconv" --conformance "$vectors" && tests/golden/golden.py "$folder/run/gpuconv" cpu; } &
golden=$!
pictures "$folder/run/gpuconv" "$folder/other"
wait $pictures
diff -r "$folder/native" "$folder/other"
echo "$(find "$folder/other" -type f | wc -l) files have the same bytes"
wait $golden
