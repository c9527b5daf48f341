# SPDX-License-Identifier: MIT
#
# Homebrew on Linux, for the CPU: `brew install --formula ./gpuconv.rb`, where ./finish has written this file.
class Gpuconv < Formula
  desc "Exact convolution of images, with the same bytes on every machine"
  homepage "https://gpuconv.example.org"
  url "https://gpuconv.example.org/releases/gpuconv-0.1.0.tar.xz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "jansson"
  depends_on "jpeg-turbo"
  depends_on "libarchive"
  depends_on "libdeflate"
  depends_on "libheif"
  depends_on "libmd"
  depends_on "libtiff"
  depends_on :linux
  depends_on "little-cms2"
  depends_on "webp"

  # The headers, which Homebrew does not have as a formula.
  resource "stb" do
    url "https://github.com/nothings/stb/archive/31c1ad37456438565541f4919958214b6e762fb4.tar.gz"
    sha256 "e4e3bba9c572a4a4148373a914d88ea0f0d11de8cc2c66739926e7eca0223319"
  end

  def install
    resource("stb").stage { (buildpath/"include/stb").install Dir["stb_image*.h"] }
    ENV.append "CPPFLAGS", "-I#{buildpath}/include"
    system "meson", "setup", "build", "-Dcuda=disabled", "-Dtests=disabled", *std_meson_args
    system "meson", "compile", "-C", "build", "--verbose"
    system "meson", "install", "-C", "build"
  end

  test do
    (testpath/"in.pgm").write("P2 3 1 255\n0 255 0\n")
    system bin/"gpuconv", "box3", "in.pgm", "out.png"
    assert_path_exists testpath/"out.png"
  end
end
