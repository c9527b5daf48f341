#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Find what was added in one place and forgotten in another: inventory.py GPUCONV ROOT.

Every file of filters/ is built in, every file of kernels/ is a variant, every transcript is a test, every module of
Python is installed, the man page explains every option, its synopsis has every mode, the library's documents name every
format, and the news, the Debian package, the citation, the recipes and the manual have the program's version. The
workflows of a hosted repository, and the action, run programs that exist, and actions of one commit. The compiler and
the other tests would not notice if one is missing from a list."""
import json
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from harness import run  # noqa: E402


def stems(folder, suffix):
    return {path.stem for path in folder.glob(f"*{suffix}")}


def first_words(program, option):
    return [line.split()[:2] for line in run(program, option).stdout.splitlines()]


def missing(program, root):
    """A sentence for each thing that is in one place only."""
    filters = {row["name"] for row in json.loads(run(program, "--list", "--json").stdout)}
    kernels = {name for name, backend in first_words(program, "--list-variants") if backend == "cuda"}
    transcripts = set(re.findall(r"'([\w-]+)'", (root / "tests/cli/meson.build").read_text(encoding="utf-8")))
    for name in sorted(stems(root / "filters", ".txt") - filters):
        yield f"filters/{name}.txt has no line in filters/meson.build"
    files = stems(root / "kernels", ".cu")
    for name in sorted(files - kernels):
        yield f"kernels/{name}.cu has no row in src/variants/table.c"
    for name in sorted(kernels - files):
        yield f"the variant {name} has no file in kernels/"
    for name in sorted(stems(root / "tests/cli", ".case") - transcripts):
        yield f"tests/cli/{name}.case is not in tests/cli/meson.build"
    modules = (root / "python/meson.build").read_text(encoding="utf-8")
    for path in sorted(path.relative_to(root / "python") for folder in ("", "gpuconv") for path in (root / "python" / folder).glob("*.py")):
        if f"'{path}'" not in modules:
            yield f"python/{path} is not in python/meson.build, so it is not installed"

    version = first_words(program, "--version")[0][1]
    for name, newest in (("NEWS.md", r"^## (.*)"), ("debian/changelog", r"^gpuconv \((.*)-\d+~upstream\d+\)"),
                         ("CITATION.cff", r"^version: (.*)"), ("packaging/recipes/PKGBUILD", r"^pkgver=(.*)"),
                         ("packaging/recipes/default.nix", r'^  version = "(.*)";'),
                         ("packaging/recipes/gpuconv.rb", r"/gpuconv-(.*)\.tar"),
                         ("packaging/recipes/gpuconv.wrap", r"^directory = gpuconv-(.*)"),
                         ("packaging/recipes/gpuconv.wrap", r"/gpuconv-(.*)\.tar"),
                         ("packaging/recipes/gpuconv.wrap", r"^source_filename = gpuconv-(.*)\.tar"),
                         ("packaging/recipes/package.py", r"/gpuconv-(.*)\.tar"),
                         ("packaging/recipes/package.py", r'^    version\("(.*)",'),
                         ("packaging/recipes/vcpkg/vcpkg.json", r'^  "version": "(.*)",'),
                         ("packaging/recipes/recipe.yaml", r"^  version: (\d.*)"),
                         ("docs/manual.md", r"OWNER/gpuconv@v(.*)"), ("docs/manual.md", r"^    rev: v(.*)")):
        said = re.search(newest, (root / name).read_text(encoding="utf-8"), re.M)[1]
        if said != version:
            yield f"{name} begins with {said}, and meson.build has the version {version}"

    for path in [root / "action.yml", *sorted((root / ".github/workflows").glob("*.yml"))]:
        text = path.read_text(encoding="utf-8")
        for action in re.findall(r"\buses: (.*)", text):
            if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v[0-9.]+", action):
                yield f"{path.name} takes {action}, and not one commit of an action"
        if path.name != "action.yml" and not re.search(r"^permissions:\n  contents: read$", text, re.M):
            yield f"{path.name} does not begin with the right to read alone"
        for script in re.findall(r"(?:run: |&& |^ +|' )((?:\./|\.ci/|packaging/)[a-z./-]+)", text, re.M):
            if not os.access(root / script, os.X_OK):
                yield f"{path.name} runs {script}, which is no program"

    helps = run(program, "--help", "all").stdout
    manual = (root / "docs/gpuconv.1").read_text(encoding="utf-8")
    page = "\n".join(re.findall(r"^\.It Fl (.*)", manual, re.M))
    explained = re.findall(r"(?:^|, )-([a-z][a-z-]*)", page, re.M)
    for name in re.findall(r"^  (?:-\w, )?--([a-z][a-z-]*)", helps, re.M):
        if name not in explained:
            yield f"docs/gpuconv.1 does not explain --{name}"
    synopsis = manual.split(".Sh SYNOPSIS")[1].split(".Sh DESCRIPTION")[0]
    questions = helps.split("Instead of filtering:")[1].split("\n\n")[0]
    for name in ["in-place", "tar", *re.findall(r"^  --([a-z-]*)", questions, re.M)]:
        if not re.search(rf" -{name}\b(?!-)", synopsis):
            yield f"the synopsis of docs/gpuconv.1 lacks --{name}"
    pnm = ("PGM", "PPM", "PAM")
    named = {"PNM" if name in pnm else name for row in json.loads(run(program, "--list-codecs", "--json").stdout) for name in row["formats"]}
    for place in ("docs/gpuconv.1", "docs/gpuconv.3", "src/library/gpuconv.h"):
        for name in sorted(named - set(re.findall(r"\w+", (root / place).read_text(encoding="utf-8")))):
            yield f"{place} does not name the format {name}"


def main():
    found = list(missing(sys.argv[1], pathlib.Path(sys.argv[2])))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
