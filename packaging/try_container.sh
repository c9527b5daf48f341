#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Try packaging/Containerfile with the archive in FOLDER, without a registry:
#
#     packaging/try_container.sh FOLDER
#
# It runs as root and needs buildah and debootstrap. A new Debian 12 is the base. `buildah run` is what `podman run` does,
# and needs no cgroups.
set -eu
cd "$(dirname "$0")/.."
work=/tmp sudo=
. .ci/functions
folder=$(realpath "$1")
export BUILDAH_ISOLATION=chroot

# The image gpuconv-base; its size is left in $size.
base() {
    local container root
    [ -d "$folder/base" ] || debian_root bookworm "$folder/base"
    container=$(buildah from scratch)
    root=$(buildah mount "$container")
    cp -a "$folder/base/." "$root"
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*
    size=$(du -sxk "$root" | cut -f 1)
    buildah commit --quiet --rm "$container" localhost/gpuconv-base
}

program() { # program WORDS...: the entry point with them, in a folder of the host
    buildah run --volume "$folder/photos:/work" "$container" -- \
        "$(buildah inspect --format '{{index .OCIv1.Config.Entrypoint 0}}' "$container")" "$@"
}

base
rm -rf "$folder/photos"
mkdir -p "$folder/context" "$folder/photos"
ln -f "$folder"/gpuconv-*-linux-"$(uname -m)".tar.zst "$folder/context"
buildah bud --build-arg BASE=localhost/gpuconv-base --build-arg BUILD=localhost/gpuconv-base \
    --tag localhost/gpuconv-try -f packaging/Containerfile "$folder/context"
container=$(buildah from localhost/gpuconv-try)
trap 'buildah rm "$container"' EXIT
size=$((($(du -sxk "$(buildah mount "$container")" | cut -f 1) - size) / 1024))
echo "$size MB beside the base"
[ "$size" -lt 60 ]
cp samples/cat.png packaging/blur.digest "$folder/photos"
chmod 777 "$folder/photos"
tar -cf "$folder/photos/cat.tar" -C samples cat.png
program --version
program --check blur.digest --filter blur --backend cpu
program --backend cpu --tar blur cat.tar blurred.tar
program --backend cpu blur cat.png blurred.png
[ "$(stat -c %u "$folder/photos/blurred.png")" -eq 65534 ]
tar -xOf "$folder/photos/blurred.tar" cat.png | cmp - "$folder/photos/blurred.png"
buildah run "$container" -- sh -c '[ "$NVIDIA_VISIBLE_DEVICES $NVIDIA_DRIVER_CAPABILITIES" = "all compute,utility" ]'
