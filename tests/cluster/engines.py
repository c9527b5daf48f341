#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Engines that give jobs to workers, each a process with --jobs-from: engines.py GPUCONV kill|parallel|dask|ray|spark.

`kill` is an engine of a few lines: it gives 10,000 images to four workers, and kills one of them fifty times in the
middle. The others are real programs, GNU parallel from Debian and the rest from PyPI. Each time every output must hold
the bytes of a single run, every job must have one answer, and nothing else may lie in
the folder. Skipped (exit status
77) where the program is not installed."""
import collections
import importlib
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import skip  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PICTURES = 7
FILTERS = ("blur", "sharpen", "emboss")
WORKERS, IN_FLIGHT, KILLS = 4, 6, 50


class Worker:
    """A process that does jobs. It lives in whatever an engine calls a worker."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "--jobs-from", "-", "-q", "-j1"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def send(self, job):
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        """The next answer, or None if the process was killed. It may have cut the last line."""
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def do(self, job):
        self.send(job)
        return self.answer()


def prepare(program, count):
    """The jobs, and the bytes that each must write."""
    want = {}
    os.mkdir("out")
    for seed in range(PICTURES):
        data = bytes((i * i + 11 * seed) % 253 for i in range(24 * 18 * 3))
        pathlib.Path(f"{seed}.png").write_bytes(png(24, 18, 3, 8, unfiltered(data, 72)))
        for name in FILTERS:
            subprocess.run([program, name, f"{seed}.png", "want.png"], check=True)
            want[f"{seed}.png", name] = pathlib.Path("want.png").read_bytes()
    folder = os.getcwd()  # an engine may work elsewhere
    jobs = [{"id": i, "filter": FILTERS[i % 3], "input": f"{folder}/{i % PICTURES}.png", "output": f"{folder}/out/{i}.png"}
            for i in range(count)]
    return jobs, {i: want[f"{i % PICTURES}.png", FILTERS[i % 3]] for i in range(count)}


def check(answers, want, kills):
    """KILLS workers were killed. Each may have left a file that it was writing, under its hidden name."""
    counts = collections.Counter(answer["id"] for answer in answers)
    assert all(answer["status"] == "done" for answer in answers), next(a for a in answers if a["status"] != "done")
    assert set(counts) == set(want) and set(counts.values()) == {1}, "an answer is missing, or there are two"
    left = [name for name in os.listdir("out") if re.fullmatch(r"\.gpuconv-[0-9a-f]{16}", name)]
    assert sorted(set(os.listdir("out")) - set(left)) == sorted(f"{i}.png" for i in want)
    assert len(left) <= kills, f"{kills} kills left {len(left)} files"
    for i, data in want.items():
        assert pathlib.Path(f"out/{i}.png").read_bytes() == data, i


# ---- Engines ----

def serve(program, jobs, answers, workers, number):
    """Give jobs to worker NUMBER until none is left. If the worker is killed, start another and give it those again
    that have no answer."""
    waiting = {}
    worker = workers[number] = Worker(program)
    while jobs or waiting:
        try:
            while jobs and len(waiting) < IN_FLIGHT:
                job = jobs.popleft()
                waiting[job["id"]] = job
                worker.send(job)
            answer = worker.answer() if waiting else None
        except BrokenPipeError:
            answer = None
        except IndexError:  # another worker has taken the last job
            continue
        if answer is not None:
            waiting.pop(answer["id"])
            answers.append(answer)
        elif waiting:
            worker.process.wait()
            jobs.extend(waiting.values())
            waiting.clear()
            worker = workers[number] = Worker(program)
    worker.process.stdin.close()
    worker.process.wait()


def kill(program, jobs):
    """Four workers, one of which is killed whenever another part of the answers is there."""
    count = len(jobs)
    jobs, answers, workers = collections.deque(jobs), [], [None] * WORKERS
    threads = [threading.Thread(target=serve, args=(program, jobs, answers, workers, i)) for i in range(WORKERS)]
    for thread in threads:
        thread.start()
    chance = random.Random(1)
    for i in range(KILLS):
        while len(answers) < (i + 1) * count // (KILLS + 1):
            threads[0].join(0.0005)
        chance.choice([worker for worker in workers if worker is not None]).process.kill()
    for thread in threads:
        thread.join()
    return answers


def parallel(program, jobs):
    if not shutil.which("parallel"):
        skip("GNU parallel is not installed")
    lines = "".join(json.dumps(job) + "\n" for job in jobs).encode()
    done = subprocess.run(["parallel", "--pipe", "-j4", "-N100", "-q", program, "-q", "-j1", "--filter", "blur", "--jobs-from",
                           "-"], input=lines, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def dask(program, jobs):
    """Each of Dask's workers keeps one process, in an attribute of the worker."""
    distributed = importlib.import_module("distributed")

    def do(job):
        own = distributed.get_worker()
        if not hasattr(own, "gpuconv"):
            own.gpuconv = Worker(program)
        return own.gpuconv.do(job)

    with distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster, \
            distributed.Client(cluster) as client:
        return client.gather(client.map(do, jobs, pure=False))


def ray(program, jobs):
    """Each actor keeps one process."""
    ray = importlib.import_module("ray")
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    actors = [ray.remote(Worker).remote(program) for _ in range(WORKERS)]
    answers = ray.get([actors[i % WORKERS].do.remote(job) for i, job in enumerate(jobs)])
    ray.shutdown()
    return answers


def spark(program, jobs):
    """A process for each partition."""
    sql = importlib.import_module("pyspark.sql")
    session = sql.SparkSession.builder.master(f"local[{WORKERS}]").getOrCreate()
    lines = session.sparkContext.parallelize([json.dumps(job) for job in jobs], 2 * WORKERS)
    answers = lines.pipe(f"{program} -q -j1 --jobs-from -").collect()
    session.stop()
    return [json.loads(line) for line in answers]


def main(program, name):
    module = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}.get(name)
    if module and not importlib.util.find_spec(module):
        skip(f"{module} is not installed")
    if name == "spark" and not shutil.which("java"):
        skip("Java is not installed")
    jobs, want = prepare(program, 10000 if name == "kill" else 1000)
    check(globals()[name](program, jobs), want, KILLS if name == "kill" else 0)


if __name__ == "__main__":
    FOLDER, PROGRAM = tempfile.mkdtemp(prefix="gpuconv-"), os.path.abspath(sys.argv[1])
    os.chdir(FOLDER)
    try:
        main(PROGRAM, sys.argv[2])
    finally:
        os.chdir("/")
        shutil.rmtree(FOLDER)
