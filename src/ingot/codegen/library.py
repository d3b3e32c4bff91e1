"""Bytes that were read and checked -> a library that runs exactly them.

`dlopen` takes a name that it knows, or a file that is mapped, for the library it opened before; and
a mapped file that is cut short ends the process (SIGBUS). So no file that others know is opened.
"""

import ctypes
import hashlib
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["open_library", "private_file"]

_LOCK = threading.Lock()
_HANDLES: dict[str, int] = {}
"""Libraries by the digest of their bytes: ctypes never closes one, so that each is mapped once."""


def open_library(content: bytes) -> ctypes.CDLL:
    """The library whose file has this content."""
    name = hashlib.sha256(content).hexdigest()
    with _LOCK:
        if name not in _HANDLES:
            with private_file(content, ".so") as file:
                try:
                    _HANDLES[name] = ctypes.CDLL(str(file))._handle
                except OSError as error:
                    # the name of the private file says nothing to anybody
                    raise OSError(str(error).replace(f"{file}: ", "")) from None
        return ctypes.CDLL(name, handle=_HANDLES[name])


@contextmanager
def private_file(content: bytes, ending: str) -> Iterator[Path]:
    """A file of a name never used before, gone at the end; what has mapped it keeps its bytes."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        file = Path(folder) / f"private{ending}"
        file.write_bytes(content)
        yield file
