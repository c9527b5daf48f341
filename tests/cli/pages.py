#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the commands of README.md, llms.txt and docs/: pages.py GPUCONV ROOT words|gpu.

Every command of a block `sh`, of an indented line and in backticks has its row in RULES or is in a block of OWNED; one
that has none fails the test. Commands run as they stand in a folder with pictures; images of the benchmark are smaller.
With `words`, what needs a GPU, the compiler or other libraries has its words checked. With `gpu`, what needs a GPU
runs; the test is skipped (exit status 77) where there is none."""
import argparse
import json
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest.mock

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run, skip  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM = (r"(?:[A-Z_]+=\S+ )*(?:(?:build/)?gpuconv |build/|docs/learn/count |\./\w"
           r"|(?:benchmarks|tests/\w+|docs)/\w+\.(?:py|sh)|(?:python3|meson|ninja|nvcc|gdb|g?cc|ncu|git|make|apt-get|dpkg-buildpackage|srun|sbatch|mpirun|check_variants) )")
# The marker before a block, and what runs it.
OWNED = {"run": ".ci/run", "test": ".ci/run", "jq": "tests/cluster/cluster.py", "jq: answers": "tests/cli/answers.py",
         "slurm: requeue": "tests/cli/statuses.py", "digest": "tests/cli/digests.py"}
NOT_MANUALS = ["CONTRIBUTING.md", "SECURITY.md"]
MODULES = ["cv2", "matplotlib", "matplotlib.pyplot", "matplotlib.ticker", "numpy"]
NO_GPU = re.compile("no GPU can be used|was built without (CUDA|libarchive)")

GPUCONV, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
BUILD = pathlib.Path(GPUCONV).parent
VARIANTS = {row["name"]: row for row in json.loads(run(GPUCONV, "--list-variants", "--json").stdout)}
KERNELS = {path.stem: path for path in (ROOT / "kernels").glob("*.cu")}
IS_GPU = sys.argv[3] == "gpu"
TOP = pathlib.Path(tempfile.mkdtemp(prefix="gpuconv-"))


def source(name):
    return (ROOT / name).read_text(encoding="utf-8")


def commands(text):
    """The commands of a page, without comments."""
    text = text.replace("\\\n", "")
    fence = r"(?:^<!-- ([^\n]*) -->\n)?^```(\w*)\n(.*?)^```"
    found = [line for marker, kind, body in re.findall(fence, text, re.M | re.S) if kind == "sh" and marker not in OWNED
             for line in body.splitlines()]
    rest = re.sub(fence, "", text, flags=re.M | re.S)
    found += re.findall(rf"^    ({PROGRAM}.*)", rest, re.M)
    found += re.findall(rf"`({PROGRAM}[^`]*)`", rest)
    return [" ".join(re.sub(r"\s+# .*", "", line).split()) for line in found]


def make_folder(folder):
    """What the commands expect where they run."""
    (folder / "build/tests").mkdir(parents=True)
    (folder / "build/codecs").symlink_to(BUILD / "codecs")
    for name in ("photos/deep", "more", "expected", "actual", "bin"):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "build"):
        (folder / name / "gpuconv").symlink_to(GPUCONV)
    (folder / "build/tests/variants").symlink_to(BUILD / "tests/variants")
    for name in ("docs", "samples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin/curl").write_text("#!/bin/sh\ncat photo.png\n")
    (folder / "bin/zstd").write_text('#!/bin/sh\n[ "$1" != -dc ] || exec cat photos.tar\ncat\n')
    for name in ("curl", "zstd"):
        (folder / "bin" / name).chmod(0o755)
    picture = png(40, 30, 3, 8, unfiltered(bytes(i * i % 251 for i in range(3600)), 120))
    for name in ("photo", "in", "a", "mask", "expected", "actual", "photos/a", "photos/deep/b", "expected/a", "actual/a"):
        (folder / f"{name}.png").write_bytes(picture)
    for name in ("photo", "photos/c", "more/b"):
        run(GPUCONV, "identity", str(folder / "photo.png"), str(folder / f"{name}.jpg"))
    (folder / "photo.heic").write_bytes(picture)  # a format is what the first bytes say
    (folder / "large.png").write_bytes(png(700, 800, 3, 8, unfiltered(os.urandom(1680000), 2100), level=0))
    (folder / "mine.txt").write_text("1 2 1\n")
    (folder / "halo.pgm").write_bytes(b"P5 2 1 255\n\0\1")  # which a program for a GPU writes
    for name, text in re.findall(r"<!-- filter: (\S+) -->\n```\n(.*?)```", source("docs/learn/colours.md"), re.S):
        (folder / name).write_text(text)
    for name in ("photos", "in"):
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            archive.add(folder / "photos", "photos")


def start(line):
    """Run a line in a fresh folder."""
    folder = TOP / "work"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TOP / "fresh", folder, symlinks=True)
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, capture_output=True, text=True, env=dict(
        os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", URL="none"))


def expect(line):
    """Run it to its end. Without a GPU or a library, one that needs it may say so; its words were accepted then."""
    done = start(line)
    lacks_gpu = not IS_GPU and done.returncode == 1 and NO_GPU.search(done.stderr)
    lacks_library = done.returncode == 2 and "gpuconv: this gpuconv was built without lib" in done.stderr
    assert done.returncode == 0 or lacks_gpu or lacks_library, f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def small(line):
    """The line of the benchmark with a small image."""
    line = re.sub(r" --bench-size \S+", "", line) + " --bench-size 64x48 --threads 1"
    return line if "--bench-filter" in line else line + " --bench-filter int8-3"


def bench(line):
    named = re.search(r"--variant (\S+)", line)
    for name in named.group(1).split(",") if named else []:
        assert name in KERNELS or name in VARIANTS, f"{line}: there is no {name}"
        if name not in VARIANTS or not VARIANTS[name]["built_in"] or VARIANTS[name]["backend"] == "cuda" and not IS_GPU:
            line = line.replace(named.group(), "--variant cpu")  # for the other words
    return expect(small(line))


def profile(line):
    """The metrics are those that were counted for the page's table; the kernel is the variant's."""
    metrics = re.search(r"--metrics (\S+)", line).group(1).split(",")
    kernel, variant = re.search(r"--kernel-id '::regex:\^(\w+)\$:1'.*--variant (\S+)", line).groups()
    counted = json.loads(source("benchmarks/lesson-h200.json"))["profile"][variant]
    assert metrics and all(name in counted for name in metrics), metrics
    assert re.search(rf"__global__ void (?:__launch_bounds__\(.*?\) )?{kernel}\(", KERNELS[variant].read_text()), kernel
    bench(line[line.index("build/gpuconv"):])
    if IS_GPU and shutil.which("ncu"):
        said = start(small(line)).stdout
        is_refused = "ERR_NVGPUCTRPERM" in said  # on some machines the counters are for root alone
        assert is_refused or all(name in said for name in metrics), said


def profile_words(line):
    metrics = re.search(r"--metrics (\S+)", line).group(1).split(",")
    counted = json.loads(source("benchmarks/learn-h200.json"))["profile"]["words.cu 0"]
    assert metrics and all(name in counted for name in metrics), metrics


def compile_program(line):
    """A program of the book, where its compiler is installed."""
    name = re.match(r"docs/learn/count (\S+)", line)
    assert name is None or (ROOT / f"docs/learn/{name.group(1)}.cu").exists(), line
    compiler = "nvcc" if name else line.split()[0]
    if shutil.which(compiler) and (name is None or name.group(1) == "first"):  # nvcc takes a second or two
        done = start(line)
        assert done.returncode == 0 and re.search(r"ld\.|vectorized|registers", done.stdout + done.stderr), done


def in_head(line):
    """benchmarks/learn.py runs what is in the heads of programs."""
    assert f"     {line} */\n" in source(re.search(r"docs/learn/\S+", line).group()), line


def set_up(line):
    """With the compiler, set up and list what would be built."""
    words = shlex.split(line)
    if words[0] == "meson":
        for word in filter(lambda word: word.startswith("-D"), words[3:]):
            assert f"option('{word[2:word.index('=')]}'" in source("meson_options.txt"), line
    if not any(row["built_in"] for row in VARIANTS.values() if row["backend"] == "cuda"):
        words = words if words[0] == "ninja" else ["true"]
        words[1:3] = ["-C", str(BUILD)]
    elif words[0] == "meson":
        words[2:3] = [str(TOP / "build"), str(ROOT)]
    else:
        words[2] = str(TOP / "build")
    if words[0] == "ninja":
        words.append("-n")
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"


def start_debugger(line):
    """The debugger starts this build in place of the one for it."""
    expect(line.replace("gdb --args build-debug", "build"))


def watch(line):
    """The first round writes the result of a photo, and the second one leaves it."""
    once = re.sub(r"^while sleep \d+", "for round in 1", line)
    expect(f"{once} && cp -p web/c.webp once && {once} && ! [ web/c.webp -nt once ]")


def list_suite(line):
    suite = line.split()[-1]
    assert any(f"'{suite}'" in path.read_text() for path in (ROOT / "tests").rglob("meson.build")), line


def check(line):
    """Skipped by itself without a GPU."""
    name = re.search(r"--variant (\S+)", line).group(1)
    assert name in KERNELS, line
    done = start(line)
    expected = [0] if IS_GPU else [0, 77]
    assert done.returncode in expected, f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}"


def time_files(line):
    program, option, name = line.split()
    program = program.removeprefix("build/")
    assert f"{os.path.basename(program)} {option} FILE" in source(program + ".c")
    if IS_GPU and (BUILD / program).exists():
        expect(line.replace(name, str(ROOT / "samples" / ("cat.png" if ".png" in name else "rocket.jpg"))))


def accept(line):
    """The script's argparse accepts the words; nothing more of it runs."""
    words = shlex.split(line.removeprefix("python3 "))
    parse = argparse.ArgumentParser.parse_args

    def parse_only(parser):
        parse(parser)
        raise InterruptedError

    with unittest.mock.patch.object(argparse.ArgumentParser, "parse_args", parse_only), \
            unittest.mock.patch.object(sys, "argv", words), \
            unittest.mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]), \
            unittest.mock.patch.dict(sys.modules, {name: unittest.mock.MagicMock() for name in MODULES}):
        try:
            runpy.run_path(str(ROOT / words[0]), run_name="__main__")
        except InterruptedError:
            return
    raise AssertionError(f"{line}: this is no script with argparse")


def name_script(line):
    """A script that the text names, with no operands but numbers."""
    name, *words = re.sub(r"^(\w+=\S+ )+python3 ", "", line).split()
    assert all(word in source(name) for word in words if not word.isdigit()), line


def elsewhere(name, words):
    """A command that the test NAME runs; there it has WORDS."""
    def look(line):
        assert words in source(name), f"{line}: {name} does not run it"
    return look


def list_failures(line):
    """Two runs with a damaged file: jq names it once."""
    if shutil.which("jq"):
        said = start("echo >photos/x.png; for i in 1 2; do gpuconv -q -r grey photos -o web --report web.jsonl; done; " + line)
        assert re.fullmatch(r"photos/x\.png: .+\n", said.stdout), said


# A pattern of whole commands, the function for it, and whether it does more with a GPU. The first that matches counts.
RULES = [
    (r".* --shard .*", elsewhere("tests/cluster/cluster.py", "--shard "), False),
    (r"nvcc -arch=sm_75 docs/learn/[\w/-]+\.cu -o [\w-]+ && \./[\w-]+( \w+\.pgm)*", in_head, False),
    (r"build/tests/emulated/book_emulated .*", elsewhere("tests/emulated/meson.build", "executable('book_emulated'"), False),
    (r"docs/learn/count [\w-]+|cc -O3 -fopt-info-vec .*|nvcc .* -Xptxas -v .*", compile_program, False),
    (r"ncu .* \./words", profile_words, False),
    (r"jq -rs .* web\.jsonl", list_failures, False),
    (r"make accept", elsewhere("tests/cli/recipes.py", '"make", "-s", "accept"'), False),
    (r"python3 -m venv env && env/bin/pip install gpuconv-\*\.whl", elsewhere(
        "packaging/try.sh", "python3 -m venv venv &&"), False),
    (r"pip install gpuconv-\*\.whl", elsewhere(".ci/functions", 'pip" install --quiet --no-deps "$work"'), False),
    (r"tar -xf gpuconv-.*", elsewhere("packaging/try.sh", "tar -xf gpuconv-*-linux-x86_64.tar.zst"), False),
    (r"podman .*|git archive HEAD \| podman build .*", elsewhere("packaging/try_container.sh", "buildah bud"), False),
    (r"gpuconv --conformance --json", elsewhere("tests/cli/conformance.case", "gpuconv --conformance some --json"), False),
    (r"meson install -C build", elsewhere(".ci/functions", "meson install -C"), False),
    (r"meson setup build -DOPTION=VALUE", elsewhere(".ci/functions", 'meson setup "$folder" "$@"'), False),
    (r"packaging/install-packages( tests)?", elsewhere("tests/unit/readme.py", '"install-packages"'), False),
    (r"cc -static", elsewhere("tests/library/installed.py", '["-static",'), False),
    (r"apt-get build-dep \.", elsewhere(".ci/functions", "apt-get build-dep -y ."), False),
    (r"dpkg-buildpackage -us -uc -b", elsewhere(".ci/functions", "dpkg-buildpackage -us -uc -b"), False),
    (r"python3 benchmarks/tables.py build/gpuconv", elsewhere("tests/unit/meson.build", "'tables.py', gpuconv"), False),
    (r"meson test -C build --benchmark", elsewhere("tests/library/meson.build", "benchmark('library'"), False),
    (r"meson test -C build --setup all", elsewhere(".ci/run", "--setup all"), False),
    (r"meson test -C build", elsewhere(".ci/functions", 'meson test -C "$1"'), False),
    (r"git clone URL gpuconv.*", elsewhere("tests/cli/notebook.py", '"git clone"'), False),
    (r"benchmarks/(peers|png_peers|array_peers|backends|join|learn|scale|lists)\.py|tests/gpu/soak\.py|tests/variants/choice\.py --update"
     r"|tests/cluster/engines\.py", name_script, False),
    (r"(python3 )?benchmarks/\w+\.py .*", accept, False),
    (r"(\w+=\S+ )+python3 benchmarks/\w+\.py .*", name_script, False),
    (r"(meson setup|ninja -C) build(-debug)? .*", set_up, False),
    (r"gdb --args .*", start_debugger, False),
    (r"meson test -C build --suite \w+", list_suite, False),
    (r"while sleep \d+; do .*; done", watch, False),
    (r"tests/fuzz/run\.sh filter 10", elsewhere(".ci/functions", "tests/fuzz/run.sh"), False),
    (r"tests/data/bad\.py", elsewhere("tests/data/meson.build", "'bad.py'"), False),
    (r"build/tests/fuzz/replay_image .*", elsewhere("tests/fuzz/meson.build", "'replay_'"), False),
    (r"tests/gpu/soak\.py build/gpuconv .*", elsewhere("tests/gpu/meson.build", "'--backend', 'cpu'"), False),
    (r"tests/golden/golden\.py build/gpuconv --update", elsewhere("tests/golden/meson.build", "'golden.py'"), False),
    (r"PYTHONPATH=.* python/tests/product\.py .*", elsewhere("python/tests/meson.build", "'product.py'"), False),
    (r"GPUCONV_STUB_FAIL=.* build/tests/gpuconv-stub .*", elsewhere("tests/faults/gpu.py", "GPUCONV_STUB_FAIL"), False),
    (r"build/tests/variants/check_variants --quick --variant \w+", check, True),
    (r"build/codecs/tests/\w+/check_\w+ --bench PHOTO(\.png)?\.\.\.", time_files, True),
    (r"ncu .* build/gpuconv .*", profile, True),
    (r"(build/)?gpuconv --bench.*", bench, True),
    (r"gpuconv .*--backend cuda.*", expect, True),
    (r"parallel --pipe .*", elsewhere("tests/cluster/engines.py", '"parallel", "--pipe"'), False),
    (r"gpuconv .*--pages? .*", elsewhere("tests/cli/page_numbers.py", '"--page"'), False),
    (r"((find|curl|printf|zstd) .*\| |GPUCONV_\w+=\w+ )?(build/)?gpuconv .*", expect, False),
]


def main():
    if IS_GPU and run(GPUCONV, "--devices").stdout.startswith("no CUDA device"):
        skip("there is no GPU")
    make_folder(TOP / "fresh")
    unknown, count, passed = [], 0, set()
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name not in NOT_MANUALS]
    assert len(source("llms.txt").splitlines()) <= 60
    for page in ["README.md", "llms.txt", *sorted(str(path.relative_to(ROOT)) for path in pages)]:
        for line in commands(source(page)):
            rule = next((rule for rule in RULES if re.fullmatch(rule[0], line)), None)
            if rule is None:
                unknown.append(f"{page}: {line}")
            elif rule[2] or not IS_GPU:
                count += 1
                if line not in passed:  # other pages have it, too
                    rule[1](line)
                    print("passed:", line, flush=True)
                passed.add(line)
    assert not unknown, "no test runs these; give them a row in RULES:\n" + "\n".join(unknown)
    assert count >= (8 if IS_GPU else 60), count


try:
    main()
finally:
    shutil.rmtree(TOP)
