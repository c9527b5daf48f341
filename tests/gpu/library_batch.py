#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A batch by the library, for soak.py: library_batch.py JSON. Threads read, filter and write files by the Python
package, each with a context of its own. A line of JSON for each file says what a report of the program would."""
import json
import os
import pathlib
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
sys.dont_write_bytecode = True  # leave no files in the sources
import gpuconv  # noqa: E402

work = json.loads(sys.argv[1])  # files, out, filter, backend, threads, and depth, linear, border, alpha and format
own = threading.local()
number = iter(range(1 << 20))


def open_context():
    gpu = next(number) % gpuconv.gpus() if work["backend"] == "cuda" else None
    own.context = gpuconv.Context(threads=1, gpu=gpu if work["device"] == "all" or gpu is None else int(work["device"]))


def convert(path):
    source = pathlib.Path(path)
    target = pathlib.Path(work["out"], source.name)
    if "format" in work:
        target = target.with_suffix("." + work["format"])
    row = {"status": "done", "input": path, "output": str(target), "backend": work["backend"]}
    options = {key: work[key] for key in ("linear", "border", "alpha") if key in work}
    try:
        image = gpuconv.read(path, bits=int(work.get("depth", 0)), context=own.context)
        result = gpuconv.filter(image, work["filter"], **options, context=own.context)
        gpuconv.write(target, result, context=own.context)
    except (gpuconv.ImageError, gpuconv.GpuError, MemoryError, ValueError) as error:
        row.update(status="failed", error=str(error))
    return row


warnings.simplefilter("ignore", gpuconv.ImageWarning)  # the program is asked to be quiet, too
with ThreadPoolExecutor(work["threads"], initializer=open_context) as pool:
    for answer in pool.map(convert, work["files"]):
        print(json.dumps(answer))
