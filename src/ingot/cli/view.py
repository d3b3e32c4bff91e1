"""`ingot view`: what a run has written, as a page: fields with a slider, curves of a transient."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ingot.cli.flags import refuse, wrong_usage
from ingot.errors import IngotError, Problem, raise_if

if TYPE_CHECKING:
    from ingot.cli.viewer.pictures import Slice

__all__ = ["view"]


def view(
    result: Path,
    /,
    *words: str,
    field: Annotated[tuple[str, ...], Parameter(alias="-f")] = (),
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    csv: tuple[Path, ...] = (),
    png: Path | None = None,
    slice: str | None = None,
    frames: int = 100,
    points: int = 512,
    megabytes: float = 64.0,
    colours: Literal["viridis", "magma", "cividis", "coolwarm", "gray"] = "viridis",
    json: bool = False,
) -> int:
    """Make a page of what a run wrote: fields with a slider for the time, or curves.

    The page is one file that needs no other. It opens on the last frame, with
    the postprocessors of the run beside it; it shows a box by three planes,
    and vectors as arrows or streamlines. RESULT is an .xmf, .pvd, .vti or .e
    file or the folder of a simulation, which may be running still; or a file
    that ingot run --save wrote, or an input file whose transient is run.

    Example: ingot view spinodal.xmf --field c --png frames

    Parameters
    ----------
    result
        The .xmf, .pvd, .vti or .e file of a simulation, the .h5 file beside it,
        or the folder that holds one; or the result of a transient, or its input file.
    words
        Of an input file the name of its driver, then values that replace those of the file.
    field
        A field or a vector to show, all unless given; repeatable.
    output
        Where to write the page, beside the result unless given.
    csv
        A table to show beside the fields, that of the same name unless given; repeatable.
    png
        Also write a picture of each frame into this folder.
    slice
        Of a box of three axes only one plane: an axis, or a layer along it, such as z=4.
    frames
        The most frames to show, evenly spread.
    points
        The most points to show along an axis.
    megabytes
        The most numbers to put into the page; points and frames are left out beyond that.
    colours
        The colours of PNG files; the page has a choice of them.
    json
        Print what was made as JSON.
    """
    from ingot.cli.viewer.page import page
    from ingot.cli.viewer.page import png as write_png
    from ingot.cli.viewer.pictures import Limits, pictures, range_of
    from ingot.cli.viewer.tables import find_tables
    from ingot.codegen.disk import writable
    from ingot.fields.outputs.frames import read_frames

    limits, usual = Limits(frames, points, megabytes), Limits()
    flags = {"--field": field, "--csv": csv, "--png": png, "--slice": slice}
    flags |= {
        "--frames": frames != usual.frames,
        "--points": points != usual.points,
        "--megabytes": megabytes != usual.megabytes,
        "--colours": colours != "viridis",
    }
    if is_transient(result):
        refuse(result, "a transient", {name: value or None for name, value in flags.items()})
        return view_curves(result, words, output, json=json)
    if words:
        raise wrong_usage(f"'{words[0]}' is no flag of view", "give one result")
    found = read_frames(result)
    tables, note = find_tables(found, csv)
    shown = pictures(found, field, None if slice is None else slice_of(slice), limits, tables)
    notes = [*shown.notes, *([note] if note else [])]
    place = output or found.file.with_suffix(".html")
    with writable(any_error=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page(shown))
        made = [] if png is None else list(write_png(shown, png, colours))
    ranges = {name: range_of(each.values) for name, each in shown.fields.items()}
    report = {
        "page": str(place),
        "source": str(found.file),
        "fields": ranges,
        "vectors": {each.name: each.parts for each in shown.vectors},
        "curves": [name for table in tables for name in table.columns],
        "frames": len(shown.times),
        "last_time": shown.times[-1],
        "shown": ", ".join(notes),
        "png": [str(path) for path in made],
    }
    if json:
        print(jsonlib.dumps(report))
        return 0
    for name, ends in ranges.items():
        told = "no finite number" if ends is None else f"{ends[0]:.6g} to {ends[1]:.6g}"
        print(f"{name}: {told} in {len(shown.times)} frames")
    for table in tables:
        print(f"curves: {', '.join(table.columns)} of {table.file}")
    if notes:
        print(f"shown: {', '.join(notes)}")
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
    from ingot.execute import failures

    if path.suffix.lower() == ".i":
        told = run_transient(path, words, None)
        title = f"{path.name}: {told.driver.block.name}"
        source = Source(title, f"by {told.label}", warnings=told.warnings, timing=told.timing)
        place = Path(f"{path.stem}.html")
        write_page(told.result, source, output or place, json=json)
        raise_if(failures(told.result.statuses, told.result.times))
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
