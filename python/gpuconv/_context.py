# SPDX-License-Identifier: MIT
"""Where the work is done."""
import os
import threading
import weakref

from . import _library

_thread = threading.local()  # its contexts by name
_open: "weakref.WeakSet[Context]" = weakref.WeakSet()


class Context:
    """The threads of the CPU or a GPU, with memory and plans that are kept from call to call.

    Each thread has its own, which functions use where context= is None. Make one to choose the number of threads, or to
    filter NumPy arrays on a GPU. Calls that share a context take turns.

    threads: of the CPU, the calling one included; 0 is one for each processor that this process may use. They start
        when an image of about 0.5 megabytes or more first needs them.
    gpu: the number of a GPU, from 0; its start takes about 0.3 s. None filters on the CPU.

    Raises GpuError if the GPU cannot be used. A child of fork() cannot use a Context of its parent."""

    _as_parameter_ = _library.c_void_p()  # none: the library then says that there is no context

    def __init__(self, threads: int = 0, gpu: int | None = None) -> None:
        self.threads, self.gpu = threads, gpu
        options = _library.ContextOptions(threads, gpu is not None, gpu or 0)
        self._as_parameter_ = _library.c_void_p(_library.context_open(options, _library.Error()))
        _open.add(self)

    def _forget(self):
        pointer, self._as_parameter_ = self._as_parameter_, Context._as_parameter_
        return pointer

    def close(self) -> None:
        """Wait for queued work, and end the threads. Nobody may use it at the same time, or after it."""
        _library.context_close(self._forget())

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_reason) -> None:
        self.close()

    def __del__(self):
        self.close()

    def __repr__(self):
        return f"gpuconv.Context(threads={self.threads}, gpu={self.gpu})"


def current_context(gpu=None):
    """The context of this thread on the CPU, or on the GPU of that number."""
    contexts = _thread.__dict__
    name = "cpu" if gpu is None else str(gpu)
    if name not in contexts:
        contexts[name] = Context(gpu=gpu)
    return contexts[name]


def _forget_all():
    """The threads of a parent are not in its child: contexts there can neither work nor end."""
    for context in _open:
        context._forget()
    _thread.__dict__.clear()


os.register_at_fork(after_in_child=_forget_all)


def gpus() -> int:
    """The number of GPUs that can be used. The first call starts CUDA, which takes up to 0.2 s."""
    return _library.gpus()
