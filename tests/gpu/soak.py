#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batches of foreign files, for minutes: the bytes of a GPU must be those of the CPU.

soak.py GPUCONV [--seed N] [--files 1500] [--seconds 300] [--batches N] [--first N] [--backend cuda] [--device 0|1|all]
[--library FILE] [--sanitize [TOOL=FILES,...]] [--json OUT] [--keep FOLDER] [--commit ID]

A seed makes the files: PNGs and JPEGs of writers that are not ours (tests/lib/foreign_files.py), and a part of
PngSuite, tests/data/bad.py and the fuzzers' corpus. Then batches run, one by one or several at once, each with filters,
options, files and workers by chance: named files, --jobs-from and --tar. Each output, status and message must be what
--backend cpu gives; it is asked once for each filter and options. With --backend cpu, batches of many workers must give
what one thread gives. At the end, the library filters some arrays (python/tests/product.py).

--first begins with a later batch: batch N of a seed is always the same. --sanitize runs a few batches under
compute-sanitizer, too. --keep gets the files of each mismatch. --json gets what is printed at the end. The exit status
is 0 if there was no mismatch, and 77 if there is no GPU, or no NumPy or Pillow."""
import argparse
import collections
import hashlib
import importlib.util
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(__file__).resolve().parents[2]
for room in "tests/lib", "tests/data", "tests/fuzz", "benchmarks":
    sys.path.insert(0, str(ROOT / room))
from harness import SKIP, need_module, run, skip  # noqa: E402

need_module("numpy")
need_module("PIL")
import bad  # noqa: E402
import foreign_files  # noqa: E402
import pack  # noqa: E402
from backends import describe_machine  # noqa: E402

CORES = len(os.sched_getaffinity(0))
PARAMETRIC = ("gaussian:0.7", "gaussian:2", "gaussian:8", "box:2", "box:70", "motion:9:30", "disk:4", "log:2",
              "unsharp:1:1.5:2", "unsharp:2:0.6")
RESIZES = ("resize:50%", "resize:33%:mitchell", "resize:100x100", "resize:70x", "resize:x61:triangle", "resize:130%",
           "resize:64x64:exact", "resize:90x200:exact:box", "resize:37x41:exact:lanczos2", "resize:200x200:enlarge:cubic",
           "thumbnail:60x", "thumbnail:30%:box", "thumbnail:20x20:exact:triangle", "resize:50%:pillow-bicubic",
           "resize:80x60:exact:pillow12-lanczos", "cover:64x64:pillow-mks2021")
MOVES = ("crop:70%", "crop:33%:bottom:right", "cover:64x64", "cover:201x37:left", "turn:90", "turn:180", "turn:270",
         "mirror:x", "mirror:y", "resize:90x80,pad:91x99", "resize:200x200,pad:333x200:#ff8000")
POINTS = ("grey", "invert", "sepia", "levels:10:245", "levels:3%:90%:1.3", "gamma:0.6", "brightness:-12.5", "contrast:40",
          "saturation:30", "threshold:50", "posterize:5", "tint:#ff8000", "swap:BGR", "levels:9:240,gaussian:2,saturation:20",
          "resize:60%,grey", "turn:90,contrast:20,sharpen", "pixelate:5", "pixelate:64", "auto-levels:1", "auto-contrast",
          "auto-levels,gaussian:2", "grey,pixelate:9,auto-contrast:3")
RANKS = ("median:1", "median:2", "median:7", "median:30", "rank:3:20", "rank:9.5:80:disk", "erode:7", "dilate:2.5:disk", "open:3",
         "close:2:disk", "tophat:20", "blackhat:1", "outline:2", "median,sharpen", "resize:60%,median:2")
REGIONS = ("@50%x50%+25%+25%", "@30%x100%-10%+0", "@1x1+0+0", "@40x30-5-5", "@100%x7+0+3", "@25%x60%+74.9%+39.9%")
OUTPUTS = ("--format png", "--format jpg", "--format pam", "--format png --compression 0", "--format png --compression 2",
           "--format jpg --quality 60 --subsampling 420", "--format jpg --subsampling 444", "--format jpg --progressive",
           "--alpha keep", "--alpha filter", "--strip", "--no-orient")
KINDS = ("filter", "chain", "resize", "move", "point", "rank", "region", "depth", "linear", "border", "output")
WAYS = {"files": 8, "jobs": 2, "tar": 2}  # how often
ARRAYS = 2000  # cases
KEYS = ("status", "error", "class", "retry", "width", "height", "channels", "bits", "input_width", "input_height",
        "output_bytes", "metadata_left_out", "pictures_left_out")  # keys of a report's line, equal on each backend
RECIPES = 44  # each takes the CPU's time once
SECONDS_MAX = 240  # seconds of one command: a longer one hangs
SANITIZERS_SECONDS = 500  # seconds of all tools
PRINTED = 40  # mismatches
Recipe = collections.namedtuple("Recipe", "kind filter options")
Part = collections.namedtuple("Part", "way jobs workers folder")  # jobs: (recipe, name) each; one process
TOOLS = "memcheck=150,initcheck=150,racecheck=6,synccheck=30"  # compute-sanitizer's, and files
SANITIZED = (Recipe("sanitize", "sharpen,gaussian:2", ("--format", "png")),
             Recipe("sanitize", "thumbnail:64x64:exact", ("--format", "jpg")),
             Recipe("sanitize", "crop:70%,turn:90,mirror:x,cover:64x40,pad:99x99", ("--format", "png")))


# ---- Files ----

def corpus():
    """Name and bytes of the small and damaged files of the other tests."""
    inputs = pack.named_inputs("image") | pack.packed_inputs(pack.corpus_of("image").with_suffix(".tar.xz"))
    inputs |= bad.FILES | {path.name: path.read_bytes() for path in (ROOT / "tests/data/pngsuite").glob("*.png")}
    kinds = {b"\x89P": "png", b"\xff\xd8": "jpg", b"RI": "webp", b"II": "tif", b"MM": "tif", b"P7": "pam", b"P5": "pgm",
             b"P6": "ppm"}
    for name, data in sorted(inputs.items()):
        if not name.endswith(".txt"):
            is_written = "." in name and not name.endswith((".heic", ".heif", ".hif"))  # the output has the name
            yield name if is_written else f"{name}.{kinds.get(data[:2], 'png')}", data


def make_file(seed, number, is_large):
    suffix, data = foreign_files.make(seed, number, is_large)
    name = f"{number:05}.{suffix}"
    pathlib.Path("in", name).write_bytes(data)
    return name


def make_files(seed, count):
    """Fill the folder `in`, a quarter with the corpus. Returns the names."""
    os.mkdir("in")
    small = list(corpus())
    chosen = random.Random(seed).sample(small, min(count // 4, len(small)))
    # No two outputs have one name.
    chosen = [(f"small-{number}-{name}", data) for number, (name, data) in enumerate(chosen)]
    for name, data in chosen:
        pathlib.Path("in", name).write_bytes(data)
    made = count - len(chosen)
    with multiprocessing.Pool() as pool:
        return [name for name, _ in chosen] + pool.starmap(
            make_file, [(seed, number, number < made // 200) for number in range(made)], 4)


def digest(path):
    return hashlib.blake2b(pathlib.Path(path).read_bytes(), digest_size=16).hexdigest()


# ---- What is run ----

def by_chance(seed, names):
    """The recipes of a seed, of all kinds in turn."""
    chance, out = random.Random(f"{seed} recipes"), []
    filters = [*names, *PARAMETRIC]
    for kind in itertools.islice(itertools.cycle(KINDS), RECIPES):
        one, options = chance.choice(filters), ""
        if kind == "chain":
            one = ",".join(chance.sample(filters, chance.choice((2, 2, 3))))
        elif kind == "resize":
            one = chance.choice(RESIZES) + chance.choice(("", "", ",unsharp:0.7:0.6:2"))
        elif kind == "point":
            one = chance.choice(POINTS)
        elif kind == "rank":
            one = chance.choice(RANKS)
            options = chance.choice(("", "--border zero" if "resize" not in one else "", "--border wrap", "--depth 16", "--linear"))
        elif kind == "region":
            one = ",".join(chance.choice((*filters, *POINTS[:13], *RANKS[:13], "pixelate:6", "auto-levels:2")) + chance.choice(REGIONS)
                           for _ in range(chance.choice((1, 2, 3))))
        elif kind == "move":
            one = ",".join(chance.sample((chance.choice(MOVES), chance.choice((*filters, *MOVES))), 2))
        elif kind == "depth":
            options = chance.choice(("--depth 16", "--depth 16 --linear", "--depth 8"))
        elif kind == "linear":
            options = "--linear"
        elif kind == "border":
            options = "--border " + chance.choice(("zero", "wrap", "reflect", "reflect101"))
        elif kind == "output":
            options = chance.choice(OUTPUTS)
        if kind != "output" and chance.random() < 0.3:
            options += " --format " + chance.choice(("png", "png", "jpg"))
        out.append(Recipe(kind, one, tuple(options.split())))
    return out


def ways_of(options):
    """The ways that this build has on this machine, and how often each is taken."""
    ways = dict(WAYS)
    probes = {"jobs": ("--jobs-from", "/dev/null"), "tar": ("--tar", "blur", "/dev/null", "-")}
    for way, arguments in probes.items():
        said = subprocess.run([options.program, *arguments], capture_output=True, text=True).stderr
        if "built without" in said or "cannot be loaded" in said:
            del ways[way]
    return ways


def filter_arrays(options):
    """The last line of the product of arrays, and the number of cases that fail."""
    place = "host" if options.backend == "cpu" else "torch" if importlib.util.find_spec("torch") else "cupy"
    paths = {"LD_LIBRARY_PATH": os.path.dirname(options.library), "PYTHONPATH": str(ROOT / "python")}
    paths = {name: os.pathsep.join(filter(None, (own, os.environ.get(name)))) for name, own in paths.items()}
    done = subprocess.run([sys.executable, str(ROOT / "python/tests/product.py"), str(ROOT), place, str(ARRAYS),
                           str(options.seed)], env=os.environ | paths, capture_output=True, text=True)
    print(done.stdout, end="")
    if done.returncode not in (0, 1, SKIP):
        sys.exit(f"product.py has ended with {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()[-1], done.stdout.count("\n'") + done.stdout.startswith("'")


def rows_of(text):
    """The lines of a report by the names of their files. The last line may be cut."""
    rows = {}
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[os.path.basename(row.get("input", ""))] = row
    return rows


def read(path):
    return pathlib.Path(path).read_text("utf-8", errors="replace") if os.path.exists(path) else ""


def digests_of(folder, names):
    """The digest of each of these files of a folder."""
    with ThreadPoolExecutor(CORES) as pool:
        return dict(zip(names, pool.map(lambda name: digest(os.path.join(folder, name)), names)))


def unpack(archive, folder):
    """The files of an archive, also if it is cut."""
    try:
        with tarfile.open(archive) as members:
            for member in members:
                pathlib.Path(folder, os.path.basename(member.name)).write_bytes(members.extractfile(member).read())
    except (tarfile.TarError, OSError):
        pass  # the missing files are reported


def settings(recipe):
    """The options as keys and values of a line of --jobs-from."""
    out, words = {}, list(recipe.options)
    while words:
        key = words.pop(0)[2:]
        out[key] = words.pop(0) if words and not words[0].startswith("--") else True
    return out


class Soak:
    def __init__(self, options, names):
        self.options, self.names, self.expected = options, names, {}
        self.mismatches, self.several, self.files, self.batches = 0, 0, 0, collections.Counter()
        self.on_gpu, self.ways = collections.defaultdict(collections.Counter), ways_of(options)
        listed = json.loads(run(options.program, "--list", "--json").stdout)
        self.recipes = by_chance(options.seed, [row["name"] for row in listed if row["width"] is not None])

    # ---- Commands ----

    def command(self, part):
        """The command of a part, and what it reads from standard input. Relative paths: they are in the messages."""
        folder, (recipe, _) = part.folder, part.jobs[0]
        files, out, report = [f"in/{name}" for _, name in part.jobs], f"{folder}/out", ["--report", f"{folder}/report"]
        device = ["--device", self.options.device] if self.options.backend == "cuda" else []
        program = [self.options.program, "-q", f"-j{part.workers}", "--backend", self.options.backend, *device]
        if part.way == "jobs":
            lines = [{"input": f"in/{name}", "output": self.output(one, name, out), "filter": one.filter, **settings(one)}
                     for one, name in part.jobs]
            return [*program, "--jobs-from", "-"], "".join(json.dumps(line) + "\n" for line in lines)
        program += [*recipe.options, *report, recipe.filter]
        if part.way == "tar":
            with tarfile.open(f"{folder}/in.tar", "w") as archive:
                for file in files:
                    archive.add(file)
            return [*program, "--tar", f"{folder}/in.tar", f"{folder}/out.tar"], ""
        return [*program, "--files-from", "-", "-o", out], "".join(f"{file}\n" for file in files)

    def output(self, recipe, name, folder):
        expected = self.expected[recipe][name].get("output") or name
        return os.path.join(folder, os.path.basename(expected))

    def start(self, part, before=(), seconds=SECONDS_MAX):
        """Run a part. Returns its command, exit status and messages, and a row and perhaps a digest for each file."""
        os.makedirs(f"{part.folder}/out")
        command, text = self.command(part)
        try:
            done = subprocess.run([*before, *command], input=text, capture_output=True, text=True, errors="replace",
                                  timeout=seconds)
        except subprocess.TimeoutExpired:
            return command, "timeout", [], {}, {}
        rows = rows_of(done.stdout if part.way == "jobs" else read(f"{part.folder}/report"))
        out = f"{part.folder}/out"
        if part.way == "tar":
            unpack(f"{part.folder}/out.tar", out)
        return command, done.returncode, done.stderr.splitlines(), rows, digests_of(out, os.listdir(out))

    def expect(self, recipe):
        """What the CPU makes of all files."""
        if recipe in self.expected:
            return
        workers = ["-j", str(CORES)] if self.options.backend == "cuda" else ["-j1", "--threads", "1"]
        command = [self.options.program, "-q", *workers, "--backend", "cpu", *recipe.options, "--report", "cpu.jsonl",
                   recipe.filter, "in", "-o", "cpu"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        rows = rows_of(read("cpu.jsonl"))
        if done.returncode not in (0, 1) or len(rows) != len(self.names):
            sys.exit(f"{shlex.join(command)}: exit status {done.returncode}, {len(rows)} of {len(self.names)} files\n"
                     f"{done.stderr[-2000:]}")
        made = digests_of("cpu", os.listdir("cpu") if os.path.isdir("cpu") else [])
        for row in rows.values():
            row["made"] = made.get(os.path.basename(row["output"]))
        self.expected[recipe] = rows
        shutil.rmtree("cpu", ignore_errors=True)
        os.remove("cpu.jsonl")

    # ---- Checks ----

    def differences(self, part, status, messages, rows, digests):
        """(file, sentence) for all that is not as the CPU has it; the file is None for what concerns them all."""
        wanted = [self.expected[recipe][name] for recipe, name in part.jobs]
        errors, outputs = [want["error"] for want in wanted if "error" in want], set()
        want_status = 1 if errors else 0
        if status != want_status:
            yield None, f"exit status {status}, not {want_status}"
        said = sorted(line for line in messages if not re.match(r"gpuconv: .*\d+ of \d+ (files|jobs|images) failed", line))
        want_said = sorted(f"gpuconv: {error}" for error in errors) if part.way in ("files", "tar") else []
        if said != want_said:
            yield None, f"messages: {list((collections.Counter(said) - collections.Counter(want_said)))[:5]}; " \
                        f"missing: {list((collections.Counter(want_said) - collections.Counter(said)))[:5]}"
        for recipe, name in part.jobs:
            want, row = self.expected[recipe][name], rows.get(name, {})
            keys = KEYS if want["status"] == "done" else KEYS[:4]
            wrong = [key for key in keys if want.get(key) != row.get(key)]
            output = os.path.basename(want.get("output") or name)
            outputs.add(output)
            if wrong:
                yield name, "; ".join(f"{key} is {row.get(key)!r}, not {want.get(key)!r}" for key in wrong)
            if digests.get(output) != want["made"]:
                yield name, "another picture" if output in digests and want["made"] else \
                    "no output" if want["made"] else "an output, and the CPU gives none"
        if set(digests) - outputs:
            yield None, f"unknown outputs: {sorted(set(digests) - outputs)[:5]}"
        if self.options.backend == "cuda":
            yield from self.check_gpu(part, rows)

    def check_gpu(self, part, rows):
        """Did the GPU do the work? When it fails, the CPU takes over, and the exit status is 0."""
        done = [row for row in rows.values() if row["status"] == "done"]
        filtered = [row for row in done if row.get("backend") == "cuda"]
        count = self.on_gpu[part.way]
        count.update(files=len(done), filtered=len(filtered))
        count.update(decoded=sum("upload" not in row["ms"] for row in filtered),
                     encoded=sum("download" not in row["ms"] for row in filtered))
        if len(filtered) < 0.9 * len(done):
            yield None, f"the GPU filtered {len(filtered)} of {len(done)} files"

    def keep(self, folder, part, command, name):
        """The command, and for one file its input, the wrong output and the right one."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "command").write_text(f"{shlex.join(command)}\n{self.command(part)[1]}", "utf-8")
        for recipe in [recipe for recipe, one in part.jobs if one == name]:
            output = self.output(recipe, name, f"{part.folder}/out")
            shutil.copy(f"in/{name}", folder / f"input-{name}")
            if os.path.exists(output):
                shutil.copy(output, folder / f"actual-{os.path.basename(output)}")
            subprocess.run([self.options.program, "-q", "--backend", "cpu", *recipe.options, recipe.filter, f"in/{name}",
                            folder / f"expected-{os.path.basename(output)}"], capture_output=True)

    def report(self, number, part, result):
        command = result[0]
        for name, sentence in self.differences(part, *result[1:]):
            self.mismatches += 1
            if self.mismatches > PRINTED:
                continue
            print(f"MISMATCH seed {self.options.seed}, batch {number}, {name or 'all files'}: {sentence}\n"
                  f"    {shlex.join(command)[:2000]}", flush=True)
            if self.options.keep:
                self.keep(pathlib.Path(self.options.keep, f"{self.options.seed}-{number}-{os.path.basename(part.folder)}"),
                          part, command, name)
        self.files += len(part.jobs)

    # ---- Batches ----

    def part(self, chance, number, folder):
        """One process of a batch."""
        known = self.recipes[:4 + number // 4]  # later batches have more recipes, so that a short run needs few
        way = chance.choices(list(self.ways), self.ways.values())[0]
        recipe = chance.choice(known)
        recipes = chance.sample(known, min(len(known), 4)) if way == "jobs" else [recipe]
        for one in recipes:
            self.expect(one)
        files = chance.choices(("", ".png", ".jpg", "intact"), (5, 3, 1, 1))[0]
        names = [name for name in self.names if name.endswith(files) or files == "intact" and
                 all(self.expected[one][name]["status"] == "done" for one in recipes)]
        names = chance.sample(names, max(1, round(len(names) * chance.uniform(0.7, 1))))
        return Part(way, [(chance.choice(recipes), name) for name in names], chance.randrange(1, 25), folder)

    def batch(self, number):
        chance = random.Random(f"{self.options.seed} batch {number}")
        count = chance.choice((2, 3, 4)) if chance.random() < 0.15 else 1
        parts = [self.part(chance, number, f"batch/{i}") for i in range(count)]
        shutil.rmtree("batch", ignore_errors=True)
        with ThreadPoolExecutor(count) as pool:
            for part, result in zip(parts, pool.map(self.start, parts)):
                self.report(number, part, result)
                self.batches[f"{part.way}, {'several recipes' if part.way == 'jobs' else part.jobs[0][0].kind}"] += 1
                self.several += count > 1

    def sanitize(self):
        """Whole batches under compute-sanitizer: files, errors and seconds of each tool, or why there are none."""
        program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(program):
            return {"skipped": "compute-sanitizer is not installed"}
        by_size = sorted(self.names, key=lambda name: os.path.getsize(f"in/{name}"))
        end, found = time.monotonic() + SANITIZERS_SECONDS, {}
        for tool, count in (word.split("=") for word in self.options.sanitize.split(",")):
            count = int(count)
            share = 9 if count > 100 else 5  # racecheck takes longest
            chosen = by_size[len(by_size) // 4:len(by_size) * share // 10]
            chosen = random.Random(f"{self.options.seed} {tool}").sample(chosen, min(count, len(chosen)))
            found[tool] = sums = {"files": 0, "errors": 0, "seconds": 0}
            for recipe in SANITIZED:
                start, log = time.monotonic(), os.path.abspath(f"{tool}.log")
                self.expect(recipe)
                shutil.rmtree("batch", ignore_errors=True)
                pathlib.Path(log).unlink(missing_ok=True)
                part = Part("files", [(recipe, name) for name in chosen], 8, f"batch/{tool}")
                before = (program, "--tool", tool, "--error-exitcode", "99", "--log-file", log)
                self.report(tool, part, self.start(part, before, max(end - start, 10)))
                errors = re.findall(r"SUMMARY: (\d+)", read(log)) or ["1"]  # a tool without a summary has not ended
                sums.update(files=sums["files"] + len(chosen), errors=sums["errors"] + int(errors[-1]),
                            seconds=round(sums["seconds"] + time.monotonic() - start, 1))
                if errors[-1] != "0":
                    self.mismatches += 1
                    print("\n".join(read(log).splitlines()[:60]))
            print(f"{tool}: {sums}", flush=True)
        return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=1500)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--batches", type=int, default=1 << 30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--device", default="0")
    parser.add_argument("--sanitize", nargs="?", const=TOOLS)
    parser.add_argument("--json")
    parser.add_argument("--keep")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    options.library = os.path.abspath(options.library or pathlib.Path(options.program).parent / "src/libgpuconv.so.0")
    for name in ("json", "keep"):
        if getattr(options, name):
            setattr(options, name, os.path.abspath(getattr(options, name)))
    if options.backend == "cuda" and "no CUDA device" in run(options.program, "--devices").stdout:
        skip("there is no GPU")
    memory = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30 else None
    with tempfile.TemporaryDirectory(prefix="gpuconv-", dir=memory) as folder:
        os.chdir(folder)
        soak = Soak(options, make_files(options.seed, options.files))
        size = sum(os.path.getsize(f"in/{name}") for name in soak.names)
        print(f"{len(soak.names)} files, {size / 1e6:.0f} MB", flush=True)
        start, shown = time.monotonic(), time.monotonic()
        for number in range(options.first, options.first + options.batches):
            if time.monotonic() - start > options.seconds:
                break
            soak.batch(number)
            if time.monotonic() - shown > 15:
                shown = time.monotonic()
                print(f"{shown - start:.0f} s: batch {number}, {soak.files} files, {soak.mismatches} mismatches", flush=True)
        seconds = time.monotonic() - start
        sanitizers = soak.sanitize() if options.sanitize else {}
        os.chdir("/")
    arrays, failed = filter_arrays(options) if os.path.exists(options.library) else ("skipped: there is no library", 0)
    for kind, count in sorted(soak.batches.items()):
        print(f"{count:4} {kind}")
    result = {"version": run(options.program, "--version").stdout.splitlines()[0], "backend": options.backend,
              "seed": options.seed, "seconds": round(seconds, 1), "batches": soak.batches.total(),
              "several_at_once": soak.several, "files": soak.files, "different_files": len(soak.names), "bytes": size,
              "mismatches": soak.mismatches + failed, "arrays": arrays, "kinds": dict(sorted(soak.batches.items())),
              "on_gpu": soak.on_gpu, "sanitizers": sanitizers}
    if options.backend == "cuda" and shutil.which("nvidia-smi"):
        result = describe_machine(options.commit) | result
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        pathlib.Path(options.json).write_text(text + "\n", "utf-8")
    return 1 if result["mismatches"] else 0


if __name__ == "__main__":
    sys.exit(main())
