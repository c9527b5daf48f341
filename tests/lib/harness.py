# SPDX-License-Identifier: MIT
"""What the tests in Python share: running gpuconv, and skipping."""
import subprocess
import sys
import time

SKIP = 77  # the exit status of a test that is skipped


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def run(program, *arguments, status=0):
    """Run it to its end. Another exit status than STATUS ends the test."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"gpuconv {' '.join(arguments)}: exit status {done.returncode}, expected {status}\n{done.stderr}")
    return done


def run_and_signal(command, delay, number, **options):
    """Start a run, send it a signal after DELAY seconds, and return its exit status."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    time.sleep(delay)
    process.send_signal(number)
    return process.wait()
