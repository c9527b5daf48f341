#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Build gpuconv for each Linux with glibc 2.28 or later: one wheel for all versions of Python, and an archive. Or a wheel
# for musl 1.2, as Alpine Linux has it, and an archive with one static program, which needs no C library: any Linux runs it.
#
#     packaging/portable.sh x86_64|aarch64|x86_64-musl|aarch64-musl FOLDER
#
# The files are made in FOLDER, which may exist; FOLDER/portable-FIRST-WORD becomes new, and can be deleted later. It
# runs on Debian 12 with advancecomp, cmake, nasm, qemu-user, unzip and zstd, downloads packages of Debian and the tools of
# packaging/tools.txt, and changes nothing outside FOLDER. The glibc that is linked is Debian 11's, and the musl is
# Debian 12's, with Debian's compiler for glibc. The codecs' libraries are built from Debian 12's sources, with its
# security fixes. They are static, so that nothing but the C library must be installed.
#
# OPTIMIZATION=0 builds sooner, for tests; OTHER_CODECS=disabled leaves libtiff and libwebp out. After an interruption, the
# same command goes on where it stopped.
#
# With CUDA=enabled, the files for glibc have GPU code for $GPU_ARCH, which takes long: machine code for 7.5 to 9.0 (for
# aarch64 9.0, as Grace has it), and PTX, which the driver of a later GPU compiles when it is first used. nvcc is version
# 12.4 of Debian 13, whatever is installed, because programs of CUDA 12 run with drivers from 525 on, and those of CUDA 13
# from 580 on. Only drivers of CUDA 12.4 or later compile its PTX, and the GPUs that need it have no older driver: that of
# 10.0 began with CUDA 12.8. For aarch64 it needs g++-aarch64-linux-gnu.
set -eu
umask 022
export LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH-315532800}"
case ${1-} in
x86_64 | x86_64-musl) debian=amd64 gpu_arch=75,80,90,ptx90 ;;
aarch64 | aarch64-musl) debian=arm64 gpu_arch=90,ptx90 ;;
*) sed -n '4,7s/^# \?//p' "$0" >&2; exit 2 ;;
esac
cpu=${1%-musl} triplet=${1%-musl}-linux-gnu
mkdir -p "$2"
folder=$(realpath "$2") work=$(realpath "$2")/portable-$1
sysroot=$work/sysroot
cd "$(dirname "$0")/.."
. packaging/apt.sh
name=gpuconv-$(sed -n "s/^  version: '\(.*\)',\$/\1/p" meson.build)
if [ "$1" = "$cpu" ]; then
    musl='' libc_args='' libc_link_args=''
    wheel=$folder/$name-py3-none-manylinux_2_28_$cpu.whl name=$name-linux-$cpu
else # the headers of musl before those of the compiler, and no function of libgcc that asks glibc for the processor
    musl=$cpu-linux-musl CUDA=disabled
    wheel=$folder/$name-py3-none-musllinux_1_2_$cpu.whl name=$name-linux-$cpu-static
    libc_args="-isystem $sysroot/usr/include/$musl -B$sysroot/usr/lib/$triplet -L$sysroot/usr/lib/$triplet"
    [ "$cpu" = x86_64 ] || libc_args="$libc_args -mno-outline-atomics"
    libc_link_args="-static-libgcc -Wl,--dynamic-linker=/lib/ld-musl-$cpu.so.1"
fi
# Paths are not in the files: not in debug information, not in the names that assert() prints.
flags="--sysroot=$sysroot -O${OPTIMIZATION-2} -fPIC -ffile-prefix-map=$work=. -fstack-protector-strong"
flags="$flags -ffunction-sections -fdata-sections $libc_args" # the linker leaves out functions that nobody calls

download() { # the C library, the headers of what is loaded when it is used, and the sources of the libraries
    if [ -z "$musl" ]; then
        foreign_apt $debian bullseye "$work/old"
        (cd "$work/old/archives" && $foreign download libc6 libc6-dev libcrypt1 linux-libc-dev)
        unpack_packages "$work/old" "$sysroot"
    fi
    foreign_apt $debian bookworm "$work/apt" 'deb deb-src'
    (cd "$work/apt/archives" &&
        $foreign download ${musl:+musl musl-dev linux-libc-dev} libarchive-dev libheif-dev liblcms2-dev libstb-dev)
    unpack_packages "$work/apt" "$sysroot"
    if [ -n "$musl" ]; then # where the compiler for glibc looks
        mv "$sysroot/usr/lib/$musl"/*.[ao] "$sysroot/usr/lib/$triplet"
        ln -s "$sysroot/lib/$musl/libc.so" "$sysroot/usr/lib/$triplet"
    fi
    # libarchive, libheif and littleCMS are not linked: their static libraries and what they need are left out.
    sed -i '/^Requires\.private\|^Libs/d' "$sysroot/usr/lib/$triplet/pkgconfig"/{libarchive,libheif,lcms2}.pc
    mkdir "$work/sources"
    (cd "$work/sources" && $foreign source --dsc-only libstb ${musl:+musl} &&
        $foreign source -y zlib libzstd libdeflate libjpeg-turbo libwebp tiff jansson libmd ${musl:+mimalloc})
    mkdir "$work/licences"
    cp "$sysroot/usr/share/doc/libstb-dev/copyright" "$work/licences/stb.txt"
    [ -z "$musl" ] || cp "$sysroot/usr/share/doc/musl-dev/copyright" "$work/licences/musl.txt"
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
    local job others=${OTHER_CODECS-enabled}
    export PKG_CONFIG_LIBDIR=$sysroot/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$sysroot
    (
        (cd "$work"/sources/libmd-*/ && ./configure --host="$triplet" CFLAGS="$flags" --prefix=/usr \
            --disable-shared && make -j "$(nproc)" && make install DESTDIR="$sysroot")
        [ "$others" = disabled ] || cmake_library libwebp -DWEBP_BUILD_{ANIM_UTILS,CWEBP,DWEBP,GIF2WEBP,IMG2WEBP,VWEBP,WEBPINFO,WEBPMUX,EXTRAS}=OFF
        cmake_library jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON
        python3 -m venv "$work/tools"
        "$work/tools/bin/pip" install --quiet -r packaging/tools.txt
    ) &
    job=$!
    [ "$others" = disabled ] || (cd "$work"/sources/zlib-*/ && CC="$triplet-gcc" CFLAGS=$flags ./configure --static --prefix=/usr &&
        make -j "$(nproc)" libz.a && make install DESTDIR="$sysroot")
    [ "$others" = disabled ] || make -C "$work"/sources/libzstd-*/lib -j "$(nproc)" CC="$triplet-gcc" CFLAGS="$flags" PREFIX=/usr \
        DESTDIR="$sysroot" ZSTD_LEGACY_SUPPORT=0 ZSTD_LIB_DICTBUILDER=0 install-static install-includes install-pc
    make -C "$work"/sources/libdeflate-*/ -j "$(nproc)" CC="$triplet-gcc" CFLAGS="$flags" PREFIX=/usr \
        DESTDIR="$sysroot" DISABLE_SHARED=1 install
    cmake_library libjpeg-turbo -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON
    [ "$others" = disabled ] || cmake_library tiff -Dtiff-{tools,tests,contrib,docs}=OFF -Dcxx=OFF -D{jbig,lerc,lzma,webp}=OFF
    # musl's malloc asks the kernel for each block of 128 KiB: small photos would take twice the time.
    if [ -n "$musl" ]; then
        # shellcheck disable=SC2086 # words
        "$triplet-gcc" -c $flags -ftls-model=initial-exec -fno-builtin-malloc -DNDEBUG -DMI_MALLOC_OVERRIDE -D__USE_ISOC11 \
            -I "$(echo "$work"/sources/mimalloc-*/include)" "$work"/sources/mimalloc-*/src/static.c -o "$work/mimalloc.o"
        "$triplet-gcc-ar" -rcsD "$sysroot/usr/lib/$triplet/libmimalloc.a" "$work/mimalloc.o"
    fi
    wait "$job"
    unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
}

# nvcc for this machine and the CUDA runtime for the other one, as a folder that is like the one of NVIDIA's installer. A
# gigabyte is downloaded, most of it libraries that stay packed.
cuda() {
    local root=$work/cuda/root bin=$work/cuda/root/usr/lib/nvidia-cuda-toolkit/bin
    foreign_apt amd64 trixie "$work/cuda" deb non-free
    (cd "$work/cuda/archives" && $foreign download nvidia-cuda-toolkit)
    foreign_apt $debian trixie "$work/cudart" deb 'main contrib non-free'
    (cd "$work/cudart/archives" && $foreign download nvidia-cuda-dev libcu++-dev)
    dpkg-deb -x "$work"/cuda/archives/nvidia-cuda-toolkit_*.deb "$root"
    dpkg-deb -x "$work"/cudart/archives/libcu++-dev_*.deb "$root" # CUDA's headers include nv/target
    dpkg-deb --fsys-tarfile "$work"/cudart/archives/nvidia-cuda-dev_*.deb |
        tar -x -C "$root" --wildcards './usr/include/*' '*/libcudart_static.a'
    rm -f "$work"/cuda{,rt}/archives/*.deb "$bin"/{gcc,g++,nvcc.profile} # the first two prefer gcc 13
    ln -sfn "../$triplet" "$bin/../lib64"
    cat >"$bin/nvcc.profile" <<END
NVVMIR_LIBRARY_DIR = $bin/../libdevice
PATH += $bin:$root/usr/bin:
INCLUDES += -I$root/usr/include
END
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

quoted() { # quoted WORD...: as Meson writes a list
    [ $# -eq 0 ] || printf "'%s'," "$@"
}

# The wheel has the program, the library and the man page. auditwheel checks what they need of glibc, and names it after
# that.
wheel() {
    cat >"$work/constants.ini" <<END
[constants]
cpu = '$cpu'
triplet = '$triplet'
endian = 'little'
sysroot = '$sysroot'
END
    # shellcheck disable=SC2086 # words
    cat >>"$work/constants.ini" <<END
libc_args = [$(quoted $libc_args)]
libc_link_args = [$(quoted $libc_link_args)]
END
    local option options=(--cross-file "$work/constants.ini" --cross-file "$PWD/tests/cross/debian.ini"
        --cross-file "$PWD/packaging/portable.ini" "-Dcuda=${CUDA-disabled}"
        ${OPTIMIZATION+"-Doptimization=$OPTIMIZATION"} "-Dgpu_arch=${GPU_ARCH-$gpu_arch}"
        -D{heif,jpeg,lcms,tar}=enabled "-D"{tiff,webp}"=${OTHER_CODECS-enabled}" "-Dlicences=$work/licences")
    for option in "${options[@]}"; do set -- "$@" "-Csetup-args=$option"; done
    export PATH=$work/tools/bin:$work/cuda/root/usr/lib/nvidia-cuda-toolkit/bin:$PATH
    export QEMU_LD_PREFIX=$sysroot NVCC_PREPEND_FLAGS="-ccbin $triplet-g++" # Meson runs one program
    _PYTHON_HOST_PLATFORM=linux-$cpu pip wheel --no-deps --no-build-isolation -Cbuild-dir="$work/build" "$@" \
        --wheel-dir "$work/wheel" .
    python -m wheel tags --remove --python-tag py3 --abi-tag none "$work"/wheel/*.whl # it has no extension module
    if [ -n "$musl" ]; then # auditwheel looks for the libraries on this machine, and musl has no versions of symbols
        python -m wheel tags --remove --platform-tag "musllinux_1_2_$cpu" "$work"/wheel/*.whl
        mv "$work"/wheel/*.whl "$folder"
    else
        auditwheel repair --only-plat --wheel-dir "$folder" "$work"/wheel/*.whl # it knows this name only for its own processor
    fi
    if ! unzip -q "$wheel" -d "$work/unpacked"; then
        echo "the wheel needs a glibc after 2.28: 'auditwheel show' says why; add the function to old_glibc.c" >&2
        exit 1
    fi
    advzip -z -3 -q "$wheel" # the same files in less space
}

# The files of the wheel, as one folder that may lie anywhere: gpuconv finds its library beside it, or is static.
archive() {
    mkdir "$work/$name"
    cp -r "$work"/unpacked/*.data/data/share LICENSE NEWS.md README.md packaging/completions "$work/$name"
    if [ -n "$musl" ]; then
        ninja -C "$work/build" gpuconv-static
        cp "$work/build/gpuconv-static" "$work/$name/gpuconv"
    else
        cp "$work"/unpacked/gpuconv/{gpuconv,libgpuconv.so.0} src/library/gpuconv.h "$work/$name"
        mkdir "$work/$name/share/man/man3"
        cp docs/gpuconv.3 "$work/$name/share/man/man3"
    fi
    chmod 755 "$work/$name/gpuconv"
    rm "$work/$name/completions/meson.build"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
        zstd -19 -T1 -q --force -o "$folder/$name.tar.zst"
    packaging/sbom.py "$work/build" --sources "$work/sources" "$folder/$name.tar.zst" "$wheel" \
        >"$folder/$name.spdx.json"
}

# auditwheel allows libz, libstdc++ and others too, which a small container lacks. What people download stays small.
check() {
    if readelf -d "$work"/unpacked/gpuconv/{gpuconv,libgpuconv.so.0} | grep NEEDED |
        grep -Ev '\[(lib(c|dl|gpuconv|m|pthread|rt)\.so\.[0-9]|ld-linux-[a-z0-9-]+\.so\.[0-9]|libc\.so)\]$'; then
        echo "the wheel needs more than the C library: link the libraries above statically" >&2
        exit 1
    fi
    # musl calls no functions that choose a function, so the first call of one would end the program.
    if [ -n "$musl" ] && { readelf -ldW "$work/$name/gpuconv" | grep -E 'INTERP|NEEDED' ||
        readelf -rW "$work/$name/gpuconv" "$work/unpacked/gpuconv/libgpuconv.so.0" | grep IRELATI; }; then
        echo "the static program needs the files above, or what only glibc's loader does" >&2
        exit 1
    fi
    if [ -n "$(find "$folder" -maxdepth 1 -name "gpuconv-*$cpu*" -size +20000000c)" ]; then
        echo "the wheel or the archive is larger than 20 MB: leave out GPU code, by GPU_ARCH" >&2
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
made_by="$(cat packaging/{portable,apt}.sh packaging/{old_glibc.c,tools.txt} | sha256sum) ${OPTIMIZATION-2} ${OTHER_CODECS-}
    $SOURCE_DATE_EPOCH"
if [ ! -e "$work/download.done" ] || [ "$(cat "$work/made_by")" != "$made_by" ]; then
    rm -rf "$work"
    mkdir -p "$work"
    printf '%s\n' "$made_by" >"$work/made_by"
fi
step download
[ -n "$musl" ] || step old_glibc
step libraries
[ "${CUDA-disabled}" = disabled ] || step cuda
rm -rf "$work"/{wheel,unpacked,gpuconv-*}
wheel
archive
check
rm "$work/download.done" # the next run begins anew
