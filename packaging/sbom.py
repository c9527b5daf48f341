#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is in the files of a release, and what built them, as SPDX 2.3.

    sbom.py BUILD [--sources FOLDER] FILE...    print the document
    sbom.py --check DOCUMENT FILE...            find faults in it, and files that are others

BUILD is the Meson build folder that the files come from. dpkg knows the package, version and licence of each library,
and the version tells which security fixes it has. FOLDER has the .dsc files of libraries that were built from Debian's
sources. The commit is $GPUCONV_COMMIT, and the time $SOURCE_DATE_EPOCH: the same files give the same document."""
import argparse
import datetime
import email.parser
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import urllib.parse

NOT_INSIDE = {"cmocka", "lcms2", "libarchive", "libheif", "python", "threads", "zlib"}  # of tests, loaded if it is there, no library
HEADERS_ONLY = {"stb"}
OPTIONS = {"b_lto", "b_ndebug", "b_sanitize", "buildtype", "c_args", "c_link_args", "optimization"}  # besides our own
TOOL = "Tool: gpuconv-sbom"
# Debian's names of licences, in lower case, where SPDX has a name. The text of each other licence is in the document.
LICENCES = {"apache-2.0": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "expat": "MIT",
            "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "isc": "ISC", "mit": "MIT", "zlib": "Zlib"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def spdx_id(text):
    return re.sub(r"[^A-Za-z0-9.-]", "-", text)


def package(name, version, **more):
    return {"SPDXID": "SPDXRef-" + spdx_id(name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", **more}


# ---- Licences ----


def licence(owner, text):
    """The licences that Debian's copyright file names, as an expression of SPDX, and the texts that SPDX lacks."""
    names, texts = set(), {}
    for paragraph in re.split(r"\n[ \t]*\n", text):
        fields = email.parser.Parser().parsestr(paragraph.lstrip())
        name, _, words = (fields["License"] or "").strip().partition("\n")
        if name and words:
            texts[name] = words
        if name and fields["Files"] and not fields["Files"].strip().startswith("debian/"):
            names.add(name)
    if not names:  # the file is not in the form that programs read
        names, texts = {"copyright"}, {"copyright": text}
    extracted = {}

    def convert(name):
        if name.lower() in LICENCES:
            return LICENCES[name.lower()]
        reference = f"LicenseRef-{spdx_id(owner)}-{spdx_id(name)}"
        extracted[reference] = texts.get(name, text).strip()
        return reference

    terms = set()
    for name in names:  # names and operators alternate
        words = re.split(r",? +(and|or) +", name)
        term = " ".join(word.upper() if i % 2 else convert(word) for i, word in enumerate(words))
        terms.add(f"({term})" if len(words) > 1 else term)
    return " AND ".join(sorted(terms)), extracted


# ---- What is inside ----


def debian_package(name, version, address, copyright_file, texts, distribution="debian"):
    """A source package of Debian. ADDRESS is the name and the architecture of what is used of it."""
    more = {"licenseDeclared": "NOASSERTION"}
    if copyright_file.exists():
        more["licenseDeclared"], extracted = licence(name, copyright_file.read_text(encoding="utf-8"))
        texts.update(extracted)
    used, architecture = address
    purl = f"pkg:deb/{distribution}/{used}@{urllib.parse.quote(version, safe=':~')}?arch={architecture}"
    link = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
    return package(name, version, supplier=f"Organization: {distribution.capitalize()}", externalRefs=[link], **more)


def from_sources(folder, licences, texts):
    """The packages of Debian's sources in FOLDER, which are linked statically. LICENCES has their copyright files."""
    for path in sorted(folder.glob("*.dsc")):
        text = path.read_text(encoding="utf-8").split("\n\n", 1)[-1]  # without the head of the signature
        fields = email.parser.Parser().parsestr(text)
        name = fields["Source"]
        file = licences / f"{name}.txt"
        yield debian_package(name, fields["Version"], (name, "source"),
                             file if file.exists() else licences / f"{name.removeprefix('lib')}.txt", texts)


def installed(dependency, texts):
    """The package of this system that has the library of a dependency; without dpkg, what Meson knows of it."""
    library = next((word for word in dependency["link_args"] if word.startswith(("/", "-l"))), "/none")
    pattern = f"*/lib{library[2:]}.so" if library.startswith("-l") else "*" + os.path.realpath(library).removeprefix("/usr")
    try:
        owner = output("dpkg-query", "-S", pattern).splitlines()[0].rsplit(": ", 1)[0].split(", ")[0]
        used, architecture, name, version = output(
            "dpkg-query", "-W", "-f", "${Package} ${Architecture} ${source:Package} ${source:Version}", owner).split()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return package(dependency["name"], dependency["version"], licenseDeclared="NOASSERTION")
    return debian_package(name, version, (used, architecture), pathlib.Path("/usr/share/doc", used, "copyright"), texts,
                          platform.freedesktop_os_release().get("ID", "debian"))


def contents(build, sources, texts):
    """The libraries, each with its relationship to the files of the release."""
    if sources:
        options = {option["name"]: option["value"] for option in build["buildoptions"]}
        for part in from_sources(sources, pathlib.Path(options["licences"]), texts):
            yield "CONTAINS", part
    for version in nvcc_versions(build):
        yield "CONTAINS", package("cudart", version, supplier="Organization: NVIDIA", licenseDeclared="NOASSERTION")
    for entry in build["dependencies"]:
        internal = entry.get("type") == "internal"  # our own, which newer versions of Meson list under random names
        if not sources and not internal and entry["name"] not in NOT_INSIDE and entry["version"] != "unknown":
            yield "CONTAINS" if entry["name"] in HEADERS_ONLY else "DYNAMIC_LINK", installed(entry, texts)


# ---- What built it ----


def commands(build):
    """What compiles, without ccache: the language and the words."""
    return {(source["language"], tuple(word for word in source["compiler"] if os.path.basename(word) != "ccache"))
            for target in build["targets"] for source in target["target_sources"] if source.get("compiler")}


def nvcc_versions(build):
    """The version of the nvcc that compiles the kernels, and of its runtime. Meson does not list it."""
    for nvcc in sorted({words[0] for _, words in commands(build) if os.path.basename(words[0]) == "nvcc"}):
        yield re.search(r"V([0-9.]+)", output(nvcc, "--version"))[1]


def tools(build):
    for command in sorted(words for language, words in commands(build) if language == "c"):
        yield package(os.path.basename(command[0]), output(*command, "--version").splitlines()[0])
    yield package("meson", output("meson", "--version").strip())
    for version in nvcc_versions(build):
        yield package("nvcc", version)


def facts(folder, build):
    """What decides the bytes, besides tools and libraries; paths begin at the folder above the build folder."""
    if "GPUCONV_COMMIT" in os.environ:
        yield f"commit: {os.environ['GPUCONV_COMMIT']}"
    yield f"SOURCE_DATE_EPOCH: {os.environ.get('SOURCE_DATE_EPOCH', 'not set')}"
    for option in sorted(build["buildoptions"], key=lambda option: option["name"]):
        if option["section"] == "user" or option["name"] in OPTIONS:
            value = json.dumps(option["value"]).replace(str(pathlib.Path(folder).resolve().parent), ".")
            yield f"option {option['name']}: {value}"


# ---- The document ----


def document(folder, sources, paths):
    build = json.loads(output("meson", "introspect", "--all", folder))
    version, texts = build["projectinfo"]["version"], {}
    inside, with_what = list(contents(build, sources, texts)), list(tools(build))
    files = [package(path.name, version, licenseDeclared="MIT", packageFileName=path.name, checksums=[
        {"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}])
        for path in sorted(paths, key=lambda path: path.name)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", file["SPDXID"]) for file in files]
    for file in files:
        relations += [(file["SPDXID"], kind, part["SPDXID"]) for kind, part in inside]
        relations += [(tool["SPDXID"], "BUILD_TOOL_OF", file["SPDXID"]) for tool in with_what]
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    packages = files + [part for _, part in inside] + with_what
    notes = [{"annotationDate": created, "annotationType": "OTHER", "annotator": TOOL, "comment": fact}
             for fact in facts(folder, build)]
    digest = hashlib.sha256(json.dumps([packages, notes]).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gpuconv-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/gpuconv-{version}-{digest[:32]}",
        "creationInfo": {"created": created, "creators": [TOOL]},
        "packages": packages,
        "hasExtractedLicensingInfos": [{"licenseId": name, "name": name, "extractedText": text}
                                       for name, text in sorted(texts.items())],
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                          for one, kind, other in relations],
        "annotations": notes}


def faults(made, paths):
    """What is wrong with a document, or with the files that it describes: sentences."""
    packages = {part["SPDXID"]: part for part in made["packages"]}
    names = {*packages, "SPDXRef-DOCUMENT"}
    licences = {*LICENCES.values(), *(text["licenseId"] for text in made["hasExtractedLicensingInfos"])}
    if len(packages) < len(made["packages"]):
        yield "two packages have one SPDXID"
    for part in made["packages"]:
        name, declared = part["name"], part.get("licenseDeclared", "NOASSERTION")
        if not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", part["SPDXID"]):
            yield f"{name}: the SPDXID has other characters than letters, digits, \".\" and \"-\""
        if not part.get("versionInfo"):
            yield f"{name}: there is no version"
        for word in set(re.split(r"[ ()]+", declared)) - {"", "AND", "OR", "NOASSERTION"} - licences:
            yield f"{name}: the licence {word} is no name of SPDX, and its text is missing"
    related = set()
    for relation in made["relationships"]:
        ends = {relation["spdxElementId"], relation["relatedSpdxElement"]}
        related |= ends
        for end in sorted(ends - names):
            yield f"{end} has a relationship, and there is no such package"
    for name in sorted(names - related):
        yield f"{name} has no relationship"
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["creationInfo"]["created"]):
        yield "the time is not as SPDX wants it"
    digests = {part["packageFileName"]: part["checksums"][0]["checksumValue"]
               for part in made["packages"] if "checksums" in part}
    for path in paths:
        if digests.get(path.name) != hashlib.sha256(path.read_bytes()).hexdigest():
            yield f"{path}: the document has no file of this name with these bytes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("build")
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.check:
        made = json.loads(pathlib.Path(arguments.build).read_text(encoding="utf-8"))
    else:
        made = document(arguments.build, arguments.sources, arguments.files)
    wrong = list(faults(made, arguments.files))
    if wrong:
        sys.exit("\n".join(wrong))
    if not arguments.check:
        print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
