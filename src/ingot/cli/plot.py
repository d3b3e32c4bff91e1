"""`ingot plot`: curves or pole figures of a result, as a picture."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ingot.cli.flags import wrong_usage
from ingot.errors import raise_if

if TYPE_CHECKING:
    from ingot.drivers import Result
    from ingot.drivers.curves import Panel
    from ingot.drivers.poles import PoleFigure

__all__ = ["plot", "plot_words"]


def plot(
    result: Path,
    /,
    *words: str,
    point: Annotated[tuple[int, ...], Parameter(alias="-p")] = (),
    pole: Annotated[tuple[int, int, int] | None, Parameter(allow_leading_hyphen=True)] = None,
    orientation: str | None = None,
    step: Annotated[tuple[int, ...], Parameter(allow_leading_hyphen=True)] = (),
    projection: Literal["equal-area", "stereographic"] = "equal-area",
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    json: bool = False,
) -> int:
    """Draw curves of a RESULT that `ingot run --save` wrote: WORDS, or what is most telling.

    Example: ingot plot result.npz strain.xx:stress.xx time:ep --point 3 --output curves.svg

    Parameters
    ----------
    result
        The file of a result, of any ending that --save takes.
    words
        A picture for each: x:y, x:y1,y2 or y over the time. Names are those of variables, with a
        component (stress.xx), an entry of an axis (slip[3]) or both; beside them time, step,
        iterations and residual.
    point
        A point of the batch to show, all unless given; repeatable.
    pole
        Draw pole figures instead, of the cubic family of planes of these indices: --pole 1 1 1.
    orientation
        The variable whose pole figure is drawn, a rotation from crystal to sample; the only one
        unless given.
    step
        A step whose pole figure is drawn, the first and the last unless given; repeatable.
    projection
        How directions are projected.
    output
        The picture to write (.png, .svg or .pdf), beside the result as .png unless given.
    json
        Print what was drawn as JSON.
    """
    from ingot.drivers import read_result
    from ingot.drivers.charts import find_unknown_picture
    from ingot.drivers.curves import find_panels
    from ingot.drivers.poles import find_pole_figures

    if pole is None and (orientation is not None or step or projection != "equal-area"):
        message = "--orientation, --step and --projection are of pole figures"
        raise wrong_usage(message, "add --pole 1 1 1, or leave them out")
    if pole is not None and words:
        raise wrong_usage(f"--pole draws no '{words[0]}'", "draw it by a call of its own")
    place = output or result.with_suffix(".png")
    raise_if(find_unknown_picture(place))
    found = read_result(result)
    if pole is None:
        shown = find_panels(found, words, point)
    else:
        shown = find_pole_figures(
            found, pole, orientation=orientation, steps=step, points=point, projection=projection
        )
    report = write_picture(shown, place)
    print(jsonlib.dumps(report) if json else f"wrote {place}: {', '.join(report['shown'])}")
    return 0


def plot_words(result: "Result", words: tuple[str, ...], default: Path) -> Path:
    """Draw what words after `run --plot` ask for, a picture's name among them; where it lies."""
    from ingot.drivers.curves import find_panels

    pictures, asked = split_words(words)
    place = pictures[0] if pictures else default
    write_picture(find_panels(result, asked), place)
    return place


def split_words(words: tuple[str, ...]) -> tuple[list[Path], list[str]]:
    """Names of pictures, and what else there is."""
    from ingot.drivers.charts import PICTURES

    pictures = [Path(word) for word in words if word.lower().endswith(PICTURES)]
    if len(pictures) > 1:
        raise wrong_usage("--plot writes one picture", f"leave out {pictures[1]}")
    return pictures, [word for word in words if not word.lower().endswith(PICTURES)]


def write_picture(shown: "list[Panel] | list[PoleFigure]", place: Path) -> dict[str, Any]:
    """Draw panels and write the picture whole; what was drawn."""
    from ingot.drivers.charts import draw, render
    from ingot.drivers.curves import Panel
    from ingot.package.write import put_file

    put_file(render(draw(shown), place.suffix.lower()), place)
    titles = [each.title for each in shown]
    return {
        "file": str(place),
        "shown": titles,
        "panels": [
            {
                "x": each.x_label,
                "y": each.y_label,
                "curves": [curve.label or each.y_label for curve in each.curves if not curve.faint],
            }
            for each in shown
            if isinstance(each, Panel)
        ],
    }
