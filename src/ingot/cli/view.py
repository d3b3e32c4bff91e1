"""`ingot view`: the fields that a run has written, as a page with a slider and as PNG files."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ingot.errors import IngotError, Problem

if TYPE_CHECKING:
    from ingot.cli.viewer.pictures import Slice

__all__ = ["view"]


def view(
    result: Path,
    /,
    *,
    field: Annotated[tuple[str, ...], Parameter(alias="-f")] = (),
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    png: Path | None = None,
    slice: str = "z",
    frames: int = 100,
    points: int = 400,
    colours: Literal["viridis", "coolwarm", "gray"] = "viridis",
    json: bool = False,
) -> int:
    """Make a page of what a run wrote: its fields on a canvas, with a slider for the time.

    The page is one file that needs no other. RESULT is an .xmf file, or the folder of a run.

    Example: ingot view spinodal.xmf --field c --png frames

    Parameters
    ----------
    result
        The .xmf file of a run, the .h5 file beside it, or the folder that holds one.
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


def slice_of(text: str) -> "Slice":
    """The plane that a word such as z or z=4 stands for."""
    from ingot.cli.viewer.pictures import Slice

    axis, _, layer = text.partition("=")
    if axis not in ("x", "y", "z") or (layer and not layer.isdigit()):
        message = f"'{text}' is no plane of a box"
        fix = "give an axis, or a layer along it: z=4"
        raise IngotError([Problem("wrong-value", message, fix=fix)])
    return Slice(axis, int(layer) if layer else None)
