# SPDX-License-Identifier: MIT
"""Where the work is done."""
import ctypes
import os
import threading
import time
from _thread import allocate_lock, start_new_thread

from . import _library

_thread = threading.local()  # its contexts by name


class Context(_library.Object):
    """The threads of the CPU or a GPU, with memory and plans that are kept from call to call.

    Each thread has its own, which functions use where context= is None. Make one to choose the number of threads, or to
    filter NumPy arrays on a GPU. Calls that share a context run one after the other.

    threads: of the CPU, the calling one included; 0 is one for each processor that this process may use. They start
        when an image of about 0.5 megabytes or more first needs them.
    gpu: the number of a GPU, from 0; its start takes about 0.3 s. None filters on the CPU.

    Raises GpuError if the GPU cannot be used. A child of fork() cannot use a Context of its parent."""

    def __init__(self, threads: int = 0, gpu: int | None = None) -> None:
        self.threads, self.gpu = threads, gpu
        self._process, self._outcome = os.getpid(), [None]  # run_interruptibly()'s: empty until the call has ended
        options = _library.ContextOptions(threads=threads, uses_gpu=gpu is not None, device=gpu or 0)
        super().__init__(_library.context_open(options, _library.Error()), _library.context_close)

    def close(self) -> None:
        """Wait for queued work, and end the threads. Nobody may use it at the same time, or after it."""
        self._wait()
        self._close()

    def _wait(self):
        """Wait until a call has ended that an exception has left."""
        while not self._outcome and self._process == os.getpid():
            time.sleep(0.001)

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_reason) -> None:
        self.close()

    def __repr__(self):
        return f"gpuconv.Context(threads={self.threads}, gpu={self.gpu})"


def chosen_context(context, gpu=None):
    """CONTEXT; if it is None, that of this thread on the CPU, or on the GPU of that number."""
    if context is not None:
        return _library.expect(context, Context, "context")
    contexts = _thread.__dict__
    name = "cpu" if gpu is None else str(gpu)
    if name not in contexts:
        contexts[name] = Context(gpu=gpu)
    return contexts[name]


# A child opens contexts of its own. The library refuses those of the parent, and leaves them alone when they are
# closed.
os.register_at_fork(after_in_child=lambda: _thread.__dict__.clear())


def run_interruptibly(context, options, call):
    """CALL(), which a signal such as Ctrl-C ends early. Python hears it only between its own instructions, so that a
    thread makes the call meanwhile. The handler of a signal may raise an exception anywhere here, also a second one.
    So run() keeps all that the library uses until the call has ended."""
    stop, outcome, ended, claims = ctypes.c_int(0), [], allocate_lock(), [None]

    def run():
        try:
            claims.pop()
        except IndexError:  # another thread makes the call
            return False
        context._outcome = outcome
        options.stop = ctypes.addressof(stop)
        error = None
        try:
            call()
        except BaseException as raised:
            error = raised
        outcome.append(error)
        ended.release()
        return True

    context._wait()
    ended.acquire()
    try:
        try:
            start_new_thread(run, ())
        except RuntimeError:  # at the end of the interpreter, or by a limit
            if not run():
                raise
        ended.acquire()
    except BaseException:
        stop.value = 1
        while not outcome:  # this may be the second exception, and the first one is raised
            try:
                ended.acquire()
            except BaseException:
                pass
        raise
    finally:
        stop.value = 1  # the block above may have been left by an exception, too
    if outcome[0] is not None:
        raise outcome[0]


def is_main_thread():
    """Does this thread hear signals?"""
    return threading.current_thread() is threading.main_thread()


def gpus() -> int:
    """The number of GPUs that can be used. The first call starts CUDA, which takes up to 0.2 s."""
    return _library.gpus()
