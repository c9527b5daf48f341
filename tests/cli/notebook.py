#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cells of docs/learn/lesson.ipynb, as far as they go without a GPU: notebook.py GPUCONV SOURCES

Each cell runs, in order, in a folder of its own. Programs that install, compile or need a GPU are stubs that write down
their words. build/gpuconv is the real one, with the CPU's variants in place of the GPU's, on a small image; so what is
plotted are its times. matplotlib is a stub, too."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$NOTES"
case "$(basename "$0") $1" in
"git clone") mkdir -p gpuconv/kernels gpuconv/build/tests/variants
             cp "$SOURCES/kernels/exercise.cu" gpuconv/kernels
             ln -s "$BIN/gpuconv" "$BIN/first" gpuconv/build
             ln -s "$BIN/check_variants" gpuconv/build/tests/variants ;;
"git checkout") cp "$SOURCES/$2" "$2" ;;
"ninja -C") cksum kernels/exercise.cu >> "$NOTES" ;;
esac
"""
PROGRAMS = ["nvidia-smi", "nvcc", "git", "sudo", "apt-get", "pip", "meson", "ninja", "first", "check_variants"]
GPUCONV = """#!/bin/sh
echo "gpuconv $*" >> "$NOTES"
exec '{program}' $(echo "$*" | sed 's/--variant [^ ]*/--variant reference,cpu/; s/--bench-size [^ ]*/--bench-size 64x48/') \\
    --threads 1
"""


class Plot(types.ModuleType):
    """matplotlib.pyplot: keeps the lines that are drawn."""

    def __init__(self):
        super().__init__("matplotlib.pyplot")
        self.lines = {}

    def plot(self, x, y, marker, label):
        self.lines[label] = (x, y)

    def __getattr__(self, name):
        return lambda *words, **options: None


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


def run_cells(cells, folder, environment):
    """Run them. Returns what they plotted."""
    plot = Plot()
    sys.modules.update({"matplotlib": types.ModuleType("matplotlib"), "matplotlib.pyplot": plot})
    os.chdir(folder)
    for text in cells:
        if text.startswith("%%bash"):
            assert text.startswith("%%bash -e\n"), f"the cell goes on after a command that failed:\n{text}"
            done = subprocess.run(["bash", "-e"], input=text.split("\n", 1)[1], env=environment, capture_output=True,
                                  text=True)
            assert done.returncode == 0 and done.stderr == "", f"{text}\n{done.stdout}{done.stderr}"
        elif text.startswith("%cd "):
            os.chdir(text[4:])
        else:
            exec(compile(text, "lesson.ipynb", "exec"), {})
    return plot.lines


def check_notes(notes, sources):
    """The stubs' words: packages, options, targets and variants that there are."""
    def words_of(start):
        return [line[len(start):].split() for line in notes if line.startswith(start)]

    script = (sources / "install-packages").read_text(encoding="utf-8")
    packages = words_of("sudo apt-get install -y ")
    assert packages and all(re.search(rf"[ ']{name}\b", script) for name in packages[0]), packages
    options = re.findall(r"-D(\w+)=", " ".join(words_of("meson setup build ")[0]))
    known = (sources / "meson_options.txt").read_text(encoding="utf-8")
    assert "exercise" in options and all(f"option('{name}'" in known for name in options), options

    names = {path.stem for folder in ("kernels", "kernels/lesson") for path in (sources / folder).glob("*.cu")}
    named = re.findall(r"--variant (\S+)", "\n".join(notes))
    assert len(named) >= 5 and {name for some in named for name in some.split(",")} <= names, named
    usage = (sources / "tests/variants/check_variants.c").read_text(encoding="utf-8")
    assert all(f'"{word}"' in usage for words in words_of("check_variants ") for word in words if word.startswith("--"))
    assert all(words == ["build", "gpuconv", "tests/variants/check_variants"] for words in words_of("ninja -C "))

    builds = [line for line in notes if line.endswith(" kernels/exercise.cu") and line[0].isdigit()]
    assert len(builds) == 2 and builds[0] != builds[1], "the edit changes nothing"


def main():
    program, sources = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    notebook = json.loads((sources / "docs/learn/lesson.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4 and notebook["metadata"]["kernelspec"]["name"] == "python3"
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells), "clear the outputs"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = pathlib.Path(folder, "bin")
        bin_folder.mkdir()
        for name in PROGRAMS:
            executable(bin_folder / name, STUB)
        executable(bin_folder / "gpuconv", GPUCONV.format(program=program))
        notes = pathlib.Path(folder, "notes")
        environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "NOTES": str(notes),
                       "SOURCES": str(sources), "BIN": str(bin_folder)}
        try:
            lines = run_cells(["".join(cell["source"]) for cell in cells], folder, environment)
            restored = pathlib.Path("kernels/exercise.cu").read_text() == (sources / "kernels/exercise.cu").read_text()
        finally:
            os.chdir(sources)
        assert list(lines) == ["reference", "cpu"], lines
        assert all(x == [3, 5, 7, 9] and min(y) > 0 for x, y in lines.values()), lines
        assert restored, "no cell starts over"
        check_notes(notes.read_text().splitlines(), sources)


main()
