#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The list of a release's contents: sbom.py SOURCES BUILD GPUCONV.

packaging/sbom.py describes this build. Each library that the binary needs is in the list, and --check finds faults that
are planted."""
import copy
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from harness import run, run_tests, skip  # noqa: E402

SCRIPT, BUILD, GPUCONV = (os.path.realpath(path) for path in (sys.argv[1] + "/packaging/sbom.py", *sys.argv[2:4]))
OF_COMPILERS = r"glibc|gcc-|llvm-"  # their libraries are no dependencies of Meson
DSC = """-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Format: 3.0 (quilt)
Source: libfoo
Version: 1:2.0+dfsg-1
"""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: 2026 Foo
License: Expat or Foo-1

Files: debian/*
Copyright: 2026 Bar
License: GPL-3

License: Foo-1
 Foo as you like.
"""


def load():
    spec = importlib.util.spec_from_file_location("sbom", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_build():
    text = run(sys.executable, SCRIPT, BUILD, GPUCONV).stdout
    made = json.loads(text)
    assert made == SOUND, "the same files gave another document"
    assert made["creationInfo"]["created"] == "1970-01-02T00:00:00Z", made["creationInfo"]
    notes = {note["comment"] for note in made["annotations"]}
    assert {"commit: 0123abc", "SOURCE_DATE_EPOCH: 86400", "option codecs_only: false"} <= notes, notes
    assert os.path.dirname(BUILD) not in text, "the document has a path of this machine"
    tools = [link["spdxElementId"] for link in made["relationships"] if link["relationshipType"] == "BUILD_TOOL_OF"]
    assert "SPDXRef-meson" in tools and len(tools) > 1, tools
    assert not re.search(r'"name": "dep[0-9]', text), "the document lists what Meson calls an internal dependency"
    pathlib.Path("sbom.json").write_text(text, encoding="utf-8")
    run(sys.executable, SCRIPT, "--check", "sbom.json", GPUCONV)
    shutil.copy(GPUCONV, "gpuconv")
    with open("gpuconv", "ab") as copied:
        copied.write(b"\0")
    refused = run(sys.executable, SCRIPT, "--check", "sbom.json", "gpuconv", status=1).stderr
    assert "no file of this name with these bytes" in refused, refused

    if not shutil.which("dpkg-query"):
        print("dpkg is not installed: the libraries are not compared")
        return
    listed = {part["name"]: part for part in made["packages"]}
    for name in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", GPUCONV).stdout):
        owner = run("dpkg-query", "-S", f"*/{name}").stdout.split(": ")[0].split(", ")[0]
        source, version = run("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", owner).stdout.split()
        assert re.match(OF_COMPILERS, source) or listed[source]["versionInfo"] == version, f"{name} is of {source} {version}"
    for part in ("libstb", "libdeflate"):
        assert "MIT" in listed[part]["licenseDeclared"], listed[part]


def test_sources():
    pathlib.Path("libfoo.dsc").write_text(DSC, encoding="utf-8")
    pathlib.Path("foo.txt").write_text(COPYRIGHT, encoding="utf-8")
    texts = {}
    part, = sbom.from_sources(pathlib.Path("."), pathlib.Path("."), texts)
    assert part["licenseDeclared"] == "(MIT OR LicenseRef-libfoo-Foo-1)", part
    assert part["externalRefs"][0]["referenceLocator"] == "pkg:deb/debian/libfoo@1:2.0%2Bdfsg-1?arch=source", part
    assert texts == {"LicenseRef-libfoo-Foo-1": "Foo as you like."}, texts
    words, texts = sbom.licence("bar", "Do what you like.\n")
    assert words == "LicenseRef-bar-copyright" and texts == {words: "Do what you like.\n".strip()}, texts


def test_kernels():
    """Meson knows nvcc only as the command of a custom target."""
    nvcc = pathlib.Path("nvcc").resolve()
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n", encoding="utf-8")
    nvcc.chmod(0o755)
    source = {"language": "unknown", "compiler": ["/usr/bin/ccache", str(nvcc), "-c"]}
    build = {"dependencies": [], "targets": [{"target_sources": [source, source]}]}
    (kind, runtime), = sbom.contents(build, None, {})
    assert (kind, runtime["name"], runtime["versionInfo"]) == ("CONTAINS", "cudart", "13.0.88"), runtime
    assert [tool["name"] for tool in sbom.tools(build)] == ["meson", "nvcc"]


def test_faults():
    def plant(change):
        made = copy.deepcopy(SOUND)
        change(made)
        return "; ".join(sbom.faults(made, [pathlib.Path(GPUCONV)]))

    last = SOUND["packages"][-1]["name"]
    for expected, change in {
        "two packages have one SPDXID": lambda made: made["packages"].append(made["packages"][0]),
        "has other characters": lambda made: made["packages"][-1].update(SPDXID="SPDXRef-a b"),
        f"{last}: there is no version": lambda made: made["packages"][-1].update(versionInfo=""),
        "its text is missing": lambda made: made["packages"][-1].update(licenseDeclared="MIT AND Foo"),
        "there is no such package": lambda made: made["packages"].pop(),
        "has no relationship": lambda made: made["relationships"].pop(),
        "the time": lambda made: made["creationInfo"].update(created="yesterday"),
        "with these bytes": lambda made: made["packages"][0]["checksums"][0].update(checksumValue="0" * 64),
    }.items():
        found = plant(change)
        assert expected in found, f"expected \"{expected}\", found \"{found}\""


if not shutil.which("meson"):
    skip("meson is not in PATH")
os.environ.update(SOURCE_DATE_EPOCH="86400", GPUCONV_COMMIT="0123abc")
sbom = load()
SOUND = sbom.document(BUILD, None, [pathlib.Path(GPUCONV)])
run_tests(globals())
