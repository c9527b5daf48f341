#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cells of docs/learn/lesson.ipynb, as far as they go without a GPU: notebook.py GPUCONV SOURCES

Each cell runs, in order, in a folder of its own. Programs that install, compile or need a GPU are stubs that write down
their words. What nvcc makes is a stub, too, which prints a time and OK. The loop is compiled and runs. gpuconv is the
real one, with the CPU's variants in place of the GPU's, on a small image. matplotlib and the package gpuconv are
stubs."""
import json
import os
import pathlib
import re
import subprocess
import sys
import types

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import temporary_folder  # noqa: E402

STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$NOTES"
case "$(basename "$0") $1" in
"git clone") mkdir gpuconv; ln -s "$SOURCES/docs" "$SOURCES/samples" gpuconv ;;
"meson setup") mkdir -p build/kernels/tests/variants
               ln -s "$BIN/gpuconv" build/kernels
               ln -s "$BIN/check_variants" build/kernels/tests/variants ;;
"nvcc -arch=sm_75") for word; do
                        case "$word" in
                        *.cu) test -s "$word" && ! cmp -s "$word" docs/learn/first.cu && echo "$word" ;;
                        esac
                    done >> "$NOTES"
                    for program; do :; done
                    if test "$program" = -; then echo ld.global
                    else printf '#!/bin/sh\\necho "1.500 ms"\\necho OK\\n' > "$program"; chmod +x "$program"; fi ;;
esac
"""
PROGRAMS = ["nvidia-smi", "nvcc", "git", "sudo", "apt-get", "pip", "meson", "ninja", "check_variants"]
GPUCONV = """#!/bin/sh
echo "gpuconv $*" >> "$NOTES"
exec '{program}' --threads 1 \\
    $(echo "$*" | sed 's/--variant [^ ]*/--variant reference,cpu/; s/--bench-size [^ ]*/--bench-size 64x48/')
"""


class Plot(types.ModuleType):
    """matplotlib.pyplot: keeps the bars and the picture that are drawn."""

    def __init__(self):
        super().__init__("matplotlib.pyplot")
        self.bars, self.picture = {}, None

    def barh(self, names, values):
        self.bars = dict(zip(names, values, strict=True))

    def imshow(self, picture):
        self.picture = picture

    def __getattr__(self, name):
        return lambda *words, **options: None


def stub_package():
    """What the notebook uses of the package gpuconv."""
    package = types.ModuleType("gpuconv")
    package.read = lambda name: pathlib.Path(name).read_bytes()
    package.filter = lambda photo, name: types.SimpleNamespace(array=(len(photo), name))
    return package


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


def run_cells(cells, folder, environment):
    """Run them. Returns what they plotted."""
    plot = Plot()
    sys.modules.update({"matplotlib": types.ModuleType("matplotlib"), "matplotlib.pyplot": plot, "gpuconv": stub_package()})
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
    return plot


def check_notes(notes, sources):
    """The stubs' words: packages, options, targets and variants that there are."""
    def words_of(start):
        return [line[len(start):].split() for line in notes if line.startswith(start)]

    script = (sources / "packaging/install-packages").read_text(encoding="utf-8")
    packages = words_of("sudo apt-get install -y ")
    assert packages and all(re.search(rf"[ ']{name}\b", script) for name in packages[0]), packages
    options = re.findall(r"-D(\w+)=", " ".join(words_of("meson setup build/kernels ")[0] + words_of("pip install . ")[0]))
    known = (sources / "meson_options.txt").read_text(encoding="utf-8")
    assert "gpu_arch" in options and all(f"option('{name}'" in known for name in options), options

    names = {path.stem for path in (sources / "kernels").glob("*.cu")}
    named = re.findall(r"--variant (\S+)", "\n".join(notes))
    assert len(named) >= 2 and {name for some in named for name in some.split(",")} <= names, named
    usage = (sources / "tests/variants/check_variants.c").read_text(encoding="utf-8")
    assert all(f'"{word}"' in usage for words in words_of("check_variants ") for word in words if word.startswith("--"))
    assert words_of("ninja -C ") == [["build/kernels", "gpuconv", "tests/variants/check_variants"]]
    assert "build/learn/mine.cu" in notes, "the edit changes nothing"


def main():
    program, sources = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    notebook = json.loads((sources / "docs/learn/lesson.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4 and notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["accelerator"] == "GPU"  # Colab takes its runtime from this
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells), "clear the outputs"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    texts = ["".join(cell["source"]) for cell in cells]
    chapters = sorted((sources / "docs/learn").glob("[01]*.md"))
    assert all(f"({page.name})" in json.dumps(notebook) for page in chapters) and len(chapters) == 10, "a chapter is missing"
    book = {path.stem for path in (sources / "docs/learn").iterdir() if path.suffix in (".c", ".cu")}
    assert book <= set(re.findall(r"^build/learn/(\S+)$", "\n".join(texts), re.M)), "a program of the book does not run"
    with temporary_folder() as folder:
        bin_folder = pathlib.Path(folder, "bin")
        bin_folder.mkdir()
        for name in PROGRAMS:
            executable(bin_folder / name, STUB)
        executable(bin_folder / "gpuconv", GPUCONV.format(program=program))
        notes = pathlib.Path(folder, "notes")
        environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "NOTES": str(notes),
                       "SOURCES": str(sources), "BIN": str(bin_folder)}
        try:
            plot = run_cells(texts, folder, environment)
        finally:
            os.chdir(sources)
        steps = {name for name in book if not name.startswith("float-")} - {"loop", "threads", "timing"}
        assert set(plot.bars) == steps and set(plot.bars.values()) == {1.5}, plot.bars
        assert plot.picture == ((sources / "samples/cat.png").stat().st_size, "edge"), plot.picture
        check_notes(notes.read_text().splitlines(), sources)


main()
