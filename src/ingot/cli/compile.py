"""`ingot compile`: a model of a file becomes a package and its stub."""

import json as jsonlib
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ingot.cli.flags import Flags, Targeted, part_overrides, target_of, wrong_usage
from ingot.cli.progress import progress

__all__ = ["compile"]


def compile(
    file: Path,
    /,
    *overrides: str,
    model: str | None = None,
    driver: str | None = None,
    output_dir: Path = Path("aoti"),
    flags: Targeted = Flags(),  # noqa: B008 it is frozen
    jobs: Annotated[int, Parameter(alias="-j")] = 2,
    no_stub: bool = False,
    json: bool = False,
    untrusted: bool = False,
) -> int:
    """Compile a model of FILE into a package.

    Example: ingot compile model.i --driver driver -p elasticity.E -d stress:strain

    Parameters
    ----------
    file
        The input file.
    overrides
        Values that replace those of the file, such as Models/elasticity/E:=210000.
    model
        The name of a block in [Models].
    driver
        Compile the model of this driver, whose values give structural shapes; the stub keeps it.
    output_dir
        Where the package and its stub are written.
    jobs
        How many compilers run at once.
    no_stub
        Write no stub beside the package.
    json
        Print the summary as JSON.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    """
    from ingot.drivers import transient_driver
    from ingot.hit import read
    from ingot.model import Factory
    from ingot.package import compile_model

    if (model is None) == (driver is None):
        fix = "write --model NAME, or --driver NAME"
        raise wrong_usage("give one of --model and --driver", fix)
    flags, overrides = part_overrides(flags, overrides)
    start = time.perf_counter()
    factory = Factory(read(file, overrides), untrusted=untrusted)
    shapes = None
    if driver is not None:
        found = transient_driver(factory, driver)
        model, shapes = found.model.name, found.shapes
    assert model is not None
    target = target_of(flags, output_dir=output_dir, jobs=jobs, stub=not no_stub)
    with progress(f"compiling {model}") as step:
        package = compile_model(
            factory, model, target, driver=driver, shapes=shapes,
            command=shlex.join(["ingot", *sys.argv[1:]]),
            expect=step.expect, progress=step,
        )  # fmt: skip
    seconds = time.perf_counter() - start
    meta = package.metadata
    if json:
        report = {
            "package": str(package.folder), "packages": [*map(str, package.folders)],
            "stub": str(package.stub) if package.stub else None,
            "inputs": [v.name for v in meta.inputs], "outputs": [v.name for v in meta.outputs],
            "parameters": [p.variable.name for p in meta.parameters],
            "derivatives": [f"{b.output}:{b.input}" for b in meta.derivatives], "seconds": seconds,
        }  # fmt: skip
        print(jsonlib.dumps(report))
        return 0
    told = f"{len(meta.outputs)} outputs, {len(meta.derivatives)} derivative pairs"
    for folder in package.folders:
        print(f"{folder}: {told}")
    if package.stub is not None:
        print(f"{package.stub}: the stub")
    print(f"compiled in {seconds:.1f} s")
    return 0
