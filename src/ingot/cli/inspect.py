"""`ingot inspect`: what a package, a stub or a model of a file reads, gives and is made of."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingot.cli.flags import tell_code, wrong_usage
from ingot.cli.package import folder_of
from ingot.errors import IngotError, Problem, did_you_mean, raise_if

if TYPE_CHECKING:
    from ingot.cli.inspected import Inspected
    from ingot.hit import Tree
    from ingot.package.metadata import Origin

__all__ = ["inspect"]


def inspect(
    place: Path,
    /,
    *overrides: str,
    model: str | None = None,
    driver: str | None = None,
    source: Path | None = None,
    svg: Path | None = None,
    json: bool = False,
    untrusted: bool = False,
) -> int:
    """Tell what a package, its stub or the models of an input file read, give and are made of.

    Of a package it also tells whether the file that it was compiled from has changed since.

    Example: ingot inspect model.i --model elasticity --svg wiring.svg

    Parameters
    ----------
    place
        A package's folder, that of a joint or of regions too, a stub, or an input file.
    overrides
        Values that replace those of an input file, such as Models/elasticity/E:=210000.
    model
        Which block of [Models] of an input file; without it all.
    driver
        A driver whose values give the structural shapes of the model's variables.
    source
        The file that a package was compiled from, where it is not found by itself.
    svg
        Write the wiring as a picture here.
    json
        Print what there is to tell as JSON.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    """
    from ingot.catalog import law_files
    from ingot.cli.torch_stages import is_package
    from ingot.hit import read
    from ingot.runtime.stub import stub_block

    if is_package(str(place)):
        return of_graphs(place, json=json)
    tree = read(place, overrides) if place.suffix == ".i" else None
    packaged = tree is None or stub_block(tree) is not None
    unused = {"--source": source} if not packaged else {"--model": model, "--driver": driver}
    wrong = [flag for flag, value in unused.items() if value is not None]
    if packaged and overrides:
        wrong.append(overrides[0])
    if packaged and law_files():
        wrong.append("--load")
    if wrong:
        kind = "a package" if packaged else "an input file"
        message = f"{', '.join(wrong)} says nothing about {kind}"
        raise wrong_usage(message, "leave it out")
    if tree is None or packaged:
        report, found = of_package(place, tree, source)
    else:
        tell_code(tree, untrusted=untrusted)
        report, found = of_file(tree, model, driver, untrusted=untrusted)
    if svg is not None:
        draw(found, svg)
    print(jsonlib.dumps(report) if json else "\n\n".join(map(str, found)))
    return 0


def of_graphs(place: Path, *, json: bool) -> int:
    """What joints or regions take, hold and give, and the constants taken when they were traced."""
    import msgspec

    from ingot.cli.torch_stages import find_signatures, read_graphs

    described = read_graphs(place)
    told = [*map(str, find_signatures(described))]
    if described.kind == "regions":
        from ingot.regions.report import Report

        told.append(str(msgspec.convert(described.more["report"], Report)))
    print(msgspec.json.encode(described).decode() if json else "\n\n".join(told))
    return 0


def draw(found: "list[Inspected]", svg: Path) -> None:
    """Write the wiring of the one model that was inspected."""
    from ingot.cli.drawing import drawn
    from ingot.codegen.disk import writable

    if len(found) != 1:
        names = ", ".join(one.name for one in found)
        message = f"a picture shows one model, and there are {len(found)}"
        raise wrong_usage(message, f"choose --model: {names}")
    with writable(any_error=True):
        svg.write_text(drawn(found[0].wiring, found[0].title))


def of_file(
    tree: "Tree", model: str | None, driver: str | None, *, untrusted: bool
) -> "tuple[dict[str, Any], list[Inspected]]":
    """One model of an input file, or all."""
    from ingot.cli.inspected import inspected_model
    from ingot.drivers import structural_shapes
    from ingot.hit import unknown_sections
    from ingot.model import SECTIONS, Factory

    names = tree.names("Models")
    if not names:
        message = f"{tree.file} has no [Models]"
        raise IngotError([Problem("unknown-name", message, None, "name another file")])
    if model is not None and model not in names:
        fix = did_you_mean(model, names) or f"one of: {', '.join(names)}"
        message = f"{tree.file} has no model '{model}'"
        raise IngotError([Problem("unknown-name", message, None, fix)])
    problems = list(unknown_sections(tree, SECTIONS))
    factory = Factory(tree, untrusted=untrusted)
    found: list[Inspected] = []
    for name in names if model is None else (model,):
        try:
            built = factory.model(name)
            shapes = structural_shapes(factory, built, driver)
            found.append(inspected_model(built, shapes, str(tree.file)))
        except IngotError as error:
            problems += [p for p in error.problems if p not in problems]
    if problems:
        raise IngotError(problems)
    models = [one.report() for one in found]
    return {"file": str(tree.file), "digest": tree.digest, "models": models}, found


def of_package(
    place: Path, stub: "Tree | None", source: Path | None
) -> "tuple[dict[str, Any], list[Inspected]]":
    """What a package says, under the solver of its stub, and what became of its source.

    Of several devices the first is told, and the names of all.
    """
    import msgspec

    from ingot.cli.inspected import inspected_package
    from ingot.model import Factory
    from ingot.runtime.loader import find_other_folder, metadata_of
    from ingot.runtime.stub import find_other_program, require_stub, under_rules
    from ingot.runtime.verify import folders_of

    folders = folders_of(folder_of(place))
    devices = [folder.name for folder in folders]
    meta, _ = metadata_of(folders[0], folders[0].name)
    raise_if(find_other_folder(meta, folders[0]) if len(folders) > 1 else ())
    if stub is not None:
        raise_if(find_other_program(meta, require_stub(stub)))
        meta = under_rules(meta, require_stub(stub), Factory(stub))
    beside = place.absolute().parent if stub is not None else folders[0].absolute().parents[1]
    state, file = source_state(meta.origin, beside, source)
    report = {**msgspec.to_builtins(meta), "source": {"file": file, "state": state}}
    report["devices"] = devices
    said = {
        "same": f"{file} is what was compiled",
        "changed": f"{file} has changed since it was compiled",
        "not found": f"{meta.origin.file or 'a text'} is not found; name it with --source",
    }
    return report, [inspected_package(meta, said[state], devices)]


def source_state(origin: "Origin", beside: Path, source: Path | None) -> tuple[str, str | None]:
    """Whether the source is the `same`, has `changed` or was `not found`, and where it lies.

    It is looked for where we are, in the folder of stubs and packages, and in the one above; beside
    it the files of its laws, one of which may be what has changed.
    """
    from ingot.hit import read

    around = [Path(), beside, beside.parent]
    found = [folder / origin.file for folder in around if (folder / origin.file).is_file()]
    files = [source] if source is not None else found if origin.file else []
    for file in files:
        try:
            if read(file, origin.overrides).digest == origin.digest:
                changed = changed_law(origin, [file.parent, *around])
                return ("same", str(file)) if changed is None else ("changed", str(changed))
        except IngotError:
            if source is not None:
                raise
    return ("changed", str(files[0])) if files else ("not found", None)


def changed_law(origin: "Origin", around: list[Path]) -> Path | None:
    """A file of laws that is not what was compiled, nor another of its name nearby."""
    from hashlib import sha256

    for name, digest in origin.laws.items():
        files = [folder / name for folder in around if (folder / name).is_file()]
        if files and not any(sha256(f.read_bytes()).hexdigest() == digest for f in files):
            return files[0]
    return None
