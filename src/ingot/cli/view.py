"""`ingot view`: what a run has written, as a page: fields with a slider, curves of a transient."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ingot.cli.flags import refuse, wrong_usage
from ingot.errors import IngotError, Problem

if TYPE_CHECKING:
    from ingot.cli.viewer.pictures import Slice

__all__ = ["view"]


def view(
    result: Path,
    /,
    *words: str,
    field: Annotated[tuple[str, ...], Parameter(alias="-f")] = (),
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    png: Path | None = None,
    slice: str = "z",
    frames: int = 100,
    points: int = 400,
    colours: Literal["viridis", "coolwarm", "gray"] = "viridis",
    json: bool = False,
) -> int:
    """Make a page of what a run wrote: fields with a slider for the time, or curves.

    The page is one file that needs no other. RESULT is an .xmf file or the folder of a simulation;
    or a file that ingot run --save wrote, or an input file whose transient is run.

    Example: ingot view spinodal.xmf --field c --png frames

    Parameters
    ----------
    result
        The .xmf file of a simulation, the .h5 file beside it, or the folder that holds one; or the
        result of a transient, or its input file.
    words
        Of an input file the name of its driver, then values that replace those of the file.
    field
        A field to show, all unless given; repeatable.
    output
        Where to write the page, beside the result unless given.
    png
        Also write a picture of each frame into this folder.
    slice
        For a box of three axes, the plane to show: an axis, or a layer along it, such as z=4.
    frames
        The most frames to show, evenly spread.
    points
        The most points to show along an axis.
    colours
        The colours of PNG files; the page has a choice of them.
    json
        Print what was made as JSON.
    """
    from ingot.cli.viewer.page import page
    from ingot.cli.viewer.page import png as write_png
    from ingot.cli.viewer.pictures import pictures
    from ingot.codegen.disk import writable
    from ingot.fields.outputs.frames import read_frames

    flags = {"--field": field, "--png": png, "--slice": slice != "z"}
    flags |= {
        "--frames": frames != 100,
        "--points": points != 400,
        "--colours": colours != "viridis",
    }
    if is_transient(result):
        refuse(result, "a transient", {name: value or None for name, value in flags.items()})
        return view_curves(result, words, output, json=json)
    if words:
        raise wrong_usage(f"'{words[0]}' is no flag of view", "give one result")
    found = read_frames(result)
    shown = pictures(found, field, slice_of(slice), frames, points)
    place = output or found.file.with_suffix(".html")
    with writable(any_error=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page(shown))
        made = [] if png is None else list(write_png(shown, png, colours))
    report = {
        "page": str(place),
        "fields": {name: shown.range_of(name) for name in shown.fields},
        "frames": len(shown.times),
        "shown": shown.note,
        "png": [str(path) for path in made],
    }
    if json:
        print(jsonlib.dumps(report))
        return 0
    for name in shown.fields:
        low, high = shown.range_of(name)
        print(f"{name}: {low:.6g} to {high:.6g} in {len(shown.times)} frames")
    if shown.note:
        print(f"shown: {shown.note}")
    print(f"wrote {place} ({place.stat().st_size / 1e6:.2g} MB)")
    if made:
        print(f"wrote {len(made)} pictures to {png}")
    return 0


def is_transient(path: Path) -> bool:
    """Whether a path is the result of a transient, or an input file with drivers."""
    from ingot.drivers.formats.choice import FORMATS
    from ingot.drivers.formats.stores import is_hdf5_result
    from ingot.hit import read_contents, sections_in

    suffix = path.suffix.lower()
    if suffix == ".i" and path.is_file():
        sections = sections_in(read_contents(path))
        return "Drivers" in sections and "Domain" not in sections
    return suffix in FORMATS and (suffix != ".h5" or is_hdf5_result(path))


def view_curves(path: Path, words: tuple[str, ...], output: Path | None, *, json: bool) -> int:
    """Write the page of a transient's curves."""
    from ingot.cli.report import run_transient, write_page
    from ingot.cli.viewer.transient_page import Source
    from ingot.drivers import read_result

    if path.suffix.lower() == ".i":
        told = run_transient(path, words, None)
        title = f"{path.name}: {told.driver.block.name}"
        source = Source(title, f"by {told.label}", warnings=told.warnings, timing=told.timing)
        place = Path(f"{path.stem}.html")
        write_page(told.result, source, output or place, json=json)
        return 0
    if words:
        raise wrong_usage(f"a result has no driver '{words[0]}'", "give one result")
    found = read_result(path)
    write_page(found, Source(path.name), output or path.with_suffix(".html"), json=json)
    return 0


def slice_of(text: str) -> "Slice":
    """The plane that a word such as z or z=4 stands for."""
    from ingot.cli.viewer.pictures import Slice

    axis, _, layer = text.partition("=")
    if axis not in ("x", "y", "z") or (layer and not layer.isdigit()):
        message = f"'{text}' is no plane of a box"
        fix = "give an axis, or a layer along it: z=4"
        raise IngotError([Problem("wrong-value", message, fix=fix)])
    return Slice(axis, int(layer) if layer else None)
