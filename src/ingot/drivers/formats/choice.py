"""The table of formats by ending; save: a Result -> a file; read_result: a file -> a Result."""

import pickle
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ingot.drivers.formats import archives, plain_table, stores, table
from ingot.drivers.result import Result
from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if
from ingot.extras import find_missing
from ingot.keywords import check_keywords
from ingot.package.write import open_file, open_scratch, put

__all__ = ["FORMATS", "Format", "find_unwritable", "read_result", "save"]


@dataclass(frozen=True, slots=True)
class Format:
    """How a result is written and read, what it holds, and what must be installed for it."""

    write: Callable[[Result, Path], None]
    read: Callable[[Path], Result]
    says: str
    needs: str | None = None
    is_folder: bool = False


_ARCHIVE = Format(
    archives.write_archive, archives.read_archive,
    "every value by name and step, as NEML2 writes it, for torch.load",
)  # fmt: skip
FORMATS = {
    ".csv": Format(
        table.write_table, plain_table.read_table, "a table as text: a row for each step and point"
    ),
    ".npz": Format(
        archives.write_arrays, archives.read_arrays, "an array for each variable, for numpy.load"
    ),
    ".pt": _ARCHIVE,
    ".pth": _ARCHIVE,
    ".h5": Format(
        stores.write_hdf5, stores.read_hdf5, "a dataset for each variable, in groups", "h5py"
    ),
    ".parquet": Format(
        table.write_parquet, table.read_parquet, "the table, compressed by column", "pyarrow"
    ),
    ".zarr": Format(
        stores.write_zarr, stores.read_zarr, "a folder of chunked, compressed arrays", "zarr",
        is_folder=True,
    ),
}  # fmt: skip
"""What is written and read by the ending of a file."""

BROKEN = (
    KeyError, ValueError, TypeError, IndexError, OSError, RuntimeError, EOFError,
    pickle.UnpicklingError, zipfile.BadZipFile, msgspec.MsgspecError,
)  # fmt: skip
"""What libraries raise on files that are cut off, or are none of theirs."""


def save(result: Result, path: Path) -> None:
    """Write a result in one step: whoever reads finds the whole of it, or what stood there."""
    raise_if(find_unwritable(path))
    form = FORMATS[path.suffix.lower()]
    if not form.is_folder:
        with open_file(path) as file:
            form.write(result, file)
        return
    place = path.resolve() if path.is_symlink() else path
    if place.exists() and not stores.is_zarr_result(place):
        message = f"'{path}' is there, and is no result that may be replaced"
        raise IngotError([Problem("foreign-files", message, None, "give another name")])
    with open_scratch(place) as folder:
        form.write(result, folder)
        put(folder, place)


def find_unwritable(path: Path, span: Span | None = None) -> Iterator[Problem]:
    """A problem where the ending of a file does not say what to write, or its library is absent, or
    it has a name that no file should have.
    """
    control = re.search(r"[\0-\x1f\x7f]", str(path))
    if control is not None:
        message = f"{str(path)!r} is no name of a file: it holds {control[0]!r}"
        yield Problem("wrong-value", message, span, "name it by letters that can be read")
        return
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        message = f"'{path}' does not say by its ending what to write"
        yield Problem("unknown-ending", message, span, f"end it in one of: {', '.join(FORMATS)}")
    elif form.needs is not None:
        yield from find_missing(form.needs, f"{path.suffix} files", span=span)


@check_keywords
def read_result(path: str | Path) -> Result:
    """The result that `Result.save`, `ingot run --save` or `save_as` wrote."""
    path = Path(path)
    if not path.exists():
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        message, fix = f"there is no '{path}'", did_you_mean(path.name, near)
        fix = fix or "write one: ingot run FILE --save result.npz"
        raise IngotError([Problem("file-not-found", message, None, fix)])
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        message = f"'{path}' is no result by its ending"
        fix = f"give a file that --save wrote: {', '.join(FORMATS)}"
        raise IngotError([Problem("unknown-ending", message, None, fix)])
    raise_if(find_unwritable(path))
    try:
        return form.read(path)
    except IngotError:
        raise
    except BROKEN as error:
        said = str(error).strip() or type(error).__name__
        message = f"'{path}' holds no result: {said.splitlines()[0]}"
        fix = "write it with Result.save, or with ingot run FILE --save result.npz"
        raise IngotError([Problem("unreadable-result", message, None, fix)]) from error
