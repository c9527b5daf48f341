#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the hooks of .pre-commit-hooks.yaml by pre-commit: hooks.py GPUCONV ROOT.

The manual's configuration takes them from a repository that has these files alone. Skipped (exit status 77) where git
or pre-commit is not installed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run, run_tests, skip  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HOOKS = ["gpuconv-max-pixels", "gpuconv-private-metadata", "gpuconv-digests"]
AUTHOR = chunk(b"tEXt", b"Author\0Ann Example")
# The maker's name, and in a second directory the version of EXIF and the maker's notes
MAKER = chunk(b"eXIf", bytes.fromhex("49492a00 08000000 0200 0f010200 04000000 41636d00 69870400 01000000 26000000 00000000"
                                     "0200 00900700 04000000 30323331 7c920700 08000000 44000000 00000000") + b"SERIAL 7")


def picture(level, width=9, chunks=b""):
    return png(width, 1500, 1, 8, unfiltered(bytes((level,)) * 1500 * width, width), chunks=chunks)


def commit(folder):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Add"]):
        run(*git, *words)
    return run(*git, "rev-parse", "HEAD").stdout.strip()


def failed():
    """The hooks that fail for all files of the repository."""
    done = subprocess.run(["pre-commit", "run", "--all-files", "--verbose"], cwd="project", capture_output=True, text=True)
    verdicts = re.findall(r"\.(Passed|Failed)\n- hook id: (.*)", done.stdout)
    assert [name for _, name in verdicts] == HOOKS, done.stdout + done.stderr
    return [name for verdict, name in verdicts if verdict == "Failed"], done.stdout


def test_hooks():
    for tool in ("git", "pre-commit"):
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")
    for folder in ("bin", "hooks/packaging", "project/more"):
        os.makedirs(folder)
    os.symlink(PROGRAM, "bin/gpuconv")
    os.environ.update(PATH=f"{os.getcwd()}/bin:{os.environ['PATH']}", HOME=os.getcwd(), PRE_COMMIT_HOME=f"{os.getcwd()}/cache")
    for file in (".pre-commit-hooks.yaml", "packaging/private-metadata"):
        shutil.copy(ROOT / file, f"hooks/{file}")
    revision = commit("hooks")
    text = (ROOT / "docs/manual.md").read_text(encoding="utf-8")
    text = re.search(r"<!-- recipe: .pre-commit-config.yaml -->\n```yaml\n(.*?)```", text, re.S)[1]
    text = text.replace("repo: URL", f"repo: {os.getcwd()}/hooks").replace("rev: v0.1.0", f"rev: {revision}")
    pathlib.Path("project/.pre-commit-config.yaml").write_text(text)
    first, second = pathlib.Path("project/a b.PNG"), pathlib.Path("project/more/-c.png")
    first.write_bytes(picture(7, chunks=chunk(b"tEXt", b"Copyright\0Ann Example") + chunk(b"bKGD", b"\0\0")))
    second.write_bytes(picture(8))
    pathlib.Path("project/images.sha256").write_text(subprocess.run(
        [PROGRAM, "--digest", "a b.PNG", "more/-c.png"], cwd="project", capture_output=True, text=True, check=True).stdout)
    commit("project")
    assert failed()[0] == [], failed()
    for path, data, expected, words in (
            (first, picture(7, chunks=AUTHOR), HOOKS[1:2], "a b.PNG: has names of persons"),
            (second, picture(8, chunks=MAKER), HOOKS[1:2], "more/-c.png: gpuconv cannot look into EXIF (maker's notes)"),
            (second, picture(9), HOOKS[2:], "more/-c.png: FAILED"),
            (second, picture(8, width=2700), [HOOKS[0], HOOKS[2]], "2700 x 1500 pixels are more than the 4000000"),
            (second, b"damaged", HOOKS, "more/-c.png: is not a PNG")):
        before = path.read_bytes()
        path.write_bytes(data)
        hooks, said = failed()
        assert hooks == expected and words in said, (hooks, said)
        path.write_bytes(before)


run_tests(globals())
