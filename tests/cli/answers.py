#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--json says what the text says: answers.py GPUCONV STUB ROOT.

Each text is made again from the JSON alone. The keys are those of the manual's table, and the
manual's lines for jq run as they stand there, if jq is installed. STUB is gpuconv with a stub that has two GPUs."""
import json
import math
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from harness import skip, temporary_folder  # noqa: E402

PROGRAM, STUB, ROOT = map(os.path.abspath, sys.argv[1:4])
FORMULAS = {"magnitude": "sqrt(s1^2 + s2^2)", "max": "max(|s1|, |s2|)", "sum": "|s1| + |s2|"}
KEYS = {}  # by option: its keys
POINTS = ("grey", "sepia", "saturation:33.123456789", "levels:10%:200:1.2", "posterize:5", "auto-levels:0.5", "auto-contrast",
          "./both.txt")


def ask(*words, program=PROGRAM, status=0, **values):
    """Standard output and standard error, as text that may hold surrogates for bytes that are not UTF-8."""
    done = subprocess.run([program, *words], env=dict(os.environ, **values), capture_output=True, check=False)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done.stdout.decode("utf-8", "surrogateescape"), done.stderr


def both(*words, **more):
    """The text of an answer, and the values of its JSON, one for each line of --compare."""
    text, messages = ask(*words, **more)
    answer, same_messages = ask(*words, "--json", **more)
    if '"status":"unreadable"' in answer:  # the reason is in the answer, and is not said twice
        messages = b""
    assert messages == same_messages, (words, messages, same_messages)
    answer.encode("utf-8")  # is it UTF-8?
    if words[0] == "--compare":
        values = [json.loads(line) for line in answer.splitlines()]
    else:
        values = json.loads(answer)
    objects = values if isinstance(values, list) else [values]
    kinds = {"resize": "--show resize:...", "thumbnail": "--show resize:...", "crop": "--show crop:...", "pad": "--show crop:...",
             "pixelate": "--show pixelate:...", "median": "--show median:...", "close": "--show median:..."}
    option = "--show sepia" if words[-1] in POINTS else kinds.get(words[-1].split(":")[0], words[0])
    if "@" in words[-1]:
        KEYS.setdefault("--show ...@...", []).extend(set(entry) & {"region"} for entry in objects)
    KEYS.setdefault(option, []).extend(set(entry) - {"region"} for entry in objects)
    return text, values


def agree(words, text, lines):
    assert text == "".join(line + "\n" for line in lines), (words, text, lines)


def escaped(text):
    """As for people: all that a terminal may take for a command as its bytes."""
    return re.sub("[\0-\x1f\x7f-\x9f\u202e\udc80-\udcff]", lambda c: {"\n": "\\n", "\t": "\\t"}.get(c[0]) or "".join(
        f"\\x{byte:02x}" for byte in c[0].encode("utf-8", "surrogateescape")), text)


def check_lists(home):
    folder = os.path.join(home, "own")
    os.mkdir(folder)
    for name, title in ((b"a\x9b\"\\", "one \"tap\" \\ \u00e4\u202e"), (b"none", ""), (b"wide", "2 x 1")):
        with open(os.path.join(os.fsencode(folder), name + b".txt"), "w", encoding="utf-8") as file:
            file.write((f"title {title}\n" if title else "") + ("scale 2\n1 1\n" if name == b"wide" else "1\n"))
    with open(os.path.join(folder, "damaged.txt"), "w", encoding="utf-8") as file:
        file.write("title damaged\nx\n")
    for path in ("", folder):
        text, found = both("--list", GPUCONV_FILTERS=path, HOME=home)
        assert max(map(len, text.splitlines())) <= 79, text
        assert re.findall(r"^(\w.*):$", text, re.M)[5:] == ["Rank", "Your own"][:1 + bool(path)], text
        text = text.split("\nFILTER@")[0]
        rows = re.sub(r"\n {24}", " ", re.sub(r"^(\w.*:)?\n", "", text, flags=re.M))  # without headings and breaks
        rows = [" ".join(row.split()) for row in rows.splitlines()]
        assert rows == [f"{escaped(e['name'])} {escaped(e['title'])}".strip() for e in found], (text, found)
    assert {"none", "wide", "a\udc9b\"\\"} < {entry["name"] for entry in found}, found

    for program in (PROGRAM, STUB):
        text, found = both("--list-variants", program=program)
        width = max(len(entry["name"]) for entry in found)
        lines = [f"{v['name']:{width}}  {v['backend']:4}  {'sm_%d' % v['capability'] if v['capability'] else '-':5}  "
                 f"{'/'.join(map(str, v['bits'])) + ' bit' if v['bits'] else 'float':8}  {v['filters']:14}  "
                 f"{v['summary']}"
                 for v in found]
        without = "This gpuconv was built without CUDA: the variants of the backend cuda cannot run."
        if not all(v["built_in"] for v in found):
            assert all(v["built_in"] == (v["backend"] == "cpu") for v in found), found
            lines.append(without)
        agree("--list-variants", text, lines)
    assert without not in text  # the note about the stub

    text, found = both("--list-codecs")
    agree("--list-codecs", text, [
        f"{c['name']:13}  {', '.join(c['formats']):18}  reads {c['read_bits']:2} bits, writes {c['write_bits']:2}  "
        f"{c['summary']}{'' if c['built_in'] else ' (not built in)'}" for c in found])


def shown(f):
    """The text of --show, from an object."""
    yield escaped(f["name"]) + (": " + escaped(f["title"]) if f["title"] else "")
    yield from shown_body(f, 255)
    if f["deep"]:
        yield from ["", "  For samples of more than 8 bits:"]
        yield from shown_body(f["deep"], 65535)


def unit(scale):
    power = scale.bit_length() - 1
    return f"1/2^{power}" if scale == 1 << power else f"1/{scale}"


def shown_body(f, levels):
    two, area = f["combine"] != "none", f["width"] * f["height"]
    yield (f"  size       {f['width']} x {f['height']}{', two grids' if two else ''}, "
           f"anchor {f['anchor'][0]} {f['anchor'][1]}")
    assert f["exact"] <= (f["largest_error"] == 0), f
    error = f", largest error {f['largest_error']:.2g} of {levels} levels"
    if f["taps"] is None:
        row, column = sum(f["row"]), sum(f["column"])
        assert len(f["row"]) == f["width"] and len(f["column"]) == f["height"] and f["separable"], f
        assert f["sums"] == [f["scale"]] and f["scale"] << f["row_shift"] == row * column, f
        rounded = f", its sums rounded to {unit(row >> f['row_shift'])} of a level" if f["row_shift"] else ""
        yield f"  passes     the row{rounded}, then the column"
        if f["amount"] is not None:
            yield (f"  mask       in + {f['amount']:.7g} (in - blur), where |in - blur| is at least "
                   f"{f['threshold']:.6g} levels")
        yield f"  sum        {row} and {column}: a constant image stays as it is"
        yield "  taps       exact" if f["exact"] else f"  taps       rounded once to {unit(row)} and {unit(column)}{error}"
        yield " ".join(map(str, ["  row       "] + f["row"]))
        yield " ".join(map(str, ["  column    "] + f["column"]))
        return
    assert len(f["taps"]) == area * len(f["sums"]), f
    assert f["sums"] == [sum(f["taps"][i:i + area]) for i in range(0, len(f["taps"]), area)], f
    assert f["row_shift"] is f["amount"] is f["threshold"] is None, f
    if two:
        yield f"  combine    {f['combine']}: {FORMULAS[f['combine']]} of the grids' sums"
    yield f"  scale      {f['scale']}"
    a, b = (abs(number) for number in (f["sums"] * 2)[:2])
    total = {"none": f["sums"][0], "max": max(a, b), "sum": a + b, "magnitude": math.hypot(a, b)}[f["combine"]]
    effect = "stays as it is" if total == f["scale"] else "becomes 0" if total == 0 else \
        f"is multiplied by {total / f['scale']:.6g}"
    yield (f"  sum        {' and '.join(map(str, f['sums']))}: a constant image {effect}"
           f"{', then the offset is added' if f['offset'] else ''}")
    yield f"  offset     {f['offset']:.10g}"
    if f["absolute"]:
        yield "  abs        the sum's absolute value is taken"
    yield "  taps       exact" if f["exact"] else f"  taps       rounded once to {unit(f['scale'])}{error}"
    if two:
        yield ""
    elif f["separable"]:
        yield f"  separable  yes: column {' '.join(map(str, f['column']))}, row {' '.join(map(str, f['row']))}"
        assert f["taps"] == [c * r for c in f["column"] for r in f["row"]], f
    else:
        yield "  separable  no"
        assert f["column"] is None and f["row"] is None, f
    if not two:
        yield ""
    widest = max(len(str(tap)) for tap in f["taps"])
    for i in range(0, len(f["taps"]), f["width"]):
        if i == area:
            yield "  ---"
        yield " " + "".join(f" {tap:{widest}}" for tap in f["taps"][i:i + f["width"]])


def check_filters(home):
    own = os.path.join(os.fsencode(home), b"b\x9b.txt")
    with open(own, "w", encoding="utf-8") as file:
        file.write("title \"\\\t\noffset -0.5\nanchor 1 0\nabs\n-1 1/3\n")
    two = os.path.join(home, "two.txt")
    with open(two, "w", encoding="utf-8") as file:
        file.write("combine sum\nscale 2\n1 0\n0 2\n---\n0 -7\n1 0\n")
    for words in ([two], ["blur,sobel-x,emboss,gaussian:2.5,shift-up"], ["sobel,emboss", "--flip", "--abs"],
                  ["unsharp:2:0.7:3.5,disk:1.2,box:70,gaussian:0.2,gaussian:60,log:1"],
                  [os.fsdecode(own)]):
        text, found = both("--show", *words, HOME=home)
        lines = []
        for i, entry in enumerate(found):
            lines += [""] * (i > 0) + list(shown(entry))
        agree(words, text, lines)


def shown_resize(f):
    """The text of --show for a filter that changes the size."""
    yield f"{f['name']}: {f['title']}"
    yield f"  kernel     {f['kernel']}"
    is_pillow = f["kernel"].startswith("pillow")
    if is_pillow:
        yield "  passes     each rounded to levels of 8 bits, in the order of Pillow 13"
    else:
        yield "  passes     the columns, their sums rounded to 1/2^6 of a level, then the rows"
    yield "  sum        1: a constant image stays as it is"
    if f["thumbnail"]:
        yield "  decoder    may make a JPEG smaller before, to twice the result or more"
    if f["taps8"] is None:
        yield f"  taps       depend on the picture; give its size at the end, as in {f['name']}:4000x3000"
        return
    columns, rows = f["taps8"]["columns"], f["taps8"]["rows"]
    yield f"  size       {rows['from']} x {columns['from']} becomes {rows['to']} x {columns['to']}"
    for bits in (8,) if is_pillow else (8, 16):
        yield from ["", f"  For samples of {bits} bits:"]
        for name in ("columns", "rows"):
            axis = f[f"taps{bits}"][name]
            kinds = axis["taps"]
            yield (f"  {name:10} {axis['from']} to {axis['to']}: {axis['count']} tap{'s' * (axis['count'] > 1)} for each, "
                   f"in 1/2^{axis['shift']}, of {len(kinds)} kind{'s' * (len(kinds) > 1)}")
            for i, kind in enumerate(kinds[:4]):
                missing = (1 << axis["shift"]) - sum(kind["taps"])
                assert len(kind["taps"]) == axis["count"] and abs(missing) <= is_pillow * axis["count"] / 2, f
                yield f"    {i} from {kind['first']}: {' '.join(map(str, kind['taps']))}"
            if len(kinds) > 4:
                yield "    and so on; --json has all"
        if is_pillow:
            yield f"  first      {'rows' if f['taps8']['rows_first'] else 'columns'}"
        else:
            yield f"  bound      {f[f'taps{bits}']['bound']:.4f} levels from the kernel's own result"


def check_resizes():
    for spec in ("resize:50%:1000x800", "resize:1920x1080:exact:mitchell:4000x3000", "resize:30x20:enlarge:10x10",
                 "resize:x99", "resize:12.5%:box", "thumbnail:320x", "thumbnail:12.5%:box:1000x800",
                 "resize:9x8:exact:pillow-lanczos:40x90", "resize:9x8:exact:pillow-box:40x30", "resize:9x8:pillow-box"):
        text, (found,) = both("--show", spec)
        agree(spec, text, shown_resize(found))
        assert found["thumbnail"] == spec.startswith("thumbnail"), found
        assert found["scale"] == {"50%": [1, 2], "12.5%": [1, 8]}.get(spec.split(":")[1]), found


def check_moves():
    for spec in "crop:9x9+1+2", "pad:99x99", "pad:99x99:#fff":
        text, (found,) = both("--show", spec)
        assert found["move"] == spec, found
        lines = [f"{spec}: {found['title']}", "  samples    only move, and stay as they are"]
        agree(spec, text, lines + ["  colour     transparent, or white without an alpha channel"] * (spec == "pad:99x99"))


def joined(curves):
    """Equal curves once, with all their channels."""
    found = []
    for curve in curves:
        rest = {key: value for key, value in curve.items() if key != "channel"}
        if found and found[-1][1] == rest:
            found[-1][0].append(curve["channel"])
        else:
            found.append(([curve["channel"]], rest))
    return found


def shown_points(f):
    """The text of --show for a matrix and curves."""
    yield f["name"] + (f": {f['title']}" if f["title"] else "")
    if f["automatic"]:
        colours = {"each": "each colour by itself", "all": "all colours together"}[f["automatic"]]
        yield f"  levels     from the picture's, {colours}; at each end {f['clip']:.7g}% of the samples may clip"
    for i, row in enumerate(f["matrix"]):
        end = "exact" if row["exact"] else f"rounded once, largest error {row['largest_error']:.2g} of 255 levels"
        yield (f"  {'colours' if len(f['matrix']) == 1 else ['red', 'green', 'blue', 'alpha'][i]:10} "
               f"{' '.join(map(str, row['weights']))} over {row['scale']}, offset {row['offset']:g}, {end}")
    for channels, curve in joined(f["curves"]):
        gamma = f" {curve['gamma']:g}" if curve["shape"] == "gamma" else ""
        yield f"  curve      {', '.join(channels)}: {curve['shape']}{gamma}"
        points = [f"{x:.7g} to {y:.7g}" for x, y in curve["points"]]
        yield from ("    " + ", ".join(points[i:i + 8]) for i in range(0, len(points), 8))


def check_points(home):
    with open(os.path.join(home, "both.txt"), "w", encoding="utf-8") as file:
        file.write("matrix\n1 0 0 0\n0 1 0 0\n0 0 1 0\n1/3 0 -2.5 0.1234567890123\ncurve red smooth\n"
                   + "".join(f"{9 * i} {i * i}\n" for i in range(11)) + "curve blue alpha steps\n0 0\n99.9% 1/7\n")
    os.chdir(home)
    for spec in POINTS:
        text, (found,) = both("--show", spec)
        agree(spec, text, shown_points(found))
    text, (found,) = both("--show", "pixelate:7@10x20%+3-4")
    assert found["region"] == "10x20%+3-4", found
    agree("pixelate", text, [f"{found['name']}: {found['title']}",
                             "  region     only there; the rest of the picture stays as it is",
                             f"  squares    {found['square']} x {found['square']} pixels from the corner at the top left, "
                             "smaller at the other edges"])


def check_ranks():
    results = {"close": "the highest sample, and of these the lowest"}
    for spec in ("median:1.5:disk", "close:1"):
        text, (found,) = both("--show", spec)
        rows = found["footprint"]
        assert found["samples"] == sum(map(sum, rows)), found
        line = (f"  rank       {found['rank'] + 1} of {found['samples']} samples in order, from 1 for the lowest" if found["form"] == "rank"
                else f"  result     {results[found['form']]}, of {found['samples']} samples")
        agree(spec, text, [f"{spec}: {found['title']}", f"  size       {len(rows[0])} x {len(rows)}, anchor "
                           + " ".join(map(str, found["anchor"])), line, "", *("  " + " ".join(map(str, row)) for row in rows)])


def check_devices():
    for program, count, values in ((PROGRAM, None, {}), (STUB, 2, {}), (STUB, 0, {"GPUCONV_STUB_GPUS": "0"}),
                                   (STUB, 0, {"GPUCONV_STUB_FAIL": "driver:1"})):
        text, found = both("--devices", program=program, **values)
        assert count in (None, len(found["devices"])) and (found["error"] is None) == bool(found["devices"]), found
        agree("--devices", text, [
            f"{d['device']:3}  {d['name']}, compute capability {d['capability'] // 10}.{d['capability'] % 10}, "
            f"{d['memory'] / 2 ** 30:.1f} GiB" for d in found["devices"]] or [f"no CUDA device: {found['error']}"])


def picture(path, width, channels):
    with open(path, "wb") as file:
        subprocess.run([sys.executable, os.path.join(HERE, "png.py"), str(width), "16", str(channels)], stdout=file,
                       check=True)


def check_row(text, row):
    """Are the numbers of a row's text those of its object?"""
    if row["status"] in ("equal", "missing", "new", "unreadable"):
        return
    if row["status"] == "shape":
        for side in ("expected", "actual"):
            shape = row[f"{side}_shape"]
            assert f"{side} {shape['width']} x {shape['height']} with {shape['channels']} channel" in text, (text, row)
        return
    for count, words in ((row["different"], ""), (row["tolerated"], " by at most"),
                         (row["antialiased"], " by antialiasing")):
        if count:
            assert re.search(rf"\b{count} of {row['compared']} pixels (\(.*?%\) )?differ{words}", text), (text, row)
    assert re.search(rf"largest difference {row['largest']}\b", text), (text, row)
    assert f"PSNR {row['psnr']:.2f} dB" in text, (text, row)
    if row["ssim"] is not None:
        place = row["local_ssim_at"]
        assert f"SSIM {row['ssim']:.6f}, local SSIM {row['local_ssim']:.6f} at x {place['x']} y {place['y']}" in text, (
            text, row)
    assert ("below its limit" in text) == bool(set(row["beyond"]) - {"pixels"}), (text, row)
    if row["different"]:
        first, box = row["first"], row["box"]
        assert f"first at x {first['x']} y {first['y']} channel {first['channel']}," in text, (text, row)
        assert f"box {box['width']} x {box['height']} at x {box['x']} y {box['y']}" in text, (text, row)
        assert abs(row["share"] - row["different"] / row["compared"]) < 1e-9, row


def check_compare(home):
    os.chdir(home)
    for name in ("expected", "actual"):
        os.mkdir(name)
    picture("expected/b\udc9b.png", 20, 3)
    shutil.copyfile("expected/b\udc9b.png", "actual/b\udc9b.png")
    for number, (name, names) in enumerate({"different": "ea", "shape": "ea", "missing": "e", "new": "a",
                                            "damaged": "ea", "tolerated": "ea"}.items()):
        for side in names:
            path = f"{'expected' if side == 'e' else 'actual'}/{name}.png"
            picture(path, 20 + number + (name == "shape" and side == "a"), 3)
            if side == "a" and name in ("different", "tolerated"):
                word = {"different": "edge", "tolerated": "identity"}[name]
                ask(word, path, path + ".png")
                os.replace(path + ".png", path)
    with open("one.txt", "w", encoding="utf-8") as file:  # lighter by one level
        file.write("offset 1\n1\n")
    ask("./one.txt", "expected/tolerated.png", "actual/tolerated.png")
    with open("actual/damaged.png", "r+b") as file:
        file.truncate(200)
    files = [os.path.join(side, name) for side in ("expected", "actual") for name in os.listdir(side)]

    text, rows = both("--compare", "expected", "actual", "--tolerance", "1", "--verbose", "--metadata", status=1)
    *lines, counts = text.splitlines()
    assert len(lines) == len(rows) == 7 and counts.startswith("7 pairs: 1 equal"), text
    assert {row["status"] for row in rows} == {"equal", "different", "shape", "missing", "new", "unreadable",
                                               "tolerated"}
    for line, row in zip(lines, rows):
        assert line.startswith(f"{row['status']:10} {escaped(row['name'])}"), (line, row)
        check_row(line, row)
        for side in ("expected", "actual"):
            path = os.path.join(side, row["name"])
            assert row[side] == (path if path in files else None), row
    reported = ask("--compare", "expected", "actual", "--tolerance", "1", "--metadata", "--report", "-", status=1)[0]
    assert [json.loads(line) for line in reported.splitlines()] == rows
    for name, status in (("different", 1), ("shape", 1), ("b\udc9b", 0), ("damaged", 1)):
        pair = [f"expected/{name}.png", f"actual/{name}.png"]
        more = [f"{name}-diff.png"] if name == "different" else []
        text, rows = both("--compare", *pair, *more, status=status)
        assert len(rows) == 1 and [rows[0]["expected"], rows[0]["actual"]] == pair, rows
        assert rows[0].get("picture") == (more or [None])[0], rows
        check_row(text, rows[0])
        assert (text == "equal\n") == (rows[0]["status"] == "equal"), (text, rows)
    for rules in (["--min-local-ssim", "1"], ["--tolerance-yiq", "0.1", "--ignore-antialiasing"]):
        text, (row,) = both("--compare", "expected/different.png", "actual/different.png", *rules, status=1)
        check_row(text, row)
        assert row["beyond"] == (["pixels"] if "antialiasing" in rules[-1] else ["local_ssim"])
    assert row["tolerance_yiq"] == 0.1
    ask("--compare", "expected", "actual", "--json", "--report", "more.jsonl", "--tolerance", "1", "--metadata",
        status=1)
    with open("more.jsonl", encoding="utf-8") as file:
        assert file.read() == reported


def manual():
    with open(os.path.join(ROOT, "docs", "manual.md"), encoding="utf-8") as file:
        return file.read()


def check_keys():
    """The manual's table names the keys of each option, and no others."""
    table = re.search(r"^<!-- keys -->\n\| option.*\n\|.*\n((?:\|.*\n)+)", manual(), re.M).group(1)
    named, option = {}, None
    for line in table.splitlines():
        first, keys, _ = (cell.strip() for cell in line[1:].replace("\\|", "").split("|")[:3])
        option = first.strip("`") or option
        named.setdefault(option, set()).update(re.findall(r"`(\w+)`", keys))
    found = {name: set.union(*keys) for name, keys in KEYS.items()}
    assert named == found, {name: named.get(name, set()) ^ found.get(name, set()) for name in named | found}
    for name, keys in KEYS.items():
        if name != "--compare":
            assert all(one == keys[0] for one in keys), f"{name}: some objects have other keys"


def check_jq(home):
    """The manual's lines run, each with what Python finds in the same JSON."""
    def of(*words, **more):
        return json.loads(ask(*words, "--json", **more)[0])

    def rows(f):
        return ["\t".join(map(str, f["taps"][i:i + f["width"]])) for i in range(0, len(f["taps"]), f["width"])]

    devices = of("--devices")
    expected = [
        [f["name"] for f in of("--list") if f["width"] == 5],
        [v["name"] for v in of("--list-variants") if v["built_in"] and 16 in v["bits"]],
        [c["name"] for c in of("--list-codecs") if c["built_in"] and c["write_bits"] == 16],
        [row for f in of("--show", "sobel,box:1") for row in rows(f)],
        [devices["error"]] if devices["error"] else [f"{d['device']} {d['name']}" for d in devices["devices"]],
        ["different.png"],
    ]
    lines = re.search(r"^<!-- jq: answers -->\n```sh\n(.*?)```", manual(), re.M | re.S).group(1).splitlines()
    assert len(lines) == len(expected), lines
    for line, words in zip(lines, expected):
        assert words, line
        done = subprocess.run(["sh", "-c", 'gpuconv() { "$GPUCONV" "$@"; }\n' + line], cwd=home, capture_output=True,
                              text=True, check=False, env=dict(os.environ, GPUCONV=PROGRAM))
        assert done.returncode == 0 and done.stdout.splitlines() == words, (line, done, words)
    return len(lines)


def main():
    for name in ("GPUCONV_FILTERS", "XDG_CONFIG_HOME"):
        os.environ.pop(name, None)
    with temporary_folder() as home:
        os.environ["HOME"] = home
        check_lists(home)
        check_filters(home)
        check_resizes()
        check_moves()
        check_points(home)
        check_ranks()
        check_devices()
        check_compare(home)
        check_keys()
        if not shutil.which("jq"):
            skip("jq is not installed; all but the manual's lines for it passed")
        print(f"{sum(map(len, KEYS.values()))} objects, {check_jq(home)} lines of jq")
    return 0


sys.exit(main())
