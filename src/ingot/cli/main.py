"""Arguments in, exit code out.

0 done, 1 a problem in the user's files or run, 2 wrong usage, 70 a bug of ours (with traceback).
"""

import io
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args, get_origin

from cyclopts import App, CycloptsError, Parameter

from ingot import __version__
from ingot.cli.cache import cache
from ingot.cli.compile import compile
from ingot.cli.completion import completion
from ingot.cli.diagnose import diagnose
from ingot.cli.doctor import doctor
from ingot.cli.explain import explain
from ingot.cli.flags import with_laws
from ingot.cli.inspect import inspect
from ingot.cli.lsp import lsp
from ingot.cli.package import package
from ingot.cli.plot import plot
from ingot.cli.report import report
from ingot.cli.run import run
from ingot.cli.show import show
from ingot.cli.sweep import sweep
from ingot.cli.syntax import syntax
from ingot.cli.test import test
from ingot.cli.view import view
from ingot.codegen.disk import FULL, unwritable
from ingot.errors import IngotError, IngotWarning
from ingot.options import find_no_choice

__all__ = ["app", "main", "status"]

app = App(
    name="ingot",
    help="Physics written for one point, run on millions of points.",
    help_format="plaintext",
    version=__version__,
    default_parameter=Parameter(negative=()),
)
for command in (run, report, sweep, diagnose, show, compile, inspect, test, syntax, lsp):
    app.command(with_laws(command))
for command in (plot, package, cache, view, explain, doctor, completion):
    app.command(command)


def main() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # µ is no reason to fail where only ASCII is shown
    try:
        code = status(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # who read what is printed has gone, as `head` does; nothing is left to be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    if code and "h5py" in sys.modules:
        # HDF5 dies at the end of the process on a file that the disk refused, and hides the code
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def status(arguments: Sequence[str]) -> int:
    """Run a command and tell its exit code; what went wrong is printed to stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", IngotWarning)
        warnings.showwarning = partial(_print_warning, set())
        return _status(arguments)


def _print_warning(
    printed: set[str], message: Warning | str, category: type[Warning], *place: Any
) -> None:
    """Print a warning of ours once, as the user reads an error; any other as Python does."""
    if isinstance(message, IngotWarning):
        if str(message) not in printed:
            print(message, file=sys.stderr)
        printed.add(str(message))
    else:
        filename, line = place[:2]
        text = warnings.formatwarning(str(message), category, filename, line)
        print(text, file=sys.stderr, end="")


def _print_usage(error: CycloptsError) -> None:
    """Say what is wrong with the words of a command: of a choice in our words, else in theirs."""
    from cyclopts import CoercionError, CycloptsPanel
    from rich.console import Console

    kind = error.target_type if isinstance(error, CoercionError) else None
    if isinstance(error, CoercionError) and error.token is not None and get_origin(kind) is Literal:
        name = error.token.keyword or (error.argument.name if error.argument else "it")
        problems = find_no_choice(name, error.token.value, get_args(kind))
        print(*(replace(each, code="wrong-usage") for each in problems), sep="\n", file=sys.stderr)
    else:
        Console(stderr=True).print(CycloptsPanel(error))


def _status(arguments: Sequence[str]) -> int:
    try:
        return (
            app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
            or 0
        )
    except CycloptsError as error:
        _print_usage(error)
        return 2
    except IngotError as error:
        print(error, file=sys.stderr)
        return 2 if any(problem.code == "wrong-usage" for problem in error.problems) else 1
    except BrokenPipeError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            print(unwritable(error), file=sys.stderr)
            return 1
        traceback.print_exc()
        print("\nThis is a bug in Ingot; please report it with the lines above.", file=sys.stderr)
        return 70
