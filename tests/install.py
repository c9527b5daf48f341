#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where `meson install` puts files, in folders that a packager names: install.py SOURCES.

Nothing is compiled. The binary must look for the filters where they are installed. gpuconv is the subproject of another
project, in which it must name its own files."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from harness import run, skip  # noqa: E402

FOLDERS = ["--prefix=/opt/g", "--bindir=programs", "--libdir=libraries", "--mandir=pages", "--datadir=/srv/data"]


def main():
    sources = pathlib.Path(sys.argv[1])
    meson = shutil.which("meson") or skip("meson is not in PATH")
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        build = folder + "/build"
        pathlib.Path(folder, "meson.build").write_text("project('other')\nsubproject('gpuconv')\n", encoding="utf-8")
        pathlib.Path(folder, "subprojects").mkdir()
        pathlib.Path(folder, "subprojects/gpuconv").symlink_to(sources.resolve())
        run(meson, "setup", build, folder, "-Dgpuconv:tests=disabled", *FOLDERS)
        installed = json.loads(run(meson, "introspect", "--installed", build).stdout)
        commands = pathlib.Path(build, "compile_commands.json").read_text(encoding="utf-8")
        rules = pathlib.Path(build, "build.ninja").read_text(encoding="utf-8")
        for name in set(re.findall(r"(?:-I|--version-script=)((?:\.\.)?/[^\s']+)", rules)):
            if not os.path.exists(os.path.join(build, name)):
                sys.exit(f"the build names {name}, which does not exist")
    expected = {
        "gpuconv": "/opt/g/programs/gpuconv",
        "gpuconv.1": "/opt/g/pages/man1/gpuconv.1",
        "gpuconv.3": "/opt/g/pages/man3/gpuconv.3",
        "gpuconv.h": "/opt/g/include/gpuconv.h",
        "libgpuconv.so": "/opt/g/libraries/libgpuconv.so",
        "libgpuconv.so.0": "/opt/g/libraries/libgpuconv.so.0",
        "libgpuconv.a": "/opt/g/libraries/libgpuconv.a",
        "gpuconv.pc": "/opt/g/libraries/pkgconfig/gpuconv.pc",
        "gpuconvConfig.cmake": "/opt/g/libraries/cmake/gpuconv/gpuconvConfig.cmake",
        "gpuconvConfigVersion.cmake": "/opt/g/libraries/cmake/gpuconv/gpuconvConfigVersion.cmake",
        "gpuconv.bash": "/srv/data/bash-completion/completions/gpuconv",
        "_gpuconv": "/srv/data/zsh/site-functions/_gpuconv",
        "gpuconv.fish": "/srv/data/fish/vendor_completions.d/gpuconv.fish",
        "LICENSE": "/srv/data/licenses/gpuconv/LICENSE",
        **{path.name: f"/srv/data/gpuconv/filters/{path.name}" for path in sources.glob("filters/*.txt")},
    }
    actual = {os.path.basename(source): path for source, path in installed.items()}
    if actual != expected:
        sys.exit(f"expected, but not installed: {sorted(expected.items() - actual.items())}\n"
                 f"installed, but not expected: {sorted(actual.items() - expected.items())}")
    if 'GPUCONV_FILTER_DIR=\\"/srv/data/gpuconv/filters\\"' not in commands:
        sys.exit("the binary looks for its filters in another folder")


main()
