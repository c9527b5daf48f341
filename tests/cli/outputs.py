#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several outputs of one input: outputs.py GPUCONV STUB [--quick], with a program that has a stand-in for the GPU. Each
output has the bytes of a run of its own, whichever of the others fails, and the input is read and decoded once.
--quick measures no time and no memory."""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run_tests  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM, STUB = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
QUICK = "--quick" in sys.argv
BACKENDS = [(PROGRAM, "cpu"), (STUB, "cuda")]
HAS_STUB = "built with CUDA" in subprocess.run([STUB, "--version"], capture_output=True, text=True, check=True).stdout
CODECS = subprocess.run([PROGRAM, "--list-codecs"], capture_output=True, text=True, check=True).stdout
FORMATS = ["png", "jpg", "pam"] + [f for f, name in (("webp", "libwebp"), ("tif", "libtiff")) if name in CODECS]


def run(program, *arguments, status=0, stdin=b"", env=None):
    done = subprocess.run([program, *arguments], input=stdin, capture_output=True, check=False, timeout=120,
                          env={**os.environ, **(env or {})})
    assert done.returncode == status, (arguments, done.returncode, done.stderr.decode())
    return done


def picture(path, width=75, height=50, channels=3, bits=8, chunks=b""):
    row = width * channels * bits // 8
    data = bytes((i * i // 7 + i % 89 * 3) % 251 for i in range(row * height))
    pathlib.Path(path).write_bytes(png(width, height, channels, bits, unfiltered(data, row), chunks=chunks))


def pictures():
    """Files of all formats, depths and channels; JPEGs on their side and upside down; one that thumbnails halve."""
    kinds = {"rgb": (3, 8), "rgba": (4, 8), "grey": (1, 8), "deep": (3, 16)}
    for name, (channels, bits) in kinds.items():
        picture(f"{name}.png", channels=channels, bits=bits)
    picture("large.png", 900, 640)
    for name in FORMATS[1:]:
        run(PROGRAM, "-q", "identity", "rgb.png", f"file.{name}")
    run(PROGRAM, "-q", "--progressive", "identity", "large.png", "large.jpg")
    plain = pathlib.Path("file.jpg").read_bytes()
    for name, orientation in (("side", 6), ("down", 3)):
        exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([orientation]) + bytes(6)
        head = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big")
        pathlib.Path(f"{name}.jpg").write_bytes(plain[:2] + head + exif + plain[2:])
    return [f"{name}.png" for name in kinds] + [f"file.{name}" for name in FORMATS[1:]] + [
        "large.jpg", "side.jpg", "down.jpg"]


# What an output may ask for, with what it changes before or after decoding.
OUTPUTS = [("resize:31x", {}), ("thumbnail:20x", {}), ("gaussian:2", {"quality": 40}), ("grey", {}),
           ("sepia", {"strip": True}), ("blur", {"linear": True}), ("sharpen", {"depth": 8, "no-orient": True}),
           ("thumbnail:90x,median:3", {"progressive": True}), ("turn:90", {"border": "wrap"}), ("to-srgb", {}),
           ("identity", {"background": "#f80"}), ("resize:200x", {"alpha": "keep"}), ("blur", {"codec": "stb"}),
           ("resize:31x", {"codec": "stb"})]


def command(options):
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]


def alone(program, backend, source, filters, options, output):
    """The bytes of a run of its own, or None if it fails."""
    done = subprocess.run([program, "-q", "--backend", backend, *command(options), filters, source, output],
                          capture_output=True, check=False)
    return pathlib.Path(output).read_bytes() if done.returncode == 0 else None


def jobs(program, lines, *arguments, status=0, env=None):
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    done = run(program, "-q", "--jobs-from", "-", *arguments, status=status, stdin=text, env=env)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_bytes_are_those_of_single_runs():
    """All inputs, with each pair of neighbours among the outputs, on the CPU and the stub, in order or not."""
    sources = pictures()
    for number, source in enumerate(sources):
        want = [alone(PROGRAM, "cpu", source, filters, options, f"want.{FORMATS[(i + number) % len(FORMATS)]}")
                for i, (filters, options) in enumerate(OUTPUTS)]
        assert sum(data is not None for data in want) > len(OUTPUTS) - 5, (source, want)
        for (program, backend), shift in itertools.product(BACKENDS[:1 + HAS_STUB], (0, 5)):
            order = [(i + shift) % len(OUTPUTS) for i in range(len(OUTPUTS))]
            outputs = [{"filter": OUTPUTS[i][0], "output": f"out{i}.{FORMATS[(i + number) % len(FORMATS)]}",
                        **OUTPUTS[i][1]} for i in order]
            answers = jobs(program, [{"id": [source], "input": source, "backend": backend, "outputs": outputs}],
                           "--ordered", status=int(None in want))
            assert [a["output"] for a in answers] == [o["output"] for o in outputs]
            for i, answer in zip(order, answers):
                assert (answer["id"], answer["input"]) == ([source], source)
                assert (answer["status"] == "done") == (want[i] is not None), (answer, source, OUTPUTS[i])
                if want[i] is not None:
                    made = pathlib.Path(answer["output"]).read_bytes()
                    assert made == want[i], (source, OUTPUTS[i], backend, shift)
                    assert answer["output_bytes"] == len(made) and answer["backend"] == backend
                    os.remove(answer["output"])


def test_one_failure_loses_no_other():
    """Each output in turn fails, for each reason, while the others are whole."""
    pictures()
    run(PROGRAM, "-q", "--progressive", "resize:400x", "large.png", "large.jpg")  # thumbnails halve it, too
    faults = {"folder": {"output": "none/a.png"}, "filter": {"filter": "nonsense"}, "option": {"quality": 300},
              "size": {"filter": "crop:4000x4000"}, "name": {"output": "a.bmp"}, "variant": {"variant": "winograd"},
              "input": {"output": "large.jpg"}, "kind": None, "moved": {"input": "rgb.png"}}
    good = [{"output": "1.jpg", "filter": "resize:300x"}, {"output": "2.png", "filter": "thumbnail:100x"},
            {"output": "3.png", "filter": "blur"}]
    want = [alone(PROGRAM, "cpu", "large.jpg", o["filter"], {}, f"want-{o['output']}") for o in good]
    for (program, backend), (name, fault), place in itertools.product(BACKENDS[:1 + HAS_STUB], faults.items(),
                                                                      range(4)):
        outputs = list(good)
        outputs.insert(place, {"output": "bad.png", "filter": "blur", **fault} if fault is not None else 7)
        answers = jobs(program, [{"id": 1, "input": "large.jpg", "backend": backend, "outputs": outputs}],
                       "--ordered", status=1)
        assert [a["status"] for a in answers] == ["failed" if i == place else "done" for i in range(4)], (name, answers)
        assert all(a["id"] == 1 for a in answers) and answers[place]["error"], answers
        for output, data in zip(good, want):
            assert pathlib.Path(output["output"]).read_bytes() == data, (name, place, output, backend)
            os.remove(output["output"])
        assert not os.path.exists("bad.png"), (name, place)


def test_the_next_line_takes_nothing_from_the_last():
    """A worker that has done outputs of one picture, the last of which failed, does those of another."""
    pictures()
    lines = []
    for i, source in enumerate(("rgb.png", "grey.png", "rgba.png", "file.jpg") * 3):
        outputs = [{"output": f"{i}-{j}.png", "filter": filters} for j, filters in enumerate(("blur", "resize:31x"))]
        broken = {"output": "none/a.png", "filter": "blur"}
        lines.append({"id": i, "input": source, "outputs": [broken, *outputs, {"filter": "nonsense"}] if i % 2
                      else [{"filter": "nonsense"}, *outputs, broken]})
    for program, backend in BACKENDS[:1 + HAS_STUB]:
        answers = jobs(program, lines, "-j1", "--backend", backend, status=1)
        assert len(answers) == 48 and sum(a["status"] == "done" for a in answers) == 24, answers
        for i, line in enumerate(lines):
            for j, filters in enumerate(("blur", "resize:31x")):
                assert pathlib.Path(f"{i}-{j}.png").read_bytes() == alone(PROGRAM, "cpu", line["input"], filters, {},
                                                                          "want.png"), (i, j, backend)


def test_a_failing_gpu_loses_nothing():
    if not HAS_STUB:
        return
    pictures()
    outputs = [{"output": f"{i}.jpg", "filter": filters} for i, filters in
               enumerate(("resize:300x", "blur", "thumbnail:100x", "sharpen"))]
    want = [alone(PROGRAM, "cpu", "large.png", o["filter"], {}, "want.jpg") for o in outputs]
    for step, number in itertools.product(("open", "allocate", "locked", "upload", "launch", "wait", "download", "png"),
                                          (1, 2, 3, 5, 9)):
        answers = jobs(STUB, [{"input": "large.png", "outputs": outputs}], "--backend", "cuda", "--ordered",
                       env={"GPUCONV_STUB_FAIL": f"{step}:{number}", "GPUCONV_STUB_GPUS": "1"})
        assert all(a["status"] == "done" for a in answers), (step, number, answers)
        for output, data in zip(outputs, want):
            assert pathlib.Path(output["output"]).read_bytes() == data, (step, number, output)


def test_answers_wait_for_those_before():
    """Many outputs are done while the first line is still at work, and no answer is lost."""
    pictures()
    many = [{"input": "rgb.png", "id": i, "filter": "blur", "outputs": [{"output": f"{i}-{j}.pam"} for j in range(32)]}
            for i in range(1, 4)]
    slow = {"input": "large.png", "id": 0, "filter": "median:61,median:61,median:61", "output": "slow.png"}
    answers = jobs(PROGRAM, [slow, *many], "-j2", "--ordered", "--backend", "cpu")
    assert [(a["id"], a["output"]) for a in answers] == [(0, "slow.png"), *(
        (i, f"{i}-{j}.pam") for i in range(1, 4) for j in range(32))]


def test_an_input_is_read_and_decoded_once():
    """A pipe can be read once. Decoding again would take as long as the first time."""
    picture("large.png", 3000, 1200)
    outputs = [{"output": f"{i}.png", "filter": f"resize:{100 + i}x"} for i in range(4)]
    for program, backend in BACKENDS[:1 + HAS_STUB]:
        os.mkfifo("pipe")
        data = pathlib.Path("large.png").read_bytes()
        writer = threading.Thread(target=lambda: pathlib.Path("pipe").write_bytes(data))
        writer.start()
        answers = jobs(program, [{"input": "pipe", "outputs": outputs}], "--backend", backend, "--ordered")
        writer.join()
        os.remove("pipe")
        assert [a["status"] for a in answers] == ["done"] * 4, answers
        times = [a["ms"]["decode"] for a in answers]
        assert QUICK or max(times[1:]) < times[0] / 3, (backend, times)


def test_outputs_of_folders():
    """--also: report lines, --skip-existing, shards and other numbers of jobs; each folder is that of a run."""
    os.mkdir("in")
    os.chdir("in")
    count = len(pictures()) + 1
    os.chdir("..")
    kinds = {"large": "resize:60x", "small": "thumbnail:20x", "edges": "sobel", "deep/er": "gaussian:3"}
    for folder, filters in kinds.items():
        run(PROGRAM, "-q", "--backend", "cpu", filters, "in", "-o", f"want/{folder}", "--format", "jpg",
            "--keep-suffix")
    also = [f"--also=out/{folder}={filters}" for folder, filters in list(kinds.items())[1:]]
    for (program, backend), jobs_at_once in itertools.product(BACKENDS[:1 + HAS_STUB], ("1", "3")):
        arguments = ["-q", "--backend", backend, "-j", jobs_at_once, kinds["large"], "in", "-o", "out/large", *also,
                     "--format", "jpg", "--keep-suffix", "--report", "r.jsonl"]
        for shard in ("1/2", "2/2"):
            run(program, *arguments, "--shard", shard)
        run("diff", "-r", "out", "want")
        lines = [json.loads(line) for line in pathlib.Path("r.jsonl").read_text().splitlines()]
        assert len(lines) == 4 * count and len({line["output"] for line in lines}) == len(lines)
        assert all(line["filter"] == kinds[os.path.dirname(line["output"])[4:]] for line in lines)
        assert all(line["files"] == 4 * count for line in lines)
        os.remove("r.jsonl")
        removed = ["out/small/rgb.png.jpg", "out/large/file.jpg", "out/edges/rgba.png.jpg", "out/deep/er/rgba.png.jpg"]
        for path in removed:
            os.remove(path)
        run(program, *arguments, "--skip-existing")
        lines = [json.loads(line) for line in pathlib.Path("r.jsonl").read_text().splitlines()]
        assert sorted(line["output"] for line in lines if line["status"] == "done") == sorted(removed)
        assert sum(line["status"] == "skipped" for line in lines) == 4 * count - 4
        run("diff", "-r", "out", "want")
        run("rm", "-r", "out", "r.jsonl")


def test_memory_holds():
    """With too little memory for the whole picture, each output streams as it would alone."""
    if QUICK:
        return
    picture("small.png", 600, 400)
    # Another process makes the picture, because the peaks begin at what this one had.
    run(PROGRAM, "-q", "resize:6000x4000:enlarge,gamma:1.1", "small.png", "large.png")
    for i, filters in enumerate(("blur", "resize:4000x", "sharpen")):
        run(PROGRAM, "-q", filters, "large.png", f"want{i}.png")

    def peak(*arguments):
        process = subprocess.Popen([PROGRAM, "-q", "--backend", "cpu", *arguments])
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, (arguments, status)
        return usage.ru_maxrss / 1024

    alone_peak = peak("-j1", "--memory", "160M", "blur", "large.png", "-o", "a")
    for memory in ("160M", "600M"):
        taken = peak("-j1", "--memory", memory, "blur", "large.png", "-o", "a", "--also", "b=resize:4000x", "--also",
                     "c=sharpen")
        for i, folder in enumerate("abc"):
            assert pathlib.Path(folder, "large.png").read_bytes() == pathlib.Path(f"want{i}.png").read_bytes(), memory
        assert taken < alone_peak + (20 if memory == "160M" else 100), (memory, taken, alone_peak)
        assert (memory == "600M") == (taken > alone_peak + 50), (memory, taken, alone_peak)


if __name__ == "__main__":
    run_tests(globals())
