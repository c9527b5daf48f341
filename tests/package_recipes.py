#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tool of a package manager, or a stub, reads its recipe in packaging/recipes: package_recipes.py SOURCES NAME.

The release is a tarball of one short file for Meson. What the recipe gives to gpuconv must be options of gpuconv."""
import os
import pathlib
import re
import shutil
import sys
import types

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from harness import need_module, run, skip, temporary_folder  # noqa: E402

SOURCES, NAME = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
VERSION = re.search(r"version: '(.*)'", (SOURCES / "meson.build").read_text(encoding="utf-8"))[1]
OPTIONS = dict(re.findall(r"^option\('(\w+)', type: '(\w+)'", (SOURCES / "meson_options.txt").read_text(encoding="utf-8"), re.M))
RELEASE = f"gpuconv-{VERSION}"
FILES = {"arch": "PKGBUILD", "conda": "recipe.yaml", "homebrew": "gpuconv.rb", "meson": "gpuconv.wrap",
         "nix": str(SOURCES / "packaging/recipes/default.nix"), "spack": "package.py", "vcpkg": "vcpkg/portfile.cmake"}
TOOLS = {"arch": "makepkg", "homebrew": "ruby", "meson": "meson", "nix": "nix-instantiate", "vcpkg": "cmake"}


def arch(_):  # as another user than root, whom makepkg refuses
    os.chmod(".", 0o777)
    user = ["setpriv", "--reuid=65534", "--clear-groups"] if os.getuid() == 0 else []
    run("env", *user, "makepkg", "--verifysource", "--nodeps", env={"PATH": os.environ["PATH"], "HOME": "."})


def conda(file):
    import rattler_build
    for cuda in ("None", "12.4"):
        chosen = {"cuda_compiler_version": [cuda], "cuda_compiler": ["cuda-nvcc"], "c_stdlib": ["sysroot"]}
        rattler_build.Stage0Recipe.from_file(file).render(rattler_build.VariantConfig(chosen))


def homebrew(file):
    run("ruby", "-c", file)


def meson(file):
    os.renames(f"{RELEASE}.tar.xz", f"subprojects/packagecache/{RELEASE}.tar.xz")
    shutil.move(file, "subprojects")
    pathlib.Path("meson.build").write_text("project('filters')\ndependency('gpuconv')", encoding="utf-8")
    run("meson", "setup", "build", "--force-fallback-for=gpuconv")


def nix(file):  # the program needs a path to each library that it loads itself
    path = re.search(r"makeLibraryPath .*", run("nix-instantiate", "--parse", file).stdout)[0]
    sources = "".join(name.read_text(encoding="utf-8") for name in SOURCES.glob("src/*/*.c"))
    assert (loaded := re.findall(r'"lib(\w+)\.so\.\d+"', sources)) and all(name in path for name in loaded), loaded


def spack(file):
    directives = dict.fromkeys(("depends_on", "license", "resource", "variant", "version"), lambda *words, **more: None)
    api = types.SimpleNamespace(CudaPackage=type("Cuda", (), {}), MesonPackage=type("Meson", (), {}), **directives)
    builtin = "spack_repo.builtin.build_systems."
    sys.modules.update({"spack.package": api, builtin + "cuda": api, builtin + "meson": api})
    exec(compile(pathlib.Path(file).read_text(encoding="utf-8"), file, "exec"), told := {})
    package = told["Gpuconv"]()
    package.spec = types.SimpleNamespace(satisfies=lambda wanted: wanted in ("+cuda", "+webp"),
                                         variants={"cuda_arch": types.SimpleNamespace(value=("80", "90"))})
    given = package.meson_args()
    assert {"-Dgpu_arch=80,90", "-Dcuda=enabled", "-Dwebp=enabled", "-Dtiff=disabled"} < set(given), given
    return " ".join(given)


def vcpkg(file):
    ports = ("check_features", "check_linkage", "configure_meson", "copy_tools", "download_distfile",
             "extract_source_archive", "fixup_pkgconfig", "install_copyright", "install_meson")
    stub = "".join(f'function(vcpkg_{name})\n  message("{name};${{ARGN}}")\nendfunction()\n' for name in ports)
    pathlib.Path("stub.cmake").write_text(f"{stub}set(formats -Dtiff=ON -Dwebp=OFF)\ninclude({file})\n", encoding="utf-8")
    given = run("cmake", f"-DVERSION={VERSION}", "-DCURRENT_PACKAGES_DIR=packages", "-P", "stub.cmake").stderr
    assert run("sha512sum", f"{RELEASE}.tar.xz").stdout.split()[0] in given, given
    return given


if NAME in TOOLS and shutil.which(TOOLS[NAME]) is None:
    skip(f"{TOOLS[NAME]} is not in PATH")
if NAME == "conda":
    need_module("rattler_build")
with temporary_folder():
    os.mkdir(RELEASE)
    pathlib.Path(RELEASE, "meson.build").write_text(
        f"project('gpuconv', version: '{VERSION}')\nmeson.override_dependency('gpuconv', "
        "declare_dependency(version: meson.project_version()))\n", encoding="utf-8")
    shutil.make_archive(RELEASE, "xztar", ".", RELEASE)
    run(str(SOURCES / "packaging/recipes/finish"), ".")
    recipe = pathlib.Path(FILES[NAME]).read_text(encoding="utf-8")
    assert "0" * 64 not in recipe, "finish has left a sum out"
    words = globals()[NAME](FILES[NAME]) or recipe
for option, value in re.findall(r"-D(\w+)=([\w,]+)", words):
    if option not in OPTIONS or (OPTIONS[option] == "feature" and value not in ("auto", "disabled", "enabled")):
        sys.exit(f"the recipe for {NAME} gives -D{option}={value}, which is no option of gpuconv with such a value")
