#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build programs with the installed library: installed.py BUILD SOURCES GPUCONV CC...

The library is installed in a temporary folder. pkg-config and CMake must find it there. Both examples are built with
the shared and with the static library, and must do what gpuconv does. The header must suit C++, too.

tests/library/oldest has the first header with the soname libgpuconv.so.0, and a program that calls each of its
functions. The program must do the same with the library of today, whether it is compiled with that header or with the
one of today."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run, skip, temporary_folder  # noqa: E402

EXAMPLES = ["filter_file", "blur_part"]
# A name of gpuconv's own is free for a program that links the static library.
CLASH = "int image_free(void); int image_free(void) { return 7; }\n"
# Samples that are only read may be const.
READS = """#include <gpuconv.h>
struct gpuconv_view read_view(const unsigned char *pixels, int planar);
struct gpuconv_view read_view(const unsigned char *pixels, int planar)
{
    return (planar ? gpuconv_planar : gpuconv_interleaved)(pixels, 1, 1, 1, GPUCONV_UINT8);
}
"""


def read_suite(command, folder, sources, environment=None):
    """Whether COMMAND sharpens each file of PngSuite, and to which bytes."""
    results = {}
    for picture in sorted((sources / "tests" / "data" / "pngsuite").glob("*.png")):
        output = folder / "suite.png"
        output.unlink(missing_ok=True)
        done = subprocess.run([*command, "sharpen", str(picture), str(output)], capture_output=True, env=environment)
        results[picture.name] = done.returncode == 0, output.read_bytes() if output.exists() else b""
    return results


def check_examples(programs, folder, sources, gpuconv, suite, environment):
    """Each program, by the name of its example. SUITE is what gpuconv makes of PngSuite."""
    for name, suffix in (("cat.png", "png"), ("rocket.jpg", "jpg")):
        output, expected = folder / f"output.{suffix}", folder / f"expected.{suffix}"
        picture = str(sources / "samples" / name)
        run(str(programs["filter_file"]), "gaussian:2", picture, str(output), env=environment)
        run(gpuconv, "--quiet", "--backend", "cpu", "gaussian:2", picture, str(expected))
        if output.read_bytes() != expected.read_bytes():
            sys.exit(f"the library and the command line make other files of {name}")
    for name, result in read_suite([str(programs["filter_file"])], folder, sources, environment).items():
        if result != suite[name]:
            sys.exit(f"the library and the command line do not agree about {name}")
    line = run(str(programs["blur_part"]), env=environment).stdout
    if line != "80 81 82 83 87 86 84 81 78 75 73 73 73 73 72 72\n":
        sys.exit(f"blur_part prints {line}")


def check_cmake(folder, root, sources, gpuconv, suite, environment):
    """find_package() of CMake finds the moved library, and refuses a version that is not there yet."""
    if shutil.which("cmake") is None:
        return print("not tried, as it is not installed: cmake")
    text = """cmake_minimum_required(VERSION 3.13)
project(filters C)
find_package(gpuconv ${WANTED} REQUIRED)
foreach(name filter_file blur_part)
  add_executable(${name} ${SOURCES}/docs/examples/${name}.c)
  target_link_libraries(${name} gpuconv::gpuconv)
endforeach()
"""
    prefix = root / run("pkg-config", "--variable=prefix", "gpuconv", env=environment).stdout.strip().lstrip("/")
    version = run("pkg-config", "--modversion", "gpuconv", env=environment).stdout.strip()
    (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")
    words = ["-S", str(folder), f"-DSOURCES={sources}", f"-DCMAKE_PREFIX_PATH={prefix}"]
    for wanted, status in ((version, 0), (version + ".1", 1)):
        run("cmake", "-B", str(folder / wanted), *words, f"-DWANTED={wanted}", status=status)
    run("cmake", "--build", str(folder / version))
    check_examples({name: folder / version / name for name in EXAMPLES}, folder, sources, gpuconv, suite, environment)


def check_oldest(compiler, folder, sources, flags, environment):
    oldest, printed = sources / "tests" / "library" / "oldest", []
    for includes in ([], ["-I", str(oldest)]):
        program = str(folder / "oldest")
        run(*compiler, "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", str(oldest / "program.c"), "-o", program,
            *includes, *flags)
        printed.append(run(program, env=environment).stdout)
    if printed[0] != printed[1]:
        sys.exit("a program prints, with the header of today and with the first one:\n" + "\n".join(printed))


def main():
    build, sources, gpuconv = map(os.path.abspath, sys.argv[1:4])
    sources, compiler = pathlib.Path(sources), sys.argv[4:]
    if shutil.which("pkg-config") is None:
        skip("pkg-config is not in PATH")
    with temporary_folder() as name:
        folder = pathlib.Path(name)
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", str(folder / "root"))
        found = list((folder / "root").rglob("gpuconv.pc"))
        if len(found) != 1:
            sys.exit(f"gpuconv.pc is installed {len(found)} times")
        environment = {**os.environ, "PKG_CONFIG_PATH": str(found[0].parent)}
        libraries = found[0].parents[1]
        moved = "--define-variable=prefix=" + str(folder / "root") + found[0].read_text().split("\n")[0][len("prefix="):]
        flags = {kind: run("pkg-config", *words, moved, "--cflags", "--libs", "gpuconv", env=environment).stdout.split()
                 for kind, words in (("shared", []), ("static", ["--static"]))}
        archive = str(libraries / "libgpuconv.a")
        flags["static"] = [archive if word == "-lgpuconv" else word for word in flags["static"]]
        flags["all static"] = ["-static", *flags["static"]]
        if "-ltiff" in flags["static"]:  # Debian's needs Lerc, which is C++
            flags["all static"].append("-lstdc++")
        environment["LD_LIBRARY_PATH"] = str(libraries)
        clash = folder / "clash.c"
        clash.write_text(CLASH + READS, encoding="utf-8")
        suite = read_suite([gpuconv, "--quiet", "--backend", "cpu"], folder, sources)
        for kind, words in flags.items():
            programs = {}
            for example in EXAMPLES:
                programs[example] = folder / f"{example}-{kind.replace(' ', '-')}"
                run(*compiler, "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                    str(sources / "docs" / "examples" / f"{example}.c"), str(clash), "-o", str(programs[example]),
                    *words)
            check_examples(programs, folder, sources, gpuconv, suite, environment)
        check_oldest(compiler, folder, sources, flags["shared"], environment)
        check_cmake(folder, folder / "root", sources, gpuconv, suite, environment)
        header = list((folder / "root").rglob("gpuconv.h"))
        for language in ("c++", "c"):
            standard = "c++11" if language == "c++" else "c99"
            if language == "c" or shutil.which("g++") is not None:
                run("g++" if language == "c++" else compiler[-1], "-x", language, f"-std={standard}", "-Wall",
                    "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", str(header[0]))
    print("2 examples,", ", ".join(flags) + ", and a program with the oldest header")


main()
