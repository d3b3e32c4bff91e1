"""Laws of a user's own: a Python file in, its laws in the catalogue out.

A file is run anew whenever it is loaded, from its text: neither an earlier module nor bytecode that
was left beside it stands in for what it says now.
"""

import hashlib
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ingot.catalog.declare import CATALOG
from ingot.errors import IngotError, Problem, Span
from ingot.hit import read_contents

__all__ = ["law_files", "laws_of", "load_file"]

_LOADED: dict[Path, None] = {}


def law_files() -> tuple[Path, ...]:
    """The files whose laws are in the catalogue now, in the order they were loaded."""
    return tuple(_LOADED)


@contextmanager
def laws_of(files: Sequence[str | Path]) -> Iterator[None]:
    """The catalogue with the laws of these files, and afterwards as it was."""
    from ingot.catalog import load

    catalogue, loaded = dict(load()), dict(_LOADED)
    try:
        for file in {os.path.realpath(file): file for file in files}.values():
            load_file(file)
        yield
    finally:
        CATALOG.clear()
        CATALOG.update(catalogue)
        _LOADED.clear()
        _LOADED.update(loaded)


def load_file(path: str | Path) -> tuple[str, ...]:
    """The names of the laws that a Python file declares, all of which join the catalogue.

    As for a script, modules beside the file can be imported, `from helper import f` or
    `from .helper import f`.
    """
    from ingot.catalog import load

    text = _text_of(Path(path))
    file = Path(os.path.realpath(path))
    before = dict(load())
    try:
        _run(file, text)
        names = tuple(name for name, law in CATALOG.items() if law is not before.get(name))
        if not names:
            fix = "write @model(gives=...) above a function of it"
            raise IngotError([Problem("no-law", f"'{path}' declares no law", fix=fix)])
    except BaseException:
        CATALOG.clear()
        CATALOG.update(before)
        raise
    _LOADED[file] = None
    return names


def _text_of(path: Path) -> str:
    """The contents of a Python file."""
    text = read_contents(path)
    if path.suffix != ".py":
        message, fix = f"'{path}' is no Python file", "name a file that ends in .py"
        raise IngotError([Problem("wrong-python", message, fix=fix)])
    return text


def _run(file: Path, text: str) -> None:
    """Run a file as a module of a package of its own, whose folder is the file's."""
    # the whole path tells files of one stem apart, and what they import relatively
    package = ModuleType(f"laws_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}")
    package.__path__ = [str(file.parent)]
    stem = re.sub(r"\W", "_", file.stem)
    module = ModuleType(f"{package.__name__}.{stem}")
    module.__file__, module.__package__ = str(file), package.__name__
    _forget(package.__name__)
    known = set(sys.modules)
    sys.modules |= {package.__name__: package, module.__name__: module}
    linecache.checkcache()
    sys.path.insert(0, str(file.parent))
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        exec(compile(text, str(file), "exec", dont_inherit=True), module.__dict__)
    except IngotError:
        raise
    except (Exception, SystemExit) as error:
        raise IngotError([_tell(error, file)]) from error
    finally:
        sys.dont_write_bytecode = written
        sys.path.remove(str(file.parent))
        for name in _beside(file.parent, set(sys.modules) - known):
            _forget(name)


def _beside(folder: Path, names: set[str]) -> set[str]:
    """The modules that lie in a folder, which another folder may hold by the same names."""
    tops = {name for name in names if "." not in name}
    origins = {name: Path(getattr(sys.modules[name], "__file__", None) or "/") for name in tops}
    places = {
        name: file.parent.parent if file.name == "__init__.py" else file.parent
        for name, file in origins.items()
    }
    return {name for name, place in places.items() if place.resolve() == folder}


def _forget(name: str) -> None:
    """Let a module and what it contains be imported anew."""
    for each in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[each]


def _tell(error: BaseException, file: Path) -> Problem:
    """What a file raised, at the last line of the user's own that led there."""
    fix = "the file is run as Python does: mend this line"
    if isinstance(error, SyntaxError) and error.filename is not None:
        span = Span(error.filename, error.lineno or 1, text=(error.text or "").rstrip())
        return Problem("wrong-python", f"'{file.name}' is not Python: {error.msg}", span, fix)
    own = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).parent == file.parent
    ]  # fmt: skip
    if not own:  # it was not even parsed, such as one with a null byte
        fix = "write Python in it"
        return Problem("wrong-python", f"'{file.name}' is not Python: {error}", None, fix)
    last = own[-1]
    block = "" if last.name == "<module>" else last.name
    span = Span(last.filename, last.lineno or 1, 0, 0, block, (last.line or "").rstrip())
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    return Problem("wrong-python", f"'{file.name}' raises {what}", span, fix)
