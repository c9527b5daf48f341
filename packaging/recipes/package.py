# SPDX-License-Identifier: MIT
"""Spack: put this file, which ./finish has written, into packages/gpuconv/ of a repository."""
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Gpuconv(MesonPackage, CudaPackage):
    """Exact convolution of images, on the CPU and on NVIDIA GPUs."""

    homepage = "https://gpuconv.example.org"
    url = "https://gpuconv.example.org/releases/gpuconv-0.1.0.tar.xz"
    license("MIT")
    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("pkgconfig", type="build")
    for needed in ("jansson", "libdeflate", "libjpeg-turbo", "libmd"):
        depends_on(needed)
    optional = {"heif": "libheif@1.15:", "lcms": "lcms@2.9:", "tar": "libarchive", "tiff": "libtiff@4.5:", "webp": "libwebp"}
    for option, library in optional.items():
        variant(option, default=option != "heif", description=f"Use {library.split('@')[0]}")
        depends_on(library, when=f"+{option}")

    # The headers, which Spack does not have as a package.
    resource(name="stb", destination="include", placement="stb",
             url="https://github.com/nothings/stb/archive/31c1ad37456438565541f4919958214b6e762fb4.tar.gz",
             sha256="e4e3bba9c572a4a4148373a914d88ea0f0d11de8cc2c66739926e7eca0223319")

    def setup_build_environment(self, env):
        env.append_flags("CFLAGS", f"-I{self.stage.source_path}/include")

    def meson_args(self):
        used = {name: self.spec.satisfies(f"+{name}") for name in ("cuda", *self.optional)}
        chips = [chip for chip in self.spec.variants["cuda_arch"].value if chip != "none"] if used["cuda"] else []
        return ["-Dtests=disabled", f"-Dgpu_arch={','.join(chips) or 'all'}",
                *(f"-D{name}={'enabled' if use else 'disabled'}" for name, use in used.items())]
