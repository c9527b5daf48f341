#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batches on a cluster, with the real programs: cluster.py GPUCONV ROOT hand|kubernetes|slurm|openmpi|mpich|parallel.

Runs the lines of README.md and docs/manual.md as they stand there, and what their readers meet next: arrays whose
numbers do not begin at 0, jobs that are submitted from jobs, srun in a script, a requeue, a task that was killed, and
the examples of packaging/, without their containers. Each time the tree must hold the bytes of one unsharded run, and
no file may have been done twice. Skipped (exit status 77) where the programs are not installed."""
import filecmp
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]
import slurm  # noqa: E402
from harness import need_module, skip  # noqa: E402

FILES = 20
SECONDS = 120  # for one line
SHARDED = "--shard auto -r sharpen photos -o sharp --skip-existing --report sharp.jsonl"
# One image at a time, and slowly, so that there is a middle.
SLOW = "gpuconv -j1 --variant reference --threads 1 --shard auto -r box:6 photos -o sharp --skip-existing --report sharp.jsonl"

# In place of Apptainer, which Debian 12 lacks: it runs the command here, if the words before it are the example's.
APPTAINER = """[ "$1 $2 $3 $5 $7" = 'exec --nv --bind --pwd gpuconv.sif' ] && [ "$4" = "$6" ] && cd "$6" || exit 1
shift 7
exec "$@\""""
# The programs of each engine, under the names that the lines call them by, and the first words of its lines.
ENGINES = {
    "hand": ({}, ("for",)),
    "kubernetes": ({}, ()),
    "slurm": ({}, ("srun", "sbatch")),
    "openmpi": ({"mpirun": "mpirun.openmpi"}, ("mpirun",)),
    "mpich": ({"mpirun": "mpirun.mpich", "mpiexec.hydra": "mpiexec.hydra"}, ("mpirun",)),
    "parallel": ({"parallel": "parallel"}, ("seq",)),
}


def documented_lines(root):
    """The commands with --shard in the documents, without their comments."""
    lines = []
    for name in ("README.md", "docs/manual.md"):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for marker, block in re.findall(r"(^<!-- [^\n]* -->\n)?^```sh\n(.*?)^```", file.read(), re.M | re.S):
                if marker:
                    continue  # another test runs it
                lines += [re.sub(r"\s+# .*", "", line) for line in block.splitlines() if "--shard " in line]
    unknown = [line for line in lines if not line.startswith(tuple(word for _, words in ENGINES.values() for word in words))]
    if unknown or not lines:
        sys.exit(f"this test does not know the programs that start these: {unknown}")
    return lines


def executable(path, flags):
    return os.open(path, flags, 0o755)


def documented_check(root):
    """The manual's jq command, without the name of the report."""
    with open(os.path.join(root, "docs/manual.md"), encoding="utf-8") as file:
        return re.search(r"^<!-- jq -->\n```sh\n(.*?) sharp.jsonl\n```", file.read(), re.M | re.S).group(1)


def pods(root):
    """What the pods of packaging/kubernetes.yaml run, as one line. They have the policy of the manual."""
    need_module("yaml")
    import yaml
    with open(os.path.join(root, "packaging/kubernetes.yaml"), encoding="utf-8") as file:
        job = yaml.safe_load(file)["spec"]
    with open(os.path.join(root, "docs/manual.md"), encoding="utf-8") as file:
        policy = yaml.safe_load(re.search(r"^```yaml\n(spec:.*?)^```", file.read(), re.M | re.S).group(1))["spec"]
    if {name: job[name] for name in policy if name != "template"} | {"template": policy["template"]} != policy:
        sys.exit("packaging/kubernetes.yaml has another policy than the manual")
    container = job["template"]["spec"]["containers"][0]
    numbers = " ".join(map(str, range(job["completions"])))
    if container["env"] != [{"name": "GPUCONV_SHARDS", "value": str(job["completions"])}]:
        sys.exit("packaging/kubernetes.yaml says another number of parts than of pods")
    return (f"for i in {numbers}; do JOB_COMPLETION_INDEX=$i GPUCONV_SHARDS={job['completions']} gpuconv "
            f"{shlex.join(container['args'])} || exit 1; done")


class Place:
    """A folder with photos, where lines run."""

    def __init__(self, folder, program, links, checker):
        self.folder, self.checker = folder, checker
        self.values = {name: value for name, value in os.environ.items()
                       if not name.startswith(("SLURM_", "OMPI_", "PMI", "PARALLEL", "JOB_COMPLETION", "GPUCONV_"))}
        tools = os.path.join(folder, "bin")
        for name in ("bin", "photos", "photos/deep"):
            os.mkdir(os.path.join(folder, name))
        os.symlink(os.path.abspath(program), os.path.join(tools, "gpuconv"))
        for name, target in links.items():  # hydra looks for its parts where it is called
            self.write_tool(name, f'exec {shutil.which(target)} "$@"')
        for i in range(FILES):
            with open(os.path.join(folder, "photos", "deep" if i % 3 else "", f"{i}.png"), "wb") as file:
                subprocess.run([sys.executable, os.path.join(HERE, "..", "cli", "png.py"), str(60 + 5 * i), "90", "3"],
                               stdout=file, check=True)
        self.values.update(PATH=tools + os.pathsep + slurm.PLACES, HOME=folder, OMPI_MCA_rmaps_base_oversubscribe="1")
        if os.geteuid() == 0:  # mpirun refuses root, and a container often has no other user
            self.values.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        for blur, expected in (("sharpen", "expected"), ("box:6", "expected-slow")):
            self.run(f"gpuconv -qr {blur} photos -o {expected}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_tool(self, name, script):
        with open(self.path(f"bin/{name}"), "w", encoding="utf-8", opener=executable) as file:
            file.write(f"#!/bin/sh\n{script}\n")

    def names(self, tree):
        return sorted(os.path.relpath(os.path.join(at, name), self.path(tree))
                      for at, _, names in os.walk(self.path(tree)) for name in names)

    def run(self, line, status=0, **values):
        """Run a line. Returns its output and that of its batch scripts."""
        ran = subprocess.run(["sh", "-c", line], cwd=self.folder, env=dict(self.values, **values), timeout=SECONDS,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace")
        text = ran.stdout
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("slurm-"):
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    text += file.read()
                os.remove(self.path(name))
        if (ran.returncode != 0) != (status != 0):
            sys.exit(f"{line}: exit status {ran.returncode}\n{text}")
        return text

    def clear(self):
        shutil.rmtree(self.path("sharp"), ignore_errors=True)
        if os.path.exists(self.path("sharp.jsonl")):
            os.remove(self.path("sharp.jsonl"))

    def check(self, line, text, expected="expected"):
        """Is the tree that of one run, and every file done once? Clears both."""
        names = self.names("photos")
        if self.names("sharp") != names:
            sys.exit(f"{line}: not written: {sorted(set(names) - set(self.names('sharp')))}\n{text}")
        for name in names:
            if not filecmp.cmp(self.path(f"{expected}/{name}"), self.path(f"sharp/{name}"), shallow=False):
                sys.exit(f"{line}: {name} differs")
        with open(self.path("sharp.jsonl"), encoding="utf-8") as file:
            entries = [json.loads(report) for report in file]
        done = sorted(entry["input"] for entry in entries if entry["status"] == "done")
        if done != [os.path.join("photos", name) for name in names]:
            sys.exit(f"{line}: the report says done: {done}\n{text}")
        if shutil.which("jq"):
            self.check_report([entry for entry in entries if entry["status"] == "done"])
        self.clear()
        print("passed:", line, flush=True)
        return entries

    def check_report(self, entries):
        """The jq command says that the report is complete. It finds a lost line, a doubled one, and a shard that saw
        another listing."""
        other = [dict(entries[0], listing="0")] + entries[1:]
        failed = dict(entries[0], status="failed", error="E")
        full, damaged = dict(failed, retry=True, **{"class": "output"}), dict(failed, retry=False, **{"class": "input"})
        name, missing = failed["input"], f"{FILES - 1} of {FILES} files are there\nfalse"
        for changed, status, words in ((entries, 0, f"{FILES} of {FILES} files are there\ntrue"),
                                       (entries[1:], 1, f"{FILES - 1} of {FILES} files are there\nfalse"),
                                       (other, 1, f"{FILES - 1} of {FILES} files are there\nfalse"),
                                       ([full] + entries[1:], 1, f"run the line again: {name} (output: E)\n{missing}"),
                                       ([full, damaged] + entries[1:], 1, f"failed: {name} (input: E)\n{missing}"),
                                       ([damaged] + entries, 0, f"{FILES} of {FILES} files are there\ntrue"),
                                       ([entries[-1]] + entries, 0, f"done 2 times: {entries[-1]['output']}")):
            with open(self.path("changed.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(entry) + "\n" for entry in changed)
            said = self.run(f"{self.checker} changed.jsonl", status)
            if words not in said or (status == 0 and "failed" in said):
                sys.exit(f"jq says: {said}\nand not: {words}")

    def test(self, line, **values):
        return self.check(line, self.run(line, **values))


def test_slurm(place, root):
    array = "sbatch --array={} --wrap 'gpuconv " + SHARDED + "'"
    for numbers in ("5", "3-24:7", "1-4%2", "0-2 -n 2"):
        place.test(array.format(numbers))
    place.test("sbatch -n 4 -N 2 --wrap 'srun gpuconv " + SHARDED + "'")
    place.test("srun -n 3 -N 2 --mpi=pmi2 gpuconv " + SHARDED)
    # From inside a step of two tasks, whose variables the scripts inherit.
    step = "srun -n 2 sh -c '[ $SLURM_PROCID -eq 0 ] || {}'"
    place.test(step.format(array.format("0-2").replace("'", '"')))
    for tasks in ("-n 4", "-N 2"):
        said = place.run(f"sbatch {tasks} --wrap 'gpuconv {SHARDED}'", status=1)
        if "start gpuconv with srun" not in said or os.path.exists(place.path("sharp")):
            sys.exit(f"sbatch {tasks} without srun: {said}")
    test_killed(place)
    test_requeued(place)
    place.write_tool("apptainer", APPTAINER)
    place.test("sbatch " + shlex.quote(os.path.abspath(os.path.join(root, "packaging/slurm.sh"))))


def test_killed(place):
    """A task of an array is killed after its first output. The same line again does the rest."""
    line = f"sbatch --array=0-2 --wrap '{SLOW}'"
    kill = f"{SLOW} & until ls sharp/*.png sharp/*/*.png; do sleep 0.05; done >/dev/null 2>&1; kill -9 $!; wait $!"
    said = place.run(f"sbatch --array=0-2 --wrap '{kill}'", status=1)
    if not 0 < len([name for name in place.names("sharp") if ".gpuconv-" not in name]) < FILES:
        sys.exit(f"no task was killed in its middle: {said}")
    done = place.names("sharp")
    said = place.run(line)
    for name in done:  # a file that is written but not yet reported: SIGKILL may come between
        if not any(json.loads(report).get("output") == f"sharp/{name}" for report in open(place.path("sharp.jsonl"))):
            sys.exit(f"{name} is in no report")
    place.clear()
    print("passed: killed, then", line, flush=True)


def test_requeued(place):
    """A job is requeued after its first output. Slurm ends it by SIGTERM, and starts it again."""
    script = (f'[ -n "$SLURM_RESTART_COUNT" ] || (until ls sharp/*.png sharp/*/*.png; do sleep 0.05; done; '
              f"scontrol requeue $SLURM_JOB_ID) >/dev/null 2>&1 & exec {SLOW}")
    line = f"sbatch --requeue --wrap '{script}'"
    entries = place.check(line, place.run(line), "expected-slow")
    if not any(entry["status"] == "skipped" for entry in entries):
        sys.exit("the job was not requeued in its middle")


def main():
    program, root, engine = sys.argv[1:]
    links, words = ENGINES[engine]
    missing = next((tool for tool in links.values() if not shutil.which(tool)), None)
    missing = missing or (slurm.missing() if engine == "slurm" else None)
    if missing:
        skip(f"{missing} is not installed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    with tempfile.TemporaryDirectory(prefix="gpuconv-cluster-") as folder:
        os.mkdir(os.path.join(folder, "place"))
        place = Place(os.path.join(folder, "place"), program, links, documented_check(root))
        lines = [line for line in documented_lines(root) if line.startswith(words)]
        if engine == "hand":
            lines = ["for i in 1 2 3; do gpuconv " + SHARDED.replace("auto", "$i/3") + " || exit 1; done"]
        if engine == "kubernetes":
            lines = [pods(root)]
        if engine == "mpich":
            lines += [line.replace("mpirun", "mpiexec.hydra") for line in lines]
        if engine != "slurm":
            for line in lines:
                place.test(line)
            return
        os.mkdir(os.path.join(folder, "slurm"))
        with slurm.cluster(os.path.join(folder, "slurm")) as values:
            place.values.update((name, values[name]) for name in ("SLURM_CONF", "SBATCH_WAIT"))
            for line in lines:
                place.test(line)
            test_slurm(place, root)


main()
