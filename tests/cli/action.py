#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the steps of action.yml as a server does: action.py GPUCONV ROOT.

The inputs are those of the manual's example. The steps get the variables and files that a server sets, and a wheel with
this gpuconv, from where the release's would be. Skipped (exit status 77) where PyYAML or venv is not installed."""
import os
import pathlib
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree
import zipfile

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import need_module, run_tests, skip  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

need_module("yaml")
import yaml  # noqa: E402

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
VERSION = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]
ALWAYS = "!cancelled() && steps.compare.outputs.page != ''"
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
used = set()  # the expressions that some step has taken


def make_wheel(folder):
    """As packaging/portable.sh names it; its command starts PROGRAM."""
    tag, info = f"py3-none-manylinux_2_28_{platform.machine()}", f"gpuconv-{VERSION}.dist-info"
    assert "-py3-none-manylinux_2_28_$cpu.whl" in (ROOT / "packaging/portable.sh").read_text(encoding="utf-8")
    folder.mkdir(parents=True)
    command = zipfile.ZipInfo(f"gpuconv-{VERSION}.data/scripts/gpuconv")
    command.external_attr = 0o100755 << 16
    with zipfile.ZipFile(folder / f"gpuconv-{VERSION}-{tag}.whl", "w") as wheel:
        wheel.writestr(command, f'#!/bin/sh\nexec {PROGRAM} "$@"\n')
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: gpuconv\nVersion: {VERSION}\nRequires-Dist: none\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        wheel.writestr(f"{info}/RECORD", "")


def run(inputs, host=pathlib.Path("host")):
    """Run the action. Returns whether all steps passed, the summary, what was uploaded, and the outputs."""
    values = {f"inputs.{name}": about.get("default") for name, about in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()} | {ALWAYS: True}
    values |= {"github.server_url": host.resolve().as_uri(), "github.action_repository": "o/g"}
    files = {name: pathlib.Path(name).resolve() for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    passes, path, uploads = True, os.environ["PATH"], []

    def fill(text):
        used.update(EXPRESSION.findall(text))
        return EXPRESSION.sub(lambda found: str(values[found[1]]), text)

    for step in ACTION["runs"]["steps"]:
        if "run" not in step:  # after a failure, too
            assert fill(step["if"]) == "True"
            uploads.append({name: fill(text) for name, text in step["with"].items()})
        elif passes:
            assert step["shell"] == "bash" and not EXPRESSION.search(step["run"]), step  # text of others would be code
            for file in files.values():
                file.write_text("")
            pathlib.Path("step.sh").write_text(step["run"])
            values_of_step = {name: fill(text) for name, text in step["env"].items()}
            passes = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh"], env=dict(
                os.environ, **files, **values_of_step, PATH=path, RUNNER_TEMP=os.path.abspath("a temp"),
                GITHUB_ACTION_PATH=ROOT, PIP_NO_INDEX="1")).returncode == 0
            path = files["GITHUB_PATH"].read_text().replace("\n", ":") + path
            for name, value in (line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines()):
                values[f"steps.{step['id']}.outputs.{name}"] = value
    outputs = {name: fill(about["value"]) for name, about in ACTION["outputs"].items()}
    assert values.keys() - used <= {"github.server_url"}, values.keys() - used
    return passes, files["GITHUB_STEP_SUMMARY"].read_text(), uploads, outputs


def put(name, *levels):
    pathlib.Path(name).parent.mkdir(exist_ok=True)
    pathlib.Path(name).write_bytes(png(3, 1, 1, 8, unfiltered(bytes(levels), 3)))


def test_action():
    if subprocess.run([sys.executable, "-m", "venv", "venv"]).returncode != 0:
        skip("this Python makes no virtual environment")  # which has pip
    os.environ["PATH"] = f"{os.getcwd()}/venv/bin:{os.environ['PATH']}"
    make_wheel(pathlib.Path(f"host/o/g/releases/download/v{VERSION}"))
    text = (ROOT / "docs/manual.md").read_text(encoding="utf-8")
    inputs = yaml.safe_load(re.search(r"<!-- recipe: action -->\n```yaml\n(.*?)```", text, re.S)[1])[1]["with"]
    put("golden/a.png", 7, 8, 9)
    put("out/a.png", 8, 8, 9)  # within --tolerance 1
    passes, summary, uploads, _ = run(inputs)
    assert passes and uploads and "1 tolerated" in summary, summary
    put("out/new.png", 7, 8, 9)  # --new-fails
    assert not run(inputs)[0]
    put("out [1]/a.png", 7, 8, 99)
    (wheel,) = pathlib.Path("host").rglob("*.whl")
    inputs |= {"actual": "out [1]", "report": "a report", "wheel": str(wheel)}
    passes, summary, uploads, outputs = run(inputs, pathlib.Path("nothing"))
    assert not passes and "1 of 1 needs a look" in summary and uploads == [{"name": "a report", "path": "a report"}], uploads
    assert "href=\"data:image/png" in pathlib.Path(outputs["page"]).read_text(encoding="utf-8")
    assert xml.etree.ElementTree.parse(outputs["junit"]).getroot().attrib["failures"] == "1"
    assert all(os.path.dirname(path) == "a report" for path in outputs.values()), outputs


run_tests(globals())
