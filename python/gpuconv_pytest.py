# SPDX-License-Identifier: MIT
"""The plugin of pytest: `pytest --update-images` accepts the images of gpuconv.testing.

Where the wheel is installed, pytest loads this module in each run. So it imports neither NumPy nor the library: a test
that imports gpuconv does."""
import pathlib

FOLDER = "gpuconv-differences"
update = False  # --update-images was given
accepted: "list[tuple[str, str]]" = []  # what the running test did with golden images: ("wrote" or "left", path)
_reported: "list[tuple[str, str]]" = []  # what all tests did, in the process that prints


def pytest_addoption(parser):
    parser.getgroup("gpuconv").addoption("--update-images", action="store_true",
                                         help="write the images that differ over the expected files")


def pytest_configure(config):
    global update
    update = config.getoption("--update-images")
    if not hasattr(config, "workerinput"):  # the page of the last run
        pathlib.Path(FOLDER, "index.html").unlink(missing_ok=True)


def pytest_runtest_teardown(item):
    item.user_properties += accepted  # pytest-xdist brings them to the process that prints
    accepted.clear()


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        _reported.extend(pair for pair in report.user_properties if pair[0] in ("wrote", "left"))


def pytest_terminal_summary(terminalreporter):
    for path in sorted({path for what, path in _reported if what == "wrote"}):
        terminalreporter.write_line(f"--update-images wrote {path}")
    left = {path for what, path in _reported if what == "left"}
    if left:
        terminalreporter.write_line(f"--update-images left {len(left)} images that differ within the tolerance")
