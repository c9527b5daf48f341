#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Simulate large batches: scale.py [--seed S]. It prints the two tables of docs/scale.md.

1. How much more work the largest part of a batch has than the mean, if a part is a hash of the name. The work of a file
   is lognormal with a sigma of 0.8: of 1,000 files, the largest has about 15 times the median.
2. What machines cost that can be taken away at any moment (preemptible, spot). Their lives are exponential. A machine
   takes the next part of a queue; a part whose machine is taken away returns to the end of the queue. A part of a folder
   goes on where it was (--skip-existing); a part that is an archive begins again. A new machine takes a minute.

Needs NumPy."""
import argparse
import heapq

import numpy

SIGMA = 0.8
LIFE = 3 * 3600     # mean seconds until a machine is taken away
NEW_MACHINE = 60    # seconds until there is another
START = 0.4         # seconds of gpuconv on a machine with a GPU
SKIP = 20e-6        # seconds for a file that is already there: one look at the output
RATE = 2000         # images a second of a machine
IMAGES = 100_000_000
MACHINES = 16


def shards(random, files, parts):
    """The largest part's work by the mean."""
    rounds = 20 if files < 1_000_000 else 3
    ratios = []
    for _ in range(rounds):
        work = random.lognormal(0, SIGMA, files)
        sums = numpy.bincount(random.integers(0, parts, files), work, parts)
        ratios.append(sums.max() / sums.mean())
    return float(numpy.mean(ratios))


def preemption(random, parts, resumes):
    """Hours until all is done, by those without any loss; and how many parts began again."""
    images = numpy.full(parts, IMAGES / parts)
    queue = [(index, 0.0) for index in range(parts)]  # the part, and how much of it is done
    machines = [(0.0, float(random.exponential(LIFE))) for _ in range(MACHINES)]  # free from, taken away at
    heapq.heapify(machines)
    end, again = 0.0, 0
    while queue:
        now, death = heapq.heappop(machines)
        part, done = queue.pop(0)
        begin = START + done * SKIP
        need = begin + (images[part] - done) / RATE
        if now + need <= death:
            end = max(end, now + need)
            heapq.heappush(machines, (now + need, death))
            continue
        again += 1
        worked = max(0.0, death - now - begin) * RATE
        queue.append((part, done + worked if resumes else 0.0))
        fresh = max(now, death) + NEW_MACHINE
        heapq.heappush(machines, (fresh, fresh + float(random.exponential(LIFE))))
        assert again < 1000 * parts, "this never ends"
    return end / (IMAGES / RATE / MACHINES), again


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    random = numpy.random.default_rng(parser.parse_args().seed)
    print("| files a part | 8 parts | 64 parts | 1,000 parts |\n| --- | --- | --- | --- |")
    for each in (25, 100, 1_000, 10_000):
        cells = [f"{shards(random, each * parts, parts):.2f}" for parts in (8, 64, 1000)]
        print(f"| {each:,} | {' | '.join(cells)} |")
    print("\n| parts | images | minutes | folder: begun again, time | archives: begun again, time |\n"
          "| --- | --- | --- | --- | --- |")
    for parts in (16, 64, 256, 1_000, 10_000, 100_000):
        cells = []
        for resumes in (True, False):
            minutes = IMAGES / parts / RATE / 60
            if not resumes and minutes > 60:  # a part that machines seldom live long enough for
                cells.append("")
                continue
            results = [preemption(random, parts, resumes) for _ in range(20 if parts < 100_000 else 3)]
            times, agains = zip(*results)
            cells.append(f"{numpy.mean(agains):.0f}, {numpy.mean(times):.2f}")
        print(f"| {parts:,} | {IMAGES // parts:,} | {IMAGES / parts / RATE / 60:.1f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
