#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--jobs-from: lines of JSON in, answers out: jobs.py GPUCONV STUB, a program with a
stand-in for the GPU. Skipped (exit status 77) in a build without it."""
import contextlib
import itertools
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run_tests  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM, STUB = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SECONDS = 60  # the longest wait for an answer


def picture(path, seed=0, width=40, height=30, channels=3, bits=8):
    row = width * channels * bits // 8
    data = bytes((i * i + 7 * seed) % 251 for i in range(row * height))
    pathlib.Path(path).write_bytes(png(width, height, channels, bits, unfiltered(data, row)))


class Worker:
    """A process that does jobs, with its pipes."""

    def __init__(self, *arguments, program=PROGRAM):
        self.process = subprocess.Popen([program, "--jobs-from", "-", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)

    def send(self, *lines):
        for line in lines:
            text = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            self.process.stdin.write(text)
        self.process.stdin.flush()

    def is_silent(self, seconds):
        return not select.select([self.process.stdout], [], [], seconds)[0]

    def answer(self):
        assert not self.is_silent(SECONDS), "no answer"
        return json.loads(self.process.stdout.readline())

    def end(self):
        """All further answers, the exit status and what it said."""
        out, err = self.process.communicate(timeout=SECONDS)
        return [json.loads(line) for line in out.splitlines()], self.process.returncode, err.decode()


def work(lines, *arguments, program=PROGRAM):
    worker = Worker(*arguments, program=program)
    if isinstance(lines, bytes):
        lines = [lines]
    out, err = worker.process.communicate(b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines), timeout=SECONDS)
    return [json.loads(line) for line in out.splitlines()], worker.process.returncode, err.decode()


def gpuconv(*arguments):
    return subprocess.run([PROGRAM, "-q", *arguments], capture_output=True, check=False)


def test_an_answer_comes_when_its_job_is_done():
    picture("in.png")
    worker = Worker()
    for i in range(30):
        worker.send({"id": i, "filter": "blur", "input": "in.png", "output": f"{i}.png"})
        answer = worker.answer()
        assert (answer["id"], answer["status"], answer["output"]) == (i, "done", f"{i}.png"), answer
        assert os.path.getsize(f"{i}.png") == answer["output_bytes"]
    answers, status, said = worker.end()
    assert (answers, status) == ([], 0) and said.startswith("30 of 30 jobs done; "), (answers, status, said)
    assert gpuconv("blur", "in.png", "want.png").returncode == 0
    assert all(pathlib.Path(f"{i}.png").read_bytes() == pathlib.Path("want.png").read_bytes() for i in range(30))


def test_jobs_make_the_bytes_of_runs():
    """More kinds of jobs than are kept at a time, mixed on four workers."""
    for name, channels, bits in (("rgb", 3, 8), ("rgba", 4, 8), ("deep", 3, 16), ("grey", 1, 8)):
        picture(f"{name}.png", 1, 50, 41, channels, bits)
    assert gpuconv("identity", "rgb.png", "photo.jpg").returncode == 0
    filters = [[f] for f in ("blur", "sharpen", "emboss,blur", "gaussian:2", "sobel", "median:3", "unsharp")]
    more = ([], ["--linear"], ["--border", "wrap"], ["--alpha", "keep", "--flip"], ["--depth", "8"], ["--abs"],
            ["--strip", "--quality", "71", "--subsampling", "4:2:0", "--progressive"], ["--compression", "3"],
            ["--variant", "cpu"], ["--no-orient", "--background", "#f80", "--codec", "parallel-png"])
    inputs = ("rgb.png", "rgba.png", "deep.png", "grey.png", "photo.jpg")
    runs = [(f[0], options, inputs[(i + j) % len(inputs)], "jpg" if (i + j) % 3 == 0 else "png")
            for (i, f), (j, options) in itertools.product(enumerate(filters), enumerate(more))]
    lines, want = [], {}
    for number, (name, options, source, suffix) in enumerate(runs):
        output = f"want{number}.{suffix}"
        done = gpuconv(*options, name, source, output)
        want[number] = pathlib.Path(output).read_bytes() if done.returncode == 0 else None
        line = {"id": number, "filter": name, "input": source, "output": f"out{number}.{suffix}"}
        words = iter(options)
        for word in words:
            flags = ("--linear", "--flip", "--abs", "--strip", "--progressive", "--no-orient")
            line[word[2:]] = True if word in flags else next(words)
        lines.append(line)
    assert len(runs) > 64 and sum(data is not None for data in want.values()) > 50, want
    answers, _, said = work(lines + lines, "-j4", "-q")
    assert len(answers) == 2 * len(runs), said
    for answer in answers:
        number = answer["id"]
        assert (answer["status"] == "done") == (want[number] is not None), (answer, runs[number])
        if want[number] is not None:
            assert pathlib.Path(answer["output"]).read_bytes() == want[number], runs[number]


def test_the_command_line_holds_for_all_lines():
    picture("in.png", channels=4)
    lines = [{"input": "in.png", "output": "1.jpg"}, {"input": "in.png", "output": "2.jpg", "quality": 30},
             {"input": "in.png", "output": "3.jpg", "progressive": False, "filter": "sharpen"},
             {"input": "in.png", "output": "4.jpg", "progressive": None}]
    answers, status, said = work(lines, "--filter", "blur", "--quality", "60", "--progressive", "--ordered")
    assert status == 0, (answers, said)
    for name, options in (("1", ["--quality", "60", "--progressive", "blur"]), ("3", ["--quality", "60", "sharpen"]),
                          ("2", ["--quality", "30", "--progressive", "blur"]), ("4", ["--quality", "60", "--progressive", "blur"])):
        assert gpuconv(*options, "in.png", "want.jpg").returncode == 0
        assert pathlib.Path(f"{name}.jpg").read_bytes() == pathlib.Path("want.jpg").read_bytes(), name
    assert answers[1]["options"] == "--quality 30 --progressive" and answers[2]["filter"] == "sharpen", answers


def test_order():
    """A job that waits for its input holds no other; with --ordered it holds their answers."""
    picture("in.png")
    for ordered in (False, True):
        os.mkfifo("slow.png")
        worker = Worker("-j2", *(["--ordered"] if ordered else []))
        worker.send({"id": 0, "filter": "blur", "input": "slow.png", "output": "0.png"})
        worker.send(*({"id": i, "filter": "blur", "input": "in.png", "output": f"{i}.png"} for i in range(1, 5)))
        quick = [] if ordered else [worker.answer()["id"] for _ in range(4)]
        assert quick == ([] if ordered else [1, 2, 3, 4]) and worker.is_silent(0.3)
        pathlib.Path("slow.png").write_bytes(pathlib.Path("in.png").read_bytes())
        answers, status, _ = worker.end()
        assert [answer["id"] for answer in answers] == ([0, 1, 2, 3, 4] if ordered else [0]) and status == 0, answers
        os.remove("slow.png")


def test_a_slow_reader_holds_the_worker():
    """Nobody reads the answers: the worker stops reading lines, and its memory does not grow."""
    picture("in.png", width=4, height=3)
    for ordered in ([], ["--ordered"]):
        worker = Worker("-j3", "-q", *ordered)
        line = json.dumps({"id": "x" * 1000, "filter": "identity", "input": "in.png", "output": "o.png"}).encode() + b"\n"
        os.set_blocking(worker.process.stdin.fileno(), False)
        sent, end = 0, time.monotonic() + 1
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                sent += os.write(worker.process.stdin.fileno(), (line * 40)[sent % len(line):])
                end = time.monotonic() + 1
        status = pathlib.Path(f"/proc/{worker.process.pid}/status").read_text()
        memory = int(next(word for word in status.splitlines() if word.startswith("VmHWM")).split()[1])
        os.set_blocking(worker.process.stdin.fileno(), True)
        rest = line[sent % len(line):] if sent % len(line) else b""
        out, said = worker.process.communicate(rest, timeout=SECONDS)
        answers, status = out.splitlines(), worker.process.returncode
        assert len(answers) == -(-sent // len(line)) and status == 0, (len(answers), sent, said)
        assert sent < 1 << 20 and memory < 64 << 10, (sent, memory)


def test_sigterm_finishes_what_is_under_way():
    picture("in.png")
    for number in (signal.SIGTERM, signal.SIGINT):
        os.mkfifo("slow.png")
        worker = Worker("-j2")
        worker.send({"id": 0, "filter": "blur", "input": "in.png", "output": "0.png"},
                    {"id": 1, "filter": "blur", "input": "slow.png", "output": "1.png"})
        assert worker.answer()["id"] == 0
        with open("slow.png", "wb") as pipe:  # now job 1 has begun
            worker.process.send_signal(number)
            time.sleep(0.1)
            assert worker.process.poll() is None
            pipe.write(pathlib.Path("in.png").read_bytes())
        answers, status, said = worker.end()
        assert [a["id"] for a in answers] == [1] and answers[0]["status"] == "done" and os.path.exists("1.png"), answers
        assert status == 128 + number and "interrupted: 2 of 2 jobs done" in said, (status, said)
        os.remove("slow.png")
    worker = Worker()  # one that only waits for a line
    worker.send({"id": 0, "filter": "blur", "input": "in.png", "output": "0.png"})
    worker.answer()
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(timeout=SECONDS) == 128 + signal.SIGTERM


def test_a_second_signal_ends_at_once():
    os.mkfifo("slow.png")
    worker = Worker()
    worker.send({"id": 0, "filter": "blur", "input": "slow.png", "output": "0.png"})
    with open("slow.png", "wb"):
        worker.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        worker.process.send_signal(signal.SIGTERM)
        answers, status, _ = worker.end()
    assert status == 128 + signal.SIGTERM and not os.path.exists("0.png"), status
    assert [(a["id"], a["class"], a["retry"]) for a in answers] == [(0, "interrupted", True)], answers


def test_the_reader_is_gone():
    picture("in.png")
    worker = Worker()
    worker.process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        worker.send(*[{"filter": "blur", "input": "in.png", "output": "0.png"}] * 50)
        worker.process.stdin.close()
    assert worker.process.wait(timeout=SECONDS) == -signal.SIGPIPE


def test_lines_that_are_no_jobs():
    """Each is answered by a failed line, and the rest goes on."""
    picture("in.png")
    good = {"id": "good", "filter": "blur", "input": "in.png", "output": "o.png"}
    pair = {"id": 2, "expected": "in.png", "actual": "in.png"}
    cases = [(b"{", "is not JSON"), (b"[1]", "is not an object"), (b"7", "is not JSON"), (b"{} {}", "is not JSON"),
             (b'{"id": 1, "id": 2}', "duplicate"), (b'{"id": 1, "x\0": 2}', "contains a NUL byte"),
             (b'{"id": "\xff"}', "is not JSON"), (b"[" * 100000, "is not JSON"), (b'{"quality": 1e999}', "is not JSON"),
             (b"{" + b" " * (1 << 20) + b"}", "is longer than 1048576 bytes"), (b'{"filter": "\\ud800"}', "is not JSON"),
             ({}, "has no file"), ({**good, **pair}, "has an image and a pair"), ({"input": "in.png"}, 'has no "output"'),
             ({"output": "o.png"}, 'has no "input"'), ({"actual": "o.png"}, 'has no "expected"'), ({**good, "input": ""}, "is not a path"),
             ({**good, "input": "-"}, "the jobs use standard input and output"), ({**good, "input": 7}, "is not a path"),
             ({**good, "filter": None}, 'has no "filter"'), ({**good, "output": "o.xyz"}, "give the file such a name"),
             ({**good, "output": "in.png"}, "is the same file as"), ({**good, "filter": "blurr"}, 'did you mean "blur"?'),
             ({**good, "qualty": 1}, "did you mean --quality?"), ({**good, "quality": 101}, "from 1 to 100"),
             ({**good, "quality": 1.5}, "from 1 to 100"), ({**good, "quality": True}, '"quality" needs a value: N'),
             ({**good, "strip": "yes"}, "--strip takes none, most, private or all"), ({**good, "linear": "yes"}, '"linear" is true or false'), ({**good, "strip": {}}, '"strip" is an object'),
             ({**good, "in-place": True}, "is not an option of a job"), ({**good, "jobs": 3}, "is not an option of a job"),
             ({**good, "list": True}, "is not an option of a job"), ({**good, "device": 0}, "is not an option of a job"),
             ({**good, "tolerance": 1}, "is for a pair"), ({**pair, "filter": "blur"}, 'is for an "input"'),
             ({**pair, "border": "zero"}, 'is for an "input"'), ({**good, "variant": "cpu", "backend": "cuda"}, "leave one out"),
             ({**pair, "ignore": [[1]]}, "is a list of lists"), ({**pair, "diff": "in.png"}, "is one of the images")]
    lines = []
    for case, _ in cases:
        lines += [case + b"\n" if isinstance(case, bytes) else case, good]
    lines[-1] = json.dumps(good).encode()  # without an end
    for arguments in (["--ordered"], ["-j1"]):
        answers, status, said = work(lines, *arguments)
        assert len(answers) == 2 * len(cases) and status == 1, (len(answers), said)
        for number, (case, words) in enumerate(cases):
            bad, other = answers[2 * number:2 * number + 2]
            assert bad["status"] == "failed" and words in bad["error"] and bad["retry"] is False, (case, bad)
            assert bad["error"].startswith((f"line {2 * number + 1}: ", "o.xyz: ")), bad
            assert not isinstance(case, dict) or bad["id"] == case.get("id"), bad
            assert (other["id"], other["status"]) == ("good", "done"), other


def test_ids_and_names_come_back():
    picture("in.png")
    ids = ["18446744073709551615", "-0.10", "1E5", '"a\\u00e9\\n\\udc80,}]"', '{"a": [1, {"id": 2}], "b": "]"}', "null", "true",
           '" \\\\"', '""', "[ ]", "1e999", "-0.0e-0999", '"\\u0000"', '{"\\ud800": "\\\\u0000", "x": [10.50, 1e+9999]}', "9" * 999,
           '{"k": 1, "k": [2, {"k": 3, "k": 3}]}']
    lines = [f'\t{{"filter":"blur", "id" : {text} ,"input":"in.png","output":"o.png"}} \r\n'.encode() for text in ids]
    worker = Worker("--ordered", "-q")
    out, _ = worker.process.communicate(b"".join(lines), timeout=SECONDS)
    for text, line in zip(ids, out.decode().splitlines(), strict=True):
        assert line.startswith(f'{{"id":{text},"status":"done"'), line
    for text in ("01", "1e", "[1,]", '"\\u00"', "1.", "--1", "0x1", '{"a" 1}', "1 2", '"', "", "1e5.5"):
        (answer,), status, _ = work(b'{"filter": "blur", "input": "in.png", "output": "o.png", "id": %s}\n' % text.encode())
        assert status == 1 and answer["id"] is None and "is not JSON" in answer["error"], (text, answer)
    (answer,), _, _ = work(b'{"input": "in.png", "id": [4, "x"], "input": "in.png", "output": "o.png"}\n')
    assert answer["id"] == [4, "x"] and "duplicate" in answer["error"], answer
    (answer,), _, _ = work(b'{"\\u0069d": 8, "filter": "blur", "input": "in.png", "output": "o.png"}\n')
    assert answer["id"] == 8 and answer["status"] == "done", answer
    for name in ("filter", "quality"):
        (answer,), status, _ = work([{"filter": "blur", name: ["1", "2"], "input": "in.png", "output": "o.png"}])
        assert status == 1 and "takes one value" in answer["error"], answer
    name = b"caf\xe9\xff\xf0.png"
    pathlib.Path(os.fsdecode(name)).write_bytes(pathlib.Path("in.png").read_bytes())
    (answer,), status, _ = work([{"filter": "blur", "input": os.fsdecode(name), "output": os.fsdecode(b"\x80" + name)}])
    assert status == 0 and os.fsencode(answer["output"]) == b"\x80" + name and os.path.exists(b"\x80" + name), answer
    (answer,), status, _ = work([{"filter": "blur", "input": "in.png", "output": "\U0001f600\u00e9.png"}])
    assert status == 0 and os.path.exists("\U0001f600\u00e9.png"), answer


def test_no_job_touches_a_file_of_the_stream():
    picture("in.png")
    pathlib.Path("own.txt").write_text("1 2 1\n")
    os.link("own.txt", "o.png")
    pathlib.Path("mask.png").write_bytes(pathlib.Path("in.png").read_bytes())
    os.link("mask.png", "same.png")
    pair = {"expected": "in.png", "actual": "in.png"}
    lines = [{"filter": "own.txt", "input": "in.png", "output": "o.png"},
             {**pair, "mask": "mask.png", "diff": "same.png"}, {**pair, "diff": "lines.png"},
             {"filter": "blur", "input": "in.png", "output": "/dev/stdout", "format": "png"},
             {"filter": "blur", "input": "in.png", "output": "lines.png"},
             {"filter": "blur", "input": "in.png", "output": "done.png"}]
    pathlib.Path("lines.png").write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    before = {name: pathlib.Path(name).read_bytes() for name in ("own.txt", "mask.png", "lines.png")}
    ended = gpuconv("-q", "--ordered", "--jobs-from", "lines.png")
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [answer["status"] for answer in answers] == ["failed"] * 5 + ["done"], answers
    assert all("is the same file as" in answer["error"] for answer in answers[:5]), answers
    assert before == {name: pathlib.Path(name).read_bytes() for name in before}
    lines = [{"filter": "blur", "input": "/dev/stdin", "output": "none.png"}] + lines[-1:]
    answers, status, _ = work(lines, "--ordered")
    assert [answer["status"] for answer in answers] == ["failed", "done"] and status == 1, answers


def test_a_filter_that_is_no_regular_file_takes_no_line():
    picture("in.png")
    os.mkfifo("waits")
    filters = ["/dev/stdin", "/dev/fd/0", "./waits", "blur,waits", "/dev/zero", "sharpen"]
    lines = [{"id": i, "filter": name, "input": "in.png", "output": f"{i}.png"} for i, name in enumerate(filters)]
    answers, status, said = work(lines, "-j2")
    assert status == 1 and sorted(answer["id"] for answer in answers) == list(range(len(lines))), (answers, said)
    for answer in answers:
        is_name = filters[answer["id"]] == "sharpen"
        assert answer["status"] == ("done" if is_name else "failed"), answer
        assert is_name or "is not a regular file" in answer["error"], answer


def test_a_filter_file_that_has_changed_is_read_again():
    picture("in.png")
    worker = Worker("--filter", "./own.txt")
    for number, taps in enumerate(("0 1 0\n", "1 0 0\n", "scale 1\n0 0 1\n", "0 0 1\n", None)):
        path = pathlib.Path("own.txt")
        if taps is None:
            path.unlink()
        elif number == 3:
            pathlib.Path("new.txt").write_text(taps)
            os.replace("new.txt", path)
        else:
            path.write_text(taps)
            os.utime(path, (number, number))
        worker.send({"input": "in.png", "output": "o.png"})
        answer = worker.answer()
        assert answer["status"] == ("failed" if taps is None else "done"), answer
        if taps is not None:
            assert gpuconv("./own.txt", "in.png", "want.png").returncode == 0
            assert pathlib.Path("o.png").read_bytes() == pathlib.Path("want.png").read_bytes(), number
    worker.end()


def test_statuses():
    picture("in.png")
    pathlib.Path("cut.png").write_bytes(pathlib.Path("in.png").read_bytes()[:50])
    good = {"id": 0, "filter": "blur", "input": "in.png", "output": "o.png"}
    bad, full = {**good, "id": 1, "input": "cut.png"}, {**good, "id": 2, "output": "/dev/full", "format": "png"}
    for lines, want in (([good], 0), ([], 0), ([good, bad], 1), ([good, full], 75), ([full, bad, good], 75)):
        answers, status, _ = work(lines)
        assert status == want and {a["id"]: a.get("retry") for a in answers} == {
            line["id"]: {0: None, 1: False, 2: True}[line["id"]] for line in lines}, (answers, status)
    done = subprocess.run([PROGRAM, "--jobs-from", "none.jsonl"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "gpuconv: none.jsonl: cannot be read: No such file or directory\n"
    answers, status, _ = work([{**good, "output": "none/o.png"}])
    assert status == 1 and answers[0]["class"] == "output" and answers[0]["retry"] is False, answers
    skipped, status, _ = work([{**good, "skip-existing": True}])
    assert status == 0 and skipped[0]["status"] == "skipped", skipped


def test_pairs():
    """The answers are those of --compare."""
    picture("e.png")
    picture("a.png", seed=1)
    picture("s.png", width=41)
    picture("m.png", seed=2)
    pathlib.Path("cut.png").write_bytes(pathlib.Path("a.png").read_bytes()[:60])
    samples = bytes(i * i % 251 for i in range(40 * 30 * 3))  # the samples of e.png, and here with opaque alpha
    opaque = b"".join(samples[i:i + 3] + b"\xff" for i in range(0, len(samples), 3))
    pathlib.Path("opaque.png").write_bytes(png(40, 30, 4, 8, unfiltered(opaque, 160)))
    cases = [({"actual": "a.png"}, []), ({"actual": "e.png"}, []), ({"actual": "s.png"}, []), ({"actual": "cut.png"}, []),
             ({"actual": "none.png"}, []), ({"actual": "a.png", "tolerance": 7}, ["--tolerance", "7"]),
             ({"actual": "a.png", "different": "50%", "ignore": ["0,0,10,10", "20,20,5,5"], "ignore-antialiasing": True},
              ["--different", "50%", "--ignore", "0,0,10,10", "--ignore", "20,20,5,5", "--ignore-antialiasing"]),
             ({"actual": "a.png", "mask": "m.png", "min-ssim": 0.1}, ["--mask", "m.png", "--min-ssim", "0.1"]),
             ({"actual": "a.png", "mask": "s.png"}, ["--mask", "s.png"]), ({"actual": "a.png", "diff": "d.png"}, []),
             ({"actual": "opaque.png"}, []), ({"actual": "opaque.png", "strict-channels": True}, ["--strict-channels"])]
    for arguments in (["--ordered", "-j3"], ["-j1"]):
        answers, status, said = work([{"id": i, "expected": "e.png", **case} for i, (case, _) in enumerate(cases)], *arguments)
        assert status == 1 and [answer.pop("id") for answer in answers] == list(range(len(cases))), answers
        assert "2 of 12 jobs failed" in said, said
        for (case, options), answer in zip(cases, answers, strict=True):
            diff = ["d2.png"] if "diff" in case else []
            done = subprocess.run([PROGRAM, "--compare", "--json", *options, "e.png", case["actual"], *diff], capture_output=True)
            want = json.loads(done.stdout)
            for row in (want, answer):
                row.pop("picture", None)
            assert answer == want, (case, answer, want)
        assert pathlib.Path("d.png").read_bytes() == pathlib.Path("d2.png").read_bytes()
        os.remove("d.png")
    mixed = [{"id": 0, "expected": "e.png", "actual": "e.png"}, {"id": 1, "filter": "blur", "input": "e.png", "output": "o.png"}]
    answers, status, _ = work(mixed * 20, "--ordered")
    assert [answer["status"] for answer in answers] == ["equal", "done"] * 20 and status == 0, answers


def test_a_gpu_takes_one_filter_after_the_other():
    """Four workers share its constant memory, which has the taps of one filter. Planes of 16 bits are filtered in
    linear light or not; 8 bits with alpha become such planes, too."""
    picture("in.png")
    kinds = ((3, 8), (4, 8), (1, 16), (2, 16))
    for channels, bits in kinds:
        picture(f"in-{channels}-{bits}.png", channels=channels, bits=bits)
    filters = ("blur", "sharpen", "emboss", "gaussian:2", "blur,sharpen")
    lines = {backend: [{"id": i, "filter": filters[i * 7 % 5], "input": "in-%d-%d.png" % kinds[i // 2 % 4], "output": f"{backend}{i}.png",
                        "backend": backend, "linear": i % 3 == 0} for i in range(60)] for backend in ("cpu", "cuda")}
    for backend, group in lines.items():
        answers, status, said = work(group, "-j4", "-q", program=STUB)
        assert status == 0 and all(answer["backend"] == backend for answer in answers), (said, answers)
    for i in range(60):
        assert pathlib.Path(f"cpu{i}.png").read_bytes() == pathlib.Path(f"cuda{i}.png").read_bytes(), lines["cpu"][i]
    line = {"filter": "blur", "input": "in.png", "output": "o.png", "backend": "cuda"}
    (answer,), status, _ = work([line], "--backend", "cpu", program=STUB)
    assert status == 0 and answer["backend"] == "cuda", answer
    (answer,), status, _ = work([line])
    assert answer.get("backend") == "cuda" or (answer["class"], answer["retry"]) == ("gpu", False), answer


def choose_failures():
    """How the GPU fails in turn: each failure where jobs take about as long as the cost model expects. Under sanitizers
    they take 30 times as long, so there the one by which a GPU starts, works and fails; with emulators, none."""
    picture("in.png")
    heavy = {"filter": "log:15,log:15,log:15", "input": "in.png", "output": "o.png"}
    answers, status, _ = work([heavy] * 3, program=STUB)
    assert status == 0 and all(answer["backend"] == "cpu" for answer in answers), answers
    milliseconds = min(answer["ms"]["total"] for answer in answers)
    if milliseconds > 100:
        print("not tested: large images, which take minutes here")
        return ()
    return ("none:1", "launch:5", "open:1") if milliseconds < 30 else ("launch:5",)


HEAVY = {"filter": "log:15,log:15,log:15", "input": "large.png", "output": "o.png"}


def send_until(worker, is_enough):
    """Send a heavy line and take its answer until IS_ENOUGH of the answer. All answers."""
    answers = []
    while not answers or not is_enough(answers[-1]):
        assert len(answers) < 500, answers[-1]
        worker.send({**HEAVY, "id": len(answers)})
        answers.append(worker.answer())
        assert answers[-1]["status"] == "done", answers
    return answers


def test_a_gpu_starts_beside_the_jobs():
    """Nobody knows how many jobs will come. A GPU starts when it would have saved the time of its start. Jobs do not
    wait meanwhile, even if there are as many workers as processors. The GPU then does what it does faster."""
    failures = choose_failures()
    picture("large.png", width=100, height=100)  # small enough that one does not pay for a GPU on a slow processor
    tiny = {"filter": "blur", "input": "in.png", "output": "o.png"}
    for fail in failures:
        with contextlib.suppress(FileNotFoundError):
            os.remove("begin")
            os.remove("log")
        os.environ.update({"GPUCONV_STUB_LOG": "log", "GPUCONV_STUB_START": "begin", "GPUCONV_STUB_FAIL": fail})
        worker = Worker("-v", program=STUB)
        before = send_until(worker, lambda _: os.path.exists("log"))
        assert len(before) >= 5, before  # each image is known only when it comes
        deadline = time.monotonic() + SECONDS
        while "open" not in pathlib.Path("log").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        before += [answer for _ in range(4) for answer in send_until(worker, bool)]
        assert all(answer["backend"] == "cpu" for answer in before), before
        pathlib.Path("begin").touch()
        if fail != "open:1":
            send_until(worker, lambda answer: answer["backend"] == "cuda")
            worker.send(tiny)
            assert worker.answer()["backend"] == "cpu"
        worker.send(*[HEAVY] * 8)
        rest, status, said = worker.end()
        assert status == 0 and {answer["status"] for answer in rest} == {"done"}, (rest, said)
        assert {answer["backend"] for answer in rest} == {"cuda"} or fail != "none:1", rest
        assert ("; the CPU continues" in said) == (fail == "launch:5"), said
        why = "the GPU failed in open; " if fail == "open:1" else "a GPU began to start when it would have saved 0."
        assert "backend   " + why in said, said
    for name in ("LOG", "START", "FAIL"):
        os.environ.pop("GPUCONV_STUB_" + name, None)


def test_tiny_images_start_no_gpu():
    picture("in.png")
    tiny = {"filter": "blur", "input": "in.png", "output": "o.png"}
    why = "backend   a GPU would have saved 0.00 s, and its start is expected to take 0.25 s; "
    os.environ["GPUCONV_STUB_LOG"] = "none.log"
    for arguments in (["-j1", "-v"], ["-j4", "-v"]):
        answers, status, said = work([tiny] * 200, *arguments, program=STUB)
        assert status == 0 and all(answer["backend"] == "cpu" for answer in answers), answers
        assert said.startswith(why), said
        assert not os.path.exists("none.log")
    del os.environ["GPUCONV_STUB_LOG"]


def test_many_jobs_leak_nothing():
    """Thousands of jobs with ever other options hold no more memory than hundreds."""
    picture("in.png", width=4, height=3)
    peaks = []
    for count in (300, 1500):
        lines = b"".join(json.dumps({"id": i, "filter": f"gaussian:{1 + i % 700 / 1000}", "input": "in.png",
                                     "output": "o.png"}).encode() + b"\n" for i in range(count))
        pathlib.Path("lines").write_bytes(lines)
        # AddressSanitizer would keep up to 256 MB of memory that was released.
        with open("answers", "wb") as file:
            worker = subprocess.Popen([PROGRAM, "-q", "-j2", "--jobs-from", "lines"], stdout=file,
                                      env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"})
            _, worker.returncode, usage = os.wait4(worker.pid, 0)
        answers = pathlib.Path("answers").read_bytes()
        assert worker.returncode == 0 and answers.count(b'"done"') == count, answers
        peaks.append(usage.ru_maxrss)
    assert peaks[1] < peaks[0] + 16000, peaks  # KiB; a filter has more than 60


run_tests(globals())
