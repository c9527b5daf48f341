#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Build gpuconv for each Linux with glibc 2.28 or later: one wheel for all versions of Python, and an archive.
#
#     packaging/portable.sh x86_64|aarch64 FOLDER
#
# The files are made in FOLDER, which may exist; FOLDER/portable-ARCHITECTURE becomes new, and can be deleted later. It
# runs on Debian 12 with advancecomp, cmake, nasm, qemu-user, unzip and zstd, downloads packages of Debian and the tools of
# packaging/tools.txt, and changes nothing outside FOLDER. The C library that is linked is Debian 11's. The codecs'
# libraries are built from Debian 12's sources, with its security fixes. They are static, so that nothing but glibc must
# be installed.
#
# OPTIMIZATION=0 builds sooner, for tests. After an interruption, the same command goes on where it stopped.
#
# With CUDA=enabled, GPU code for $GPU_ARCH is inside, which takes long: machine code for each generation that is used
# with x86-64, and PTX for 11.0, whose processors are ARM64, and for what comes. Machine code for 11.0 would make the
# files larger than 15 MB. It is for x86_64 only: nvcc for another processor would need that processor's CUDA.
set -eu
umask 022
export LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH-315532800}"
case ${1-} in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 CUDA=disabled ;;
*) sed -n '4,6s/^# \?//p' "$0" >&2; exit 2 ;;
esac
cpu=$1 triplet=$1-linux-gnu
mkdir -p "$2"
folder=$(realpath "$2") work=$(realpath "$2")/portable-$1
sysroot=$work/sysroot
cd "$(dirname "$0")/.."
. packaging/apt.sh
version=$(sed -n "s/^  version: '\(.*\)',\$/\1/p" meson.build)
# Paths are not in the files: not in debug information, not in the names that assert() prints.
flags="--sysroot=$sysroot -O${OPTIMIZATION-2} -fPIC -ffile-prefix-map=$work=. -fstack-protector-strong"
flags="$flags -ffunction-sections -fdata-sections" # the linker leaves out functions that nobody calls

download() { # glibc, the headers of what is loaded when it is used, and the sources of the libraries
    foreign_apt $debian bullseye "$work/old"
    (cd "$work/old/archives" && $foreign download libc6 libc6-dev libcrypt1 linux-libc-dev)
    unpack_packages "$work/old" "$sysroot"
    foreign_apt $debian bookworm "$work/apt" 'deb deb-src'
    (cd "$work/apt/archives" && $foreign download libarchive-dev libheif-dev liblcms2-dev libstb-dev)
    unpack_packages "$work/apt" "$sysroot"
    # libarchive, libheif and littleCMS are not linked: their static libraries and what they need are left out.
    sed -i '/^Requires\.private\|^Libs/d' "$sysroot/usr/lib/$triplet/pkgconfig"/{libarchive,libheif,lcms2}.pc
    mkdir "$work/sources"
    (cd "$work/sources" && $foreign source --dsc-only libstb &&
        $foreign source -y zlib libzstd libdeflate libjpeg-turbo libwebp tiff jansson libmd)
    mkdir "$work/licences"
    cp "$sysroot/usr/share/doc/libstb-dev/copyright" "$work/licences/stb.txt"
    for source in "$work"/sources/*/; do
        cp "$source/debian/copyright" "$work/licences/$(basename "${source%-*}").txt"
    done
}

cmake_library() { # cmake_library NAME OPTIONS...; libtiff asks for a compiler for C++, and uses none
    local name=$1
    shift
    cmake -S "$(echo "$work/sources/$name"-*/)" -B "$work/$name" \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$cpu" -DCMAKE_C_COMPILER="$triplet-gcc" \
        -DCMAKE_CXX_COMPILER="$triplet-gcc" -DCMAKE_CXX_COMPILER_FORCED=ON \
        -DCMAKE_SYSROOT="$sysroot" -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_FIND_ROOT_PATH="$sysroot" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
        -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-DNDEBUG \
        -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR:STRING=lib "$@"
    cmake --build "$work/$name" -j "$(nproc)"
    DESTDIR=$sysroot cmake --install "$work/$name"
}

# libtiff needs what is built before it. The others, and the tools, are made at the same time.
libraries() {
    local others
    export PKG_CONFIG_LIBDIR=$sysroot/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$sysroot
    (
        (cd "$work"/sources/libmd-*/ && ./configure --host="$triplet" CFLAGS="$flags" --prefix=/usr \
            --disable-shared && make -j "$(nproc)" && make install DESTDIR="$sysroot")
        cmake_library libwebp -DWEBP_BUILD_{ANIM_UTILS,CWEBP,DWEBP,GIF2WEBP,IMG2WEBP,VWEBP,WEBPINFO,WEBPMUX,EXTRAS}=OFF
        cmake_library jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON
        python3 -m venv "$work/tools"
        "$work/tools/bin/pip" install --quiet -r packaging/tools.txt
    ) &
    others=$!
    (cd "$work"/sources/zlib-*/ && CC="$triplet-gcc" CFLAGS=$flags ./configure --static --prefix=/usr &&
        make -j "$(nproc)" libz.a && make install DESTDIR="$sysroot")
    make -C "$work"/sources/libzstd-*/lib -j "$(nproc)" CC="$triplet-gcc" CFLAGS="$flags" PREFIX=/usr \
        DESTDIR="$sysroot" ZSTD_LEGACY_SUPPORT=0 ZSTD_LIB_DICTBUILDER=0 install-static install-includes install-pc
    make -C "$work"/sources/libdeflate-*/ -j "$(nproc)" CC="$triplet-gcc" CFLAGS="$flags" PREFIX=/usr \
        DESTDIR="$sysroot" DISABLE_SHARED=1 install
    cmake_library libjpeg-turbo -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON
    cmake_library tiff -Dtiff-{tools,tests,contrib,docs}=OFF -Dcxx=OFF -D{jbig,lerc,lzma,webp}=OFF
    wait "$others"
    unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
}

# What is linked with libm takes the functions of old_glibc.c from there.
old_glibc() {
    local folder=/usr/lib/$triplet
    # shellcheck disable=SC2086 # words
    "$triplet-gcc" -c $flags -fno-builtin -Wall -Wextra -Werror packaging/old_glibc.c -o "$work/old_glibc.o"
    "$triplet-gcc-ar" -rcsD "$sysroot$folder/libold_glibc.a" "$work/old_glibc.o"
    rm -f "$sysroot$folder/libm.so" # a script or a link
    echo "EXTERN(exp exp2 log log2 pow) INPUT($folder/libold_glibc.a /lib/$triplet/libm.so.6)" >"$sysroot$folder/libm.so"
}
# The wheel has the program, the library and the man page. auditwheel checks what they need, and names it after that.
wheel() {
    cat >"$work/constants.ini" <<END
[constants]
cpu = '$cpu'
triplet = '$triplet'
endian = 'little'
sysroot = '$sysroot'
END
    local option options=(--cross-file "$work/constants.ini" --cross-file "$PWD/tests/cross/debian.ini"
        --cross-file "$PWD/packaging/portable.ini" "-Dcuda=${CUDA-disabled}"
        ${OPTIMIZATION+"-Doptimization=$OPTIMIZATION"} "-Dgpu_arch=${GPU_ARCH-75,80,90,100,120,ptx100}"
        -D{heif,jpeg,lcms,tiff,webp,tar}=enabled "-Dlicences=$work/licences")
    for option in "${options[@]}"; do set -- "$@" "-Csetup-args=$option"; done
    export PATH=$work/tools/bin:$PATH QEMU_LD_PREFIX=$sysroot # Meson runs one program
    _PYTHON_HOST_PLATFORM=linux-$cpu pip wheel --no-deps --no-build-isolation -Cbuild-dir="$work/build" "$@" \
        --wheel-dir "$work/wheel" .
    python -m wheel tags --remove --python-tag py3 --abi-tag none "$work"/wheel/*.whl # it has no extension module
    auditwheel repair --only-plat --wheel-dir "$folder" "$work"/wheel/*.whl # it knows this name only for its own processor
    if ! unzip -q "$folder/gpuconv-$version-py3-none-manylinux_2_28_$cpu.whl" -d "$work/unpacked"; then
        echo "the wheel needs a glibc after 2.28: 'auditwheel show' says why; add the function to old_glibc.c" >&2
        exit 1
    fi
    advzip -z -3 -q "$folder/gpuconv-$version-py3-none-manylinux_2_28_$cpu.whl" # the same files in less space
}

# The files of the wheel, as one folder that may lie anywhere: gpuconv finds its library beside it.
archive() {
    local name=gpuconv-$version-linux-$cpu
    mkdir "$work/$name"
    cp -r "$work"/unpacked/gpuconv/{gpuconv,libgpuconv.so.0} "$work"/unpacked/*.data/data/share "$work/$name"
    cp -r LICENSE NEWS.md README.md packaging/completions src/library/gpuconv.h "$work/$name"
    mkdir "$work/$name/share/man/man3"
    cp docs/gpuconv.3 "$work/$name/share/man/man3"
    chmod 755 "$work/$name/gpuconv"
    rm "$work/$name/completions/meson.build"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
        zstd -19 -T1 -q --force -o "$folder/$name.tar.zst"
    packaging/sbom.py "$work/build" --sources "$work/sources" "$folder/$name.tar.zst" "$folder"/gpuconv-*_"$cpu".whl \
        >"$folder/$name.spdx.json"
}

# auditwheel allows libz, libstdc++ and others too, which a small container lacks. What people download stays small.
check() {
    if readelf -d "$work"/unpacked/gpuconv/{gpuconv,libgpuconv.so.0} | grep NEEDED |
        grep -Ev '\[(lib(c|dl|gpuconv|m|pthread|rt)\.so\.[0-9]|ld-linux-[a-z0-9-]+\.so\.[0-9])\]$'; then
        echo "the wheel needs more than glibc: link the libraries above statically" >&2
        exit 1
    fi
    if [ -n "$(find "$folder" -maxdepth 1 -name "gpuconv-*$cpu.*" -size +15000000c)" ]; then
        echo "the wheel or the archive is larger than 15 MB: leave out GPU code, by GPU_ARCH" >&2
        exit 1
    fi
}

step() { # step FUNCTION: call it, unless the run that was interrupted has done so
    if [ ! -e "$work/$1.done" ]; then
        "$1"
        touch "$work/$1.done"
    fi
}

# What is there is used again if it was made by the same scripts, and no run has come to its end. The sources may differ:
# Meson compiles what is new. The lock waits for what an interrupted run has left in the background.
exec 9>"$work.lock"
flock 9
made_by="$(cat packaging/{portable,apt}.sh packaging/{old_glibc.c,tools.txt} | sha256sum) ${OPTIMIZATION-2} $SOURCE_DATE_EPOCH"
if [ ! -e "$work/download.done" ] || [ "$(cat "$work/made_by")" != "$made_by" ]; then
    rm -rf "$work"
    mkdir -p "$work"
    printf '%s\n' "$made_by" >"$work/made_by"
fi
step download
step old_glibc
step libraries
rm -rf "$work"/{wheel,unpacked,gpuconv-*}
wheel
archive
check
rm "$work/download.done" # the next run begins anew
