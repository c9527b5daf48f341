# SPDX-License-Identifier: MIT
"""What the tests in Python share: running gpuconv, expecting exceptions, and skipping."""
import contextlib
import importlib.util
import os
import pty
import re
import subprocess
import sys
import tempfile
import time

SKIP = 77  # the exit status of a test that is skipped


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def use_python_with(module):
    """If this Python lacks MODULE, run the program again by Debian's, which may have it."""
    debian = "/usr/bin/python3"
    if importlib.util.find_spec(module) is None and sys.executable != debian and os.path.exists(debian):
        os.execv(debian, [debian, *sys.argv])


def need_module(module):
    """Skip the test if neither this Python nor Debian's has MODULE."""
    use_python_with(module)
    if importlib.util.find_spec(module) is None:
        skip(f"the Python module {module} is not installed")


@contextlib.contextmanager
def temporary_folder():
    """A new folder, in which the test runs until the block ends. Then it is removed. First make relative paths
    absolute."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="gpuconv-", ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def run_tests(functions):
    """Call each function test_... of a program, whose globals() are FUNCTIONS, in an empty folder."""
    for name, test in list(functions.items()):
        if name.startswith("test_"):
            with temporary_folder():
                test()
            print(name, flush=True)


def expect(kind, text, function, *arguments, **options):
    """The call raises KIND, with TEXT in its message."""
    try:
        function(*arguments, **options)
    except kind as error:
        assert type(error) is kind and text in str(error), repr(error)
    else:
        raise AssertionError(f"nothing was raised; expected {kind.__name__}: {text}")


def fork_on_terminal():
    """As pty.fork. The test is skipped where there is no terminal to be had, as in some containers."""
    try:
        return pty.fork()
    except OSError as error:
        skip(f"there is no pseudo-terminal: {error}")


def run(program, *arguments, status=0, env=None):
    """Run it to its end. Another exit status than STATUS ends the test."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env=env)
    if done.returncode != status:
        sys.exit(f"{os.path.basename(program)} {' '.join(arguments)}: exit status {done.returncode}, expected {status}\n{done.stderr}")
    return done


def has_codec(program, name):
    return not re.search(f"{name}.*not built in", run(program, "--list-codecs").stdout)


def run_and_signal(command, delay, number, has_reached=lambda: True, **options):
    """Start a run, send it a signal DELAY seconds after HAS_REACHED is true, and return its exit status."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    while process.poll() is None and not has_reached():
        time.sleep(0.0005)
    time.sleep(delay)
    process.send_signal(number)
    return process.wait()


# Runs the command in its arguments, and prints its exit status and its maximal memory in bytes. A process's own
# memory counts for what it starts, so this is a small one.
LAUNCHER = """
import os, sys
status, usage = os.wait4(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0)[1:]
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def peak(command):
    """Run a command to its end. Returns its exit status, the most bytes of memory that it held, and its messages."""
    env = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}  # it would touch all memory
    done = subprocess.run([sys.executable, "-S", "-c", LAUNCHER, *command], capture_output=True, text=True, env=env)
    status, memory = done.stdout.split()[-2:]
    return int(status), 1024 * int(memory), done.stderr.splitlines()


def run_cases(command, cases):
    """Let processes of COMMAND that may die read cases, a line each. For each case they print a line ">", and one that
    begins with "'" if it fails. Returns these, and one for each case in which a process died."""
    lines = []
    while cases:
        child = subprocess.run(command, input="\n".join(cases), text=True, capture_output=True)
        begun = max(child.stdout.count(">\n"), 1)
        lines += re.findall("^'.*", child.stdout, re.MULTILINE)
        if child.returncode != 0:
            lines.append(f"'{cases[begun - 1]}': exit status {child.returncode}: {child.stderr.strip()[-300:]}")
        cases = cases[begun:]
    return lines
