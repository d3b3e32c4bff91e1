"""`ingot package`: whether a package can be trusted, how its metadata is laid out, C++ headers."""

import json as jsonlib
from dataclasses import replace
from pathlib import Path

from cyclopts import App

from ingot.errors import IngotError, Problem, raise_if

__all__ = ["folder_of", "package"]

package = App(
    name="package",
    help="""Check a package, print how its metadata is laid out, or where the C++ headers are.

    Example: ingot package verify aoti/model""",
)


@package.command
def verify(place: Path, /, *, json: bool = False, untrusted: bool = False) -> int:
    """Check every file of a package, and load it; all that is wrong is told at once.

    Native code is loaded only where every file is the one that was compiled.

    Example: ingot package verify aoti/model

    Parameters
    ----------
    place
        A package's folder, or a stub.
    json
        Print the outcome as JSON.
    untrusted
        Check the files, and load none of their code.
    """
    from ingot.runtime.verify import find_mixed, folders_of, tell_elsewhere, wrong_with

    problems: list[Problem] = []
    checked = 0
    try:
        folders = folders_of(folder_of(place))
    except IngotError as error:
        folders = []
        problems += error.problems
    for folder in folders:
        for each in wrong_with(folder, untrusted=untrusted):
            named = each.message if len(folders) == 1 else f"{folder.name}/: {each.message}"
            problems.append(replace(each, message=named))
        checked += sum(1 for path in folder.iterdir() if path.is_file())
    problems += find_mixed(folders, place) if not problems else ()
    if json:
        told = [{"code": p.code, "message": p.message, "fix": p.fix} for p in problems]
        print(jsonlib.dumps({"place": str(place), "files": checked, "problems": told}))
        return int(bool(problems))
    raise_if(problems)
    told = f"{place}: all {checked} files are as they were compiled"
    if not untrusted:
        away = [folder.name for folder in folders if tell_elsewhere(folder)]
        told += f"; code for {', '.join(away)} is not loaded here" if away else ", and load"
    print(told)
    return 0


@package.command
def schema() -> None:
    """Print the JSON Schema of a package's metadata.

    Example: ingot package schema > docs/metadata.schema.json
    """
    from ingot.package.metadata import json_schema

    print(jsonlib.dumps(json_schema(), indent=1))


@package.command
def cpp(*, include: bool = False) -> None:
    """Print the folder of the C++ headers: for CMAKE_PREFIX_PATH, or for -I with --include.

    What a compiler is told, docs/cpp.md shows.

    Example: ingot package cpp --include

    Parameters
    ----------
    include
        Print the folder that a compiler searches, in place of the one around it.
    """
    inside = Path(__file__).parents[1] / "cpp"
    folder = inside if inside.is_dir() else Path(__file__).parents[3] / "cpp"
    print(folder / "include" if include else folder)


def folder_of(place: Path) -> Path:
    """The folder of a package that is named by itself or by its stub."""
    if place.suffix != ".i":
        return place
    from ingot.hit import read
    from ingot.runtime.stub import package_of, require_stub

    tree = read(place)
    return package_of(require_stub(tree), tree)
