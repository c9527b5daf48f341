#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the manual's recipes for golden images: recipes.py GPUCONV ROOT NAME.

NAME is the file that the recipe is. The test extracts it from docs/manual.md and runs it as it stands there, in a
folder with a program that draws: first with equal pictures, then with a different one, a new one and a damaged one.
Skipped (exit status 77) where the recipe's tool is not installed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import need_module, skip, temporary_folder  # noqa: E402

# Instead of Playwright: what golden.mjs takes from it, and a run that gives it all pictures at once.
PLAYWRIGHT = """import {accessSync, appendFileSync} from 'node:fs';
export const matchers = {};
export const expect = {extend: added => Object.assign(matchers, added)};
export const test = {info: () => ({
  config: {updateSnapshots: process.env.UPDATE ?? 'missing'}, snapshotPath: name => 'golden/' + name,
  outputPath: name => 'results/' + name,
  attach: async (name, {path}) => { accessSync(path); appendFileSync('attached', name + ' '); }})};
"""
USE = """import {mkdirSync, readdirSync, readFileSync} from 'node:fs';
import {matchers} from '@playwright/test';
import './golden.mjs';
const alive = setInterval(() => {}, 1000);
mkdirSync('results', {recursive: true});
const compare = name => matchers.toBePicture(readFileSync('out/' + name), name, {tolerance: 1});
for (const {pass, message} of await Promise.all(readdirSync('out').map(compare)))
  if (!pass) { console.log(message()); process.exitCode = 1; }
clearInterval(alive);
"""
DRAW = "#!/bin/sh\nmkdir -p \"$1\" && cp {source}/*.png \"$1\"\n"
PNG = pathlib.Path(__file__).with_name("png.py")


def command(name):
    """What runs the recipe."""
    if name == "Makefile":
        return ["make", "-s", "check"], "make"
    if name == "meson.build":
        return ["sh", "-c", "test -d b || meson setup b; rm -rf b/out; meson test -C b --print-errorlogs"], "meson"
    if name == "test_golden.py":
        return ["pytest", "-q", "-p", "no:cacheprovider", name], "pytest"
    if name == "CMakeLists.txt":
        return ["sh", "-c", "cmake -S . -B b && rm -rf b/out && cd b && ctest --output-on-failure"], "ctest"
    if name == "golden_test.cc":
        header = b"#include <gtest/gtest.h>"
        if subprocess.run(["c++", "-E", "-x", "c++", "-"], input=header, capture_output=True).returncode != 0:
            skip("GoogleTest is not installed")
        return ["sh", "-c", f"test -e t || c++ -o t {name} -lgtest -lgtest_main -pthread; rm -rf out; ./t"], "c++"
    if name == "golden.test.mjs":
        return ["sh", "-c", f"rm -rf out; node --test {name}"], "node"
    if name == "golden.mjs":
        return ["sh", "-c", "rm -rf out; ./draw out && node use.mjs"], "node"
    need_module("yaml")  # golden.yml
    return ["sh", "-e", "steps"], "sh"


def write_steps(text, folder):
    """Write the commands of a workflow to a script, and check what it uploads."""
    import yaml
    (job,) = yaml.safe_load(text)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    (folder / "steps").write_text("rm -rf out\n" + "\n".join(commands) + "\n")
    (upload,) = [step for step in job["steps"] if step.get("uses", "").startswith("actions/upload-artifact@")]
    assert upload["if"] == "failure()", upload
    return [line.rstrip("/") for line in upload["with"]["path"].split()]


def picture(path, *samples):
    with open(path, "wb") as file:
        subprocess.run([sys.executable, PNG, "4", "2", "1", "8", *samples], stdout=file, check=True)


def expect(step, words, folder, values, passes):
    done = subprocess.run(words, cwd=folder, env=values, capture_output=True, text=True)
    if (done.returncode == 0) != passes:
        sys.exit(f"{step}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    program, root, name = os.path.abspath(sys.argv[1]), *sys.argv[2:]
    manual = pathlib.Path(root, "docs", "manual.md").read_text(encoding="utf-8")
    text = re.search(rf"<!-- recipe: {re.escape(name)} -->\n```\w*\n(.*?)```", manual, re.S).group(1)
    words, tool = command(name)
    if not shutil.which(tool):
        skip(f"{tool} is not installed")
    with temporary_folder() as top:
        folder = pathlib.Path(top, "work")
        for part in ("golden", "source", "bin"):
            (folder / part).mkdir(parents=True)
        (folder / "bin" / "gpuconv").symlink_to(program)
        (folder / "draw").write_text(DRAW.format(source=folder / "source"))
        (folder / "draw").chmod(0o755)
        (folder / name).write_text(text)
        values = dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}",
                      GITHUB_STEP_SUMMARY=str(folder / "summary"))
        (folder / "node_modules/@playwright/test").mkdir(parents=True)
        (folder / "node_modules/@playwright/test/index.js").write_text(PLAYWRIGHT)
        (folder / "node_modules/@playwright/test/package.json").write_text('{"type": "module", "main": "index.js"}')
        (folder / "use.mjs").write_text(USE)
        uploaded = write_steps(text, folder) if name == "golden.yml" else []
        samples = [str(10 * i) for i in range(8)]
        for part in ("golden", "source"):
            for file in ("a.png", "b.png"):
                picture(folder / part / file, *samples)
        expect("equal", words, folder, values, True)
        picture(folder / "source" / "a.png", *samples[:-1], "99")
        expect("different", words, folder, values, False)
        if uploaded:
            page = (folder / "golden.html").read_text(encoding="utf-8")
            assert uploaded == ["golden.html", "golden_files"] and "href=\"data:image/png" in page, uploaded
            assert "Images: 1 of 2 needs a look" in (folder / "summary").read_text()
        if name == "Makefile":
            expect("accept", ["make", "-s", "accept"], folder, values, True)
            expect("accepted", words, folder, values, True)
        if name == "golden.mjs":
            assert (folder / "attached").read_text() == "a-expected.png a-actual.png a-diff.png "
            picture(folder / "source" / "new.png", *samples)
            expect("accept", words, folder, dict(values, UPDATE="changed"), True)
            expect("accepted", words, folder, values, True)
            (folder / "golden" / "new.png").unlink()
        picture(folder / "source" / "a.png", *samples)
        picture(folder / "golden" / "a.png", *samples)
        picture(folder / "source" / "new.png", *samples)
        expect("new", words, folder, values, "--new-fails" not in text and name != "golden.mjs")
        (folder / "source" / "a.png").write_bytes(b"damaged")
        expect("damaged", words, folder, values, False)


main()
