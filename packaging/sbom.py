#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print what is in the files of a release, as SPDX 2.3: sbom.py BUILD [--sources FOLDER] FILE...

BUILD is the Meson build folder that they come from: its dependencies are in them, or are loaded by them. FOLDER has the
.dsc files of libraries that were built from Debian's sources: these versions tell which security fixes are inside. The
time is $SOURCE_DATE_EPOCH: the same files give the same document."""
import argparse
import datetime
import email.parser
import hashlib
import json
import os
import pathlib
import re
import subprocess

NOT_INSIDE = {"cmocka", "libarchive", "python", "threads"}  # of tests, loaded if it is there, of no library of its own


def build(folder, what):
    done = subprocess.run(["meson", "introspect", f"--{what}", folder], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def package(name, version, **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", **more}


def sources(folder):
    """The packages of Debian's sources in FOLDER, by their names."""
    for path in sorted(folder.glob("*.dsc")):
        text = path.read_text(encoding="utf-8").split("\n\n", 1)[-1]  # without the head of the signature
        fields = email.parser.Parser().parsestr(text)
        name, version = fields["Source"], fields["Version"]
        link = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch=source"}
        yield package(name, version, supplier="Organization: Debian", externalRefs=[link])


def cuda_runtime():
    done = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True)
    return package("cudart", re.search(r"V([0-9.]+)", done.stdout)[1], supplier="Organization: NVIDIA")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=pathlib.Path)
    parser.add_argument("build")
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    version = build(arguments.build, "projectinfo")["version"]
    dependencies = build(arguments.build, "dependencies")
    if arguments.sources:
        inside = list(sources(arguments.sources))
    else:
        inside = [package(entry["name"], entry["version"]) for entry in dependencies
                  if entry["name"] not in NOT_INSIDE and entry["version"] != "unknown"]
    if any(entry["name"] == "cudart_static" for entry in dependencies):
        inside.append(cuda_runtime())
    files = []
    for path in sorted(arguments.files, key=lambda path: path.name):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files.append(package(path.name, version, licenseDeclared="MIT", packageFileName=path.name,
                             checksums=[{"algorithm": "SHA256", "checksumValue": digest}]))
    relations = [(file, "CONTAINS", part) for file in files for part in inside]
    digest = hashlib.sha256(json.dumps(files + inside).encode()).hexdigest()
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    print(json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gpuconv-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/gpuconv-{version}-{digest[:32]}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: gpuconv-sbom"]},
        "packages": files + inside,
        "relationships": [
            *({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": file["SPDXID"]}
              for file in files),
            *({"spdxElementId": one["SPDXID"], "relationshipType": kind, "relatedSpdxElement": other["SPDXID"]}
              for one, kind, other in relations)],
    }, indent=1))


main()
