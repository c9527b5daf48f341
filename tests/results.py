#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the last `meson test` did: results.py BUILD. It prints why tests were skipped, and as its last line how many
passed, failed and were skipped. It fails if a test failed, if none passed, or if one was skipped without a reason."""
import collections
import json
import pathlib
import sys


def reason(test):
    """The words behind "skipped: " in a test's output, or None."""
    output = test.get("stdout", "") + test.get("stderr", "")
    lines = [line[len("skipped: "):] for line in output.splitlines() if line.startswith("skipped: ")]
    return lines[-1] if lines else None


def main():
    logs = pathlib.Path(sys.argv[1], "meson-logs").glob("testlog*.json")  # testlog-all.json is that of `--setup all`
    newest = max(logs, key=lambda log: log.stat().st_mtime, default=None)
    if newest is None:
        sys.exit(f"no test ran in {sys.argv[1]}; run meson test -C {sys.argv[1]}")
    tests = [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]
    passed = sum(test["result"] in ("OK", "EXPECTEDFAIL") for test in tests)
    skipped = collections.defaultdict(list)
    for test in tests:
        if test["result"] == "SKIP":
            skipped[reason(test)].append(test["name"].split(" / ")[-1])
    for why, names in skipped.items():
        print(f"{len(names)} skipped, {why or 'which say no reason'}: {', '.join(names)}")
    count = sum(map(len, skipped.values()))
    failed = len(tests) - passed - count
    print(f"{passed} passed, {failed} failed, {count} skipped")
    return 0 if passed > 0 and failed == 0 and None not in skipped else 1


sys.exit(main())
