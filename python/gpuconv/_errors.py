# SPDX-License-Identifier: MIT
"""The exceptions and the warning of this package, beside ValueError, TypeError, MemoryError and OSError."""


class ImageError(ValueError):
    """The bytes of a file are damaged, or of a kind that is not supported; or a format cannot hold the image."""


class GpuError(RuntimeError):
    """There is no GPU that can be used, or it has failed."""


class ImageWarning(UserWarning):
    """A file or a filter may not be what it seems: what the command line warns of."""
