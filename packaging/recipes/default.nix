# SPDX-License-Identifier: MIT
#
# Nix: `nix-build packaging/recipes` in a clone. cudaSupport adds the GPU code; CUDA is not free software.
{ pkgs ? import <nixpkgs> { config.allowUnfree = cudaSupport; }, cudaSupport ? false }:

pkgs.stdenv.mkDerivation {
  pname = "gpuconv";
  version = "0.1.0";
  src = pkgs.lib.cleanSource ../..;
  strictDeps = true;
  nativeBuildInputs = with pkgs; [ meson ninja pkg-config python3 ]
    ++ lib.optional cudaSupport cudaPackages.cuda_nvcc;
  buildInputs = with pkgs; [ jansson lcms2 libarchive libdeflate libheif libjpeg libmd libtiff libwebp stb ]
    ++ lib.optional cudaSupport cudaPackages.cuda_cudart;
  mesonFlags = [ "-Dtests=disabled" "-Dgpu_arch=all" (if cudaSupport then "-Dcuda=enabled" else "-Dcuda=disabled") ];
  postPatch = "patchShebangs .";
  # Libraries that are loaded when they are used.
  postFixup = "patchelf --add-rpath ${pkgs.lib.makeLibraryPath (with pkgs; [ lcms2 libarchive libheif ])} $out/bin/gpuconv $out/lib/libgpuconv.so.0";
  doInstallCheck = true;
  installCheckPhase = "$out/bin/gpuconv --conformance";
  meta = {
    description = "Exact convolution of images, on the CPU and on NVIDIA GPUs";
    license = pkgs.lib.licenses.mit;
    mainProgram = "gpuconv";
    platforms = pkgs.lib.platforms.linux;
  };
}
