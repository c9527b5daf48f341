#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The inputs of the fuzzers, packed and unpacked.

    pack.py unpack NAME FOLDER [LIST DEPFILE]   write all inputs of the fuzzer NAME into FOLDER
    pack.py add NAME FILE|FOLDER...             add inputs to the archive

Files that other tests use, too, and one filter as an example, are in corpus/NAME/. All other inputs are in
corpus/NAME.tar.xz: seeds with their names, and what libFuzzer found, named by the SHA-1 of its bytes. The archive
depends on its inputs only: the same inputs give the same bytes. The build calls `unpack` with LIST and DEPFILE: LIST
receives the names of all inputs, DEPFILE what they depend on. run.sh calls `add`."""
import hashlib
import io
import pathlib
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def corpus_of(name):
    """The folder with inputs of the fuzzer NAME, in tests/fuzz or codecs/fuzz. The archive is beside it."""
    return next(ROOT.glob(f"*/fuzz/corpus/{name}"))


def named_inputs(name):
    """The files of corpus/NAME/: name -> bytes."""
    return {file.name: file.read_bytes() for file in sorted(corpus_of(name).iterdir())}


def packed_inputs(archive):
    """The files in an archive: name -> bytes. The archive may be missing."""
    if not archive.exists():
        return {}
    with tarfile.open(archive, "r:xz") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def write_archive(archive, inputs):
    """Write an archive whose bytes depend on INPUTS only: sorted, and without times, owners and modes."""
    with tarfile.open(archive, "w:xz", format=tarfile.USTAR_FORMAT, preset=9) as tar:
        for name, data in sorted(inputs.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def unpack(name, folder, listing=None, depfile=None):
    """Fill FOLDER with all inputs of NAME. Whatever was in it is removed."""
    archive = corpus_of(name).with_suffix(".tar.xz")
    inputs = {**named_inputs(name), **packed_inputs(archive)}
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for file, data in inputs.items():
        if "/" in file or file in (".", ".."):
            sys.exit(f"{archive}: \"{file}\" is no plain file name")
        (folder / file).write_bytes(data)
    if listing:
        pathlib.Path(listing).write_text("".join(file + "\n" for file in sorted(inputs)), encoding="utf-8")
    if depfile:  # a folder changes with each file that is added or removed
        sources = [archive, corpus_of(name), *sorted(corpus_of(name).iterdir())]
        escaped = (str(source).replace(" ", "\\ ") for source in sources)
        pathlib.Path(depfile).write_text(f"{listing}: {' '.join(escaped)}\n", encoding="utf-8")


def add(name, paths):
    """Add the files in PATHS to the archive by their names, except those whose bytes are committed already."""
    archive = corpus_of(name).with_suffix(".tar.xz")
    packed = packed_inputs(archive)
    known = {hashlib.sha1(data).hexdigest() for data in [*named_inputs(name).values(), *packed.values()]}
    before = len(packed)
    for path in map(pathlib.Path, paths):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            data = file.read_bytes()
            digest = hashlib.sha1(data).hexdigest()
            if digest not in known:
                if file.name in packed:
                    sys.exit(f"{archive}: has another input named \"{file.name}\"")
                known.add(digest)
                packed[file.name] = data
    if len(packed) > before:
        write_archive(archive, packed)
    print(f"{archive.name}: {len(packed) - before} new of {len(packed)} inputs, {archive.stat().st_size} bytes")


def main():
    command, name, *rest = sys.argv[1:] if len(sys.argv) > 3 else ("", "")
    if command == "unpack" and len(rest) in (1, 3):
        unpack(name, *rest)
    elif command == "add":
        add(name, rest)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
