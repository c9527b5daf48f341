#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the manual's lines for retries by engines, as they stand there: statuses.py GPUCONV ROOT.

The program fails for good, for a while, and in both ways at once. The engines' own commands are stand-ins that note how
they are called."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run_tests, use_python_with  # noqa: E402

use_python_with("yaml")
from write_png import png, unfiltered  # noqa: E402

GPUCONV, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
SECTION = re.search(r"^### Retries by engines\n(.*?)^## ", (ROOT / "docs/manual.md").read_text(), re.M | re.S)[1]
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```", SECTION, re.M | re.S))
# What goes wrong, by the file to damage and the report, and the exit status.
CASES = ((False, "report", 0), (True, "report", 1), (False, "/dev/full", 75), (True, "/dev/full", 75))


def prepare(is_damaged, report):
    os.makedirs("photos", exist_ok=True)
    os.makedirs("bin", exist_ok=True)
    picture = png(4, 3, 1, 8, unfiltered(bytes(range(12)), 4))
    pathlib.Path("photos/a.png").write_bytes(picture)
    pathlib.Path("photos/b.png").write_bytes(picture[:40] if is_damaged else picture)
    for name, text in (("gpuconv", f'#!/bin/sh\nexec {shlex.quote(GPUCONV)} -q "$@"\n'),
                       ("scontrol", '#!/bin/sh\necho "$@" >>calls\n')):
        path = pathlib.Path("bin", name)
        path.write_text(text)
        path.chmod(0o755)
    for name in ("sharp.jsonl", "calls"):
        pathlib.Path(name).unlink(missing_ok=True)
    shutil.rmtree("sharp", ignore_errors=True)
    os.symlink(report, "sharp.jsonl")


def environment():
    return dict(os.environ, PATH=f"bin:{os.environ['PATH']}", SLURM_ARRAY_JOB_ID="12", SLURM_ARRAY_TASK_ID="0",
                SLURM_ARRAY_TASK_MIN="0", SLURM_ARRAY_TASK_MAX="0", SLURM_ARRAY_TASK_STEP="1",
                SLURM_ARRAY_TASK_COUNT="1", SLURM_PROCID="0")


def test_slurm_repeats_what_may_succeed():
    pathlib.Path("job.sh").write_text(BLOCKS["sh"])
    for is_damaged, report, status in CASES:
        prepare(is_damaged, report)
        done = subprocess.run(["sh", "job.sh"], env=environment(), capture_output=True, text=True)
        assert done.returncode == status, (is_damaged, report, done)
        calls = pathlib.Path("calls").read_text() if os.path.exists("calls") else ""
        assert calls == ("requeue 12_0\n" if status == 75 else ""), calls


def test_airflow_gives_up_what_fails_for_good():
    class AirflowException(Exception):
        pass

    class AirflowFailException(AirflowException):
        pass

    for is_damaged, report, status in CASES:
        prepare(is_damaged, report)
        code = BLOCKS["python"].replace('"gpuconv"', f'"{GPUCONV}", "--report", "sharp.jsonl"')
        try:
            exec(code, {"subprocess": subprocess, "AirflowException": AirflowException,
                        "AirflowFailException": AirflowFailException})
            raised = None
        except AirflowException as error:
            raised = type(error)
        assert raised == {0: None, 1: AirflowFailException, 75: AirflowException}[status], (status, raised)


def test_kubernetes_gives_up_what_fails_for_good():
    """The rules of the Job's API: the first that matches an exit status, which is never 0, decides."""
    try:
        import yaml
    except ImportError:
        print("not tested: PyYAML is not installed")
        return
    spec = yaml.safe_load(BLOCKS["yaml"])["spec"]
    assert spec["completionMode"] == "Indexed" and spec["template"]["spec"]["restartPolicy"] == "Never", spec
    rules = spec["podFailurePolicy"]["rules"]

    def action(status):
        return next((rule["action"] for rule in rules if status in rule.get("onExitCodes", {}).get("values", ())), "Count")

    assert [action(status) for status in (1, 2, 75, 137, 143)] == ["FailIndex", "FailIndex", "Count", "Count", "Count"]
    assert all(rule["onExitCodes"]["operator"] == "In" for rule in rules if "onExitCodes" in rule), rules


run_tests(globals())
