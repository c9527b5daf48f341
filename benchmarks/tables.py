#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the tables of README.md and of docs/ from the program and from the committed results:

    tables.py GPUCONV            rewrites the table below each line <!-- table: NAME -->
    tables.py GPUCONV --check    rewrites nothing, and fails where a table is out of date

It also rewrites the line "Measured" in the heads of kernels/*.cu that have one.

The lists of variants and filters are what GPUCONV prints. GPU times are those of one plane of 16384 x 16384, from
bench-h200.csv and peers-h200.csv, beside which some tables set bench-h100.csv; those of the kernels that the programs of
docs/learn/strips.md come from, and what the profiler says, are from lesson-h200.json. Whole runs on photos are from photos.json, and the CPU's loops from
loops.json. The book in docs/learn/ has learn-h200.json.
"""

import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
import measurements  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "benchmarks", "kernels", "manual", "notes/16-bits", "notes/old-questions", "notes/two-cards")),
    *(f"docs/learn/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "docs/learn")))
      if name.endswith(".md") and name not in ("colours.md", "pmpp.md", "ranks.md", "resampling.md", "wrong.md"))]
STEPS = ["first", "constant", "tile-input", "tile-output", "tile-words", "column", "words", "registers",
         "rows-ahead", "row-ring", "dp4a", "mma"]
FLOAT_STEPS = ["first", "constant", "tile", "column", "rows", "mma"]
FLOAT_SIDES = {15: 3058, 9: 16384}  # of the outputs, by the filter's
SIDE = 16384
KINDS = {"int8": "dense, taps of 8 bits", "int16": "dense, taps of 16 bits", "rank1": "separable"}
SIDES = [3, 5, 7, 9, 15, 31]
SAMPLES = ["uint8", "float"]
PROFILED = ["basic", "constant", "coarsened", "tiled-input", "tiled-output", "tiled-cached", "texture",
            "register-tiled", "separable", "tensor-core", "blur", "sparse", "copy", "gradient"]
WAITS = {"long_scoreboard": "memory", "mio_throttle": "room in the queue of shared memory", "wait": "a fixed time",
         "not_selected": "another warp's turn", "no_instruction": "instructions", "tex_throttle": "the texture unit",
         "lg_throttle": "room in the queue of loads"}


def milliseconds(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def line(cells):
    return ("| " + " | ".join(cells) + " |").replace("|  |", "| |").replace("|  |", "| |")


def head(*cells):
    return [line(cells), line(["---"] * len(cells))]


def words(kind, side):
    return f"{side} × {side} {KINDS[kind]}"


class Program:
    """What the binary says about itself, without the filters of whoever runs this."""

    def __init__(self, gpuconv):
        self.gpuconv = gpuconv

    def print(self, *options):
        clean = {**os.environ, "GPUCONV_FILTERS": "", "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
        return subprocess.run([self.gpuconv, *options], check=True, capture_output=True, text=True, env=clean).stdout

    def variants(self):
        """Name, backend, least GPU, bits, which filters, summary."""
        rows = [re.split(" {2,}", text) for text in self.print("--list-variants").splitlines()]
        return [row for row in rows if len(row) > 2]

    def filters(self):
        """Name, size, title."""
        return [(row["name"], f"{row['width']}x{row['height']}" if row["width"] else "any", row["title"])
                for row in json.loads(self.print("--list", "--json"))]


class Tables:
    """A function a table. The name of the function is the name in the page. OTHER is of a second card, or None."""

    def __init__(self, program, bench, other, peers, lesson, photos, loops, book):
        self.program = program
        self.rows = [row for row in bench["rows"] if row["backend"] == "cuda" and
                     (row["width"], row["height"], row["planes"]) == (SIDE, SIDE, 1)]
        self.backends = [row for row in bench["rows"] if row["planes"] == 1 and row["filter"] == "int8-9" and
                         row["sample"] == "uint8"]
        self.peers = [row for row in peers["rows"] if row["width"] == SIDE and row["status"] == "ok"]
        self.copy = {row["sample"]: row["median_ms"] for row in self.rows if row["variant"] == "(copy)"}
        self.blurs = [name for name, facts in bench["filters"].items() if facts["two_passes"]]
        self.lesson = lesson
        self.photos = photos
        self.loops = loops["rows"]
        self.book = book
        self.gpu = bench["device"]["name"]
        self.cards = {", H200": self, ", H100": other and Tables(program, other, None, peers, lesson, photos, loops, book)}

    def find(self, name, sample, **wanted):
        for row in self.rows:
            if row["filter"] == name and row["sample"] == sample and all(row[k] == v for k, v in wanted.items()):
                return row["median_ms"]
        return None

    def nine(self, variant, sample):
        """The variant's time for 9 x 9 random taps. A separable variant has taps of rank 1."""
        return self.find("rank1-9" if variant == "separable" else "int8-9", sample, variant=variant)

    def fastest_peer(self, name, sample):
        """The fastest call of any peer, or None. A peer that has no rows for its bare call counts as a whole."""
        rows = [row for row in self.peers if row["filter"] == name and row["sample"] == sample]
        bare = {row["peer"] for row in rows if row["part"] == "call"}
        rows = [row for row in rows if row["part"] == "call" or row["peer"] not in bare]
        return min(rows, key=lambda row: row["median_ms"], default=None)

    def beside_peer(self, name, sample):
        """Cells: gpuconv's time, its ratio to a copy, the peer's time and name, the ratio of both."""
        time = self.find(name, sample, chosen=True)
        if time is None:
            return [""] * 4
        peer = self.fastest_peer(name, sample)
        beside = [f"{milliseconds(peer['median_ms'])} ({peer['peer'].replace(' correlate', '')})",
                  f"{peer['median_ms'] / time:.1f}"] if peer else [""] * 2
        return [milliseconds(time), f"{time / self.copy[sample]:.2f}"] + beside

    def variants(self):
        lines = head("variant", "backend", "samples", "filters", "the idea", "9 × 9, ms")
        for name, backend, _, bits, filters, summary in self.program.variants():
            time = self.nine(name, "uint8")
            lines.append(line([name, backend, bits, filters, summary, milliseconds(time) if time else ""]))
        return lines

    def story(self):
        lines = head("variant", "the idea", "9 × 9, ms")
        for name, *_, summary in self.program.variants():
            if name in ("basic", "tiled-output", "register-tiled", "separable", "tensor-core"):
                lines.append(line([name, summary, milliseconds(self.nine(name, "uint8"))]))
        return lines

    def measured(self, variant):
        """The line in a kernel's head."""
        times = [(name, self.nine(variant, sample), self.copy[sample])
                 for name, sample in (("uint8_t", "uint8"), ("float", "float"))]
        return f" * Measured, 9 x 9 of {SIDE} x {SIDE} on an {self.gpu}: " + ", ".join(
            f"{name} {milliseconds(time)} ms ({time / copy:.1f} copies)" for name, time, copy in times)

    def beside_copy(self, first, samples, cards, rows):
        """Times and their ratios to a copy. ROWS has a function a name, from a card and a sample to the time."""
        columns = [(card, sample) for sample in samples for card in cards.values()]
        lines = head(first, *(cell for name in samples.values() for card in cards for cell in (
            f"`{name}`{card} ms", "× copy")))
        for name, time_of in {"*device-to-device copy*": lambda card, sample: card.copy[sample], **rows}.items():
            times = [(time_of(card, sample), card.copy[sample]) for card, sample in columns]
            if any(time for time, _ in times):
                lines.append(line([name] + [cell for time, copy in times for cell in (
                    (milliseconds(time), f"{time / copy:.2f}") if time else ("", ""))]))
        return lines

    def times(self, cards=None):
        rows = {row[0]: lambda card, sample, name=row[0]: card.nine(name, sample) for row in self.program.variants()}
        return self.beside_copy("variant", {"uint8": "uint8_t", "float": "float"}, cards or {"": self}, rows)

    def times_cards(self):
        return self.times(self.cards)

    def chosen_cards(self):
        """What is chosen for the filters that the second card has with 16 bits."""
        rows = {}
        for name in dict.fromkeys(row["filter"] for row in self.cards[", H100"].rows if row["sample"] == "uint16"):
            kind, _, side = name.partition("-")
            if name:
                rows[words(kind, int(side)) if kind in KINDS else f"`{name}`"] = (
                    lambda card, sample, name=name: card.find(name, sample, chosen=True))
        return self.beside_copy("filter", {"uint8": "uint8_t", "uint16": "uint16_t"}, self.cards, rows)

    def roofline(self):
        """Where each variant is under the roofs, for 9 x 9."""
        lines = head("variant", *(f"`{name}`{what}" for name in ("uint8_t", "float") for what in
                                  (" TMAC/s", " % of a copy's speed", " % of the peak")))
        for name in (row[0] for row in self.program.variants()):
            found = {row["sample"]: row for row in self.rows if row["variant"] == name and
                     row["filter"] == ("rank1-9" if name == "separable" else "int8-9")}
            if "uint8" in found:
                lines.append(line([name] + [cell for sample in SAMPLES for cell in (
                    [f"{found[sample]['tmac_s']:.2f}", f"{found[sample]['percent_copy']:.1f}",
                     f"{found[sample]['percent_peak']:.1f}"] if sample in found else [""] * 3)]))
        return lines

    def by_side(self):
        """The textbook variants, which are those before register-tiled, by the filter's size."""
        names = [row[0] for row in self.program.variants() if row[1] == "cuda"]
        names = names[:names.index("register-tiled") + 1]
        lines = head("ms", *names)
        for sample in SAMPLES:
            lines += [line([f"{side} × {side} `{sample}{'_t' if sample == 'uint8' else ''}`"] +
                           [milliseconds(self.find(f"int8-{side}", sample, variant=name)) for name in names])
                      for side in SIDES]
        return lines

    def by_step(self):
        """The kernels from coarsened to register-tiled, by the filter's size."""
        rows = [row for row in self.lesson["rows"] if row["filter"]]
        names = sorted(dict.fromkeys(row["variant"] for row in rows), key=lambda name: name == "register-tiled")
        lines = head("ms", *names)
        for sample in SAMPLES:
            for name in dict.fromkeys(row["filter"] for row in rows):
                times = {row["variant"]: row["median_ms"] for row in rows
                         if (row["filter"], row["sample"]) == (name, sample)}
                side = name.split("-")[1]
                lines.append(line([f"{side} × {side} `{sample}{'_t' if sample == 'uint8' else ''}`"] +
                                  [milliseconds(times[variant]) for variant in names]))
        return lines

    @staticmethod
    def waits(facts):
        """The reason for which most waiting warps wait."""
        stall = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
        waits = {match.group(1): facts[match.group()] for match in map(stall.fullmatch, facts) if match}
        most = max(waits, key=waits.get)
        return f"{WAITS[most]}, `{most}` {waits[most] / sum(waits.values()):.0%}"

    def profile(self, *names):
        """What bounds each variant, or the ones of these NAMES, and the stall that most waiting warps have."""
        peak = ".avg.pct_of_peak_sustained_"
        lines = head("variant", "instructions per output", "issue slots", "L1, shared memory, texture unit", "L2",
                     "warps", "most waiting warps wait for")
        for name in names or PROFILED:
            facts = self.lesson["profile"][name]
            shares = [facts[key + peak + when] for key, when in (
                ("smsp__issue_active", "active"), ("l1tex__throughput", "active"), ("lts__throughput", "elapsed"),
                ("sm__warps_active", "active"))]
            lines.append(line([name, f"{32 * facts['smsp__inst_executed.sum'] / 4096 ** 2:.1f}",
                               *(f"{share:.0f}%" for share in shares),
                               self.waits(facts)]))
        return lines

    def by_backend(self):
        """The CPU beside the GPU, by the image's size, with and without transfers."""
        lines = head("image", "CPU ms", "GPU ms", "to the GPU ms", "from it ms", "GPU with both ms")
        for row in self.backends:
            gpu = next(other for other in self.backends if other["chosen"] and other["backend"] == "cuda" and
                       other["width"] == row["width"])
            if row["variant"] == "cpu":
                moved = [gpu["upload_ms"], gpu["download_ms"]]
                lines.append(line([f"{row['width']} × {row['height']}", milliseconds(row["median_ms"]),
                                   milliseconds(gpu["median_ms"]), *map(milliseconds, moved),
                                   milliseconds(gpu["median_ms"] + sum(moved))]))
        return lines

    def by_loop(self):
        """What the compiler's options, vectors and threads bring, beside the plain loop at -O0 and at -O3."""
        plain = {row["built"]: row["ms"] for row in self.loops if row["loop"] == "pixel by pixel"}
        lines = head("loop or variant", "options or instruction set", "threads", "ms", "× faster than `-O0`", "than `-O3`")
        for row in self.loops:
            built = f"`{row['built']}`" if row["built"].startswith("-") else row["built"]
            lines.append(line([row["loop"], built, f"{row['threads']}",
                               f"{row['ms']:.0f}" if row["ms"] >= 100 else milliseconds(row["ms"])] +
                              [f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}" for ratio in (
                                  plain["-O0"] / row["ms"], plain["-O3"] / row["ms"])]))
        return lines

    def programs(self, *names):
        """The times of programs of the book. loop.c:1 is loop.c with its first answer."""
        copy = next(row["ms"] for row in self.book["rows"] if row["program"] == "copy.cu")
        lines = head("program", "ms", "× copy")
        for name in names:
            program, _, answer = name.partition(":")
            rows = [row for row in self.book["rows"] if (row["program"], row["answer"]) == (program, int(answer or 0))]
            if not rows:
                lines.append(line([f"`{program}`" + ", the answer" * bool(answer), "to be measured", ""]))
            elif rows[0]["what"]:  # a program with several times, which are no convolutions of the whole image
                lines = lines if len(lines) > 2 else head(f"`{program}`" + ", the answer" * bool(answer), "ms")
                lines += [line([row["what"], f"{row['ms']:.4f}" if row["ms"] < 0.1 else milliseconds(row["ms"])]) for row in rows]
            else:
                lines.append(line([f"`{program}`" + ", the answer" * bool(answer), milliseconds(rows[0]["ms"]),
                                   f"{rows[0]['ms'] / copy:.1f}"]))
        return lines

    def ladder(self):
        """The steps of the book, with the sentence in the head of each."""
        lines = head("step", "ms", "× copy", "what it does")
        rows = {(row["program"], row["answer"], row["what"]): row["ms"] for row in self.book["rows"]}
        copy = rows["copy.cu", 0, ""]
        steps = [("loop.c", ms, "one thread of the CPU, " + what) for what, ms in (
            (what, rows["loop.c", SIDE, what]) for what in ("pixel by pixel", "row by row"))]
        for name in STEPS + ["copy"]:
            with open(os.path.join(ROOT, "docs", "learn", f"{name}.cu"), encoding="utf-8") as file:
                sentence = re.search(r"(?m)^ \* (.*)\.$", file.read()).group(1)
            steps.append((f"{name}.cu", rows.get((f"{name}.cu", 0, "")), sentence[0].lower() + sentence[1:]))
        for name, ms, what in steps:
            times = ["to be measured", ""] if ms is None else [
                f"{ms:.0f}" if ms >= 100 else milliseconds(ms), f"{ms / copy:.0f}" if ms / copy >= 100 else f"{ms / copy:.1f}"]
            lines.append(line([f"[{name}]({name})", *times, what.replace(" x ", " × ")]))
        return lines

    def floats(self, *names):
        """The times of the steps for floats, and how often the roofline: the longer of a copy's and the arithmetic's.
        Without NAMES, all steps, with links; rows:1 is float-rows.cu with its first answer."""
        rows = {(row["program"], row["answer"], row["what"]): row["ms"] for row in self.book["rows"]}
        shapes = [f"{size} x {size}" for size in FLOAT_SIDES]
        lines = head("program", *(cell for shape in shapes for cell in (shape.replace("x", "×") + ", ms", "× roofline")))
        for name in names or [*FLOAT_STEPS, "copy"]:
            program, _, answer = name.partition(":")
            cells = [f"`float-{program}.cu`" if names else f"[float-{program}.cu](float-{program}.cu)"]
            cells[0] += ", the answer" * bool(answer)
            for shape in shapes:
                ms = rows[f"float-{program}.cu", int(answer or 0), shape]
                roofline = max(rows["float-copy.cu", 0, shape + what] for what in ("", ", arithmetic"))
                cells += [milliseconds(ms), f"{ms / roofline:.2f}"]
            lines.append(line(cells))
        return lines

    def counters(self, size=None):
        """What the profiler counts in the steps of the book, or in those for floats and a filter of this SIZE."""
        lines = head("program", "instructions an output", "issue slots", "warps", "most waiting warps wait for")
        for name in [f"float-{name}" for name in FLOAT_STEPS] if size else STEPS:
            facts = self.book["profile"].get(f"{name}.cu {size or 0}")
            if facts:
                instructions = 32 * facts["smsp__inst_executed.sum"] / (FLOAT_SIDES[int(size)] if size else SIDE) ** 2
                lines.append(line([f"`{name}.cu`", f"{instructions:.0f}"] + [
                    f"{facts[key]:.0f}%" for key in ("smsp__issue_active.avg.pct_of_peak_sustained_active",
                                                     "sm__warps_active.avg.pct_of_peak_sustained_active")] +
                                  [self.waits(facts)]))
        return lines

    def peers_all(self):
        lines = head("filter", "`uint8_t`: gpuconv ms", "× copy", "fastest peer ms", "ratio",
                     "`float`: gpuconv ms", "× copy", "fastest peer ms", "ratio")
        return lines + [line([words(kind, side)] + [cell for sample in SAMPLES
                                                    for cell in self.beside_peer(f"{kind}-{side}", sample)])
                        for kind in KINDS for side in SIDES]

    def sixteen_bits(self):
        lines = head("filter", "variant", "`uint16_t` ms", "× copy", "fastest peer ms", "ratio")
        lines.append(line(["*device-to-device copy*", "", milliseconds(self.copy["uint16"]), "1.00", "", ""]))
        chosen = {row["filter"]: row["variant"] for row in self.rows if row["sample"] == "uint16" and row["chosen"]}
        random = [f"{kind}-{side}" for side in SIDES for kind in KINDS]
        for name in random + [name for name in chosen if name not in random and name not in self.blurs]:
            kind, _, side = name.partition("-")
            lines.append(line([words(kind, int(side)) if kind in KINDS else f"`{name}`", chosen[name]] +
                              self.beside_peer(name, "uint16")))
        return lines

    def two_passes(self):
        lines = head("filter", *(f"{cell}" for sample in ("uint8_t", "uint16_t") for cell in (
            f"`{sample}`: gpuconv ms", "× copy", "fastest peer ms", "ratio")))
        return lines + [line([f"`{name}`"] + [cell for sample in ("uint8", "uint16")
                                             for cell in self.beside_peer(name, sample)]) for name in self.blurs]

    def photo(self):
        lines = head("work", "gpuconv", "vips", "ratio", "MB written: gpuconv", "vips")
        return lines + [line([row["work"], f"{row['gpuconv_s']:.3f} s", f"{row['vips_s']:.3f} s",
                              f"{row['gpuconv_s'] / row['vips_s']:.2f}", f"{row['gpuconv_mb']}", f"{row['vips_mb']}"])
                        for row in self.photos["photo"]]

    def batch(self):
        lines, machine = head("machine", "", "images/s", "of codec", "memory, MB"), None
        for row in self.photos["batch"]:
            percent = row["percent_of_codec"]
            lines.append(line(["" if row["machine"] == machine else row["machine"], row["program"],
                               f"{row['images_per_s']}", "" if percent is None else f"{percent}%",
                               f"{row['memory_mb']}"]))
            machine = row["machine"]
        return lines

    def filters_shipped(self):
        return head("filter", "what it does") + [line([f"`{name}`", title]) for name, size, title
                                                 in self.program.filters() if size != "any"]

    def filters_parametric(self):
        return head("filter", "what it does") + [line([f"`{name}`", title]) for name, size, title
                                                 in self.program.filters() if size == "any"]


def load(name):
    return measurements.read(os.path.join(HERE, name))


def main():
    operands = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(operands) != 1:
        sys.exit(__doc__)
    tables = Tables(Program(operands[0]), *(load(name) for name in (
        "bench-h200.csv", "bench-h100.csv", "peers-h200.csv", "lesson-h200.json", "photos.json", "loops.json",
        "learn-h200.json")))
    stale = 0

    def table(match):
        name, *operands_of_table = match.group(1).split()
        return f"<!-- table: {match.group(1)} -->\n" + "\n".join(getattr(tables, name)(*operands_of_table)) + "\n"

    kernels = [f"kernels/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "kernels"))) if name.endswith(".cu")]
    for page in PAGES + kernels:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()
        if page in kernels:
            fresh = re.sub(r"(?m)^ \* Measured.*", lambda _: tables.measured(os.path.basename(page)[:-3]), text)
        else:
            fresh, count = re.subn(r"<!-- table: ([^\n]*) -->\n(?:\|.*\n)*", table, text)
            assert count > 0, f"{page} has no table"
        if fresh != text and "--check" in sys.argv:
            print(f"{page}: what is generated is out of date; run benchmarks/tables.py {operands[0]}")
            stale += 1
        elif fresh != text:
            with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
                file.write(fresh)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
