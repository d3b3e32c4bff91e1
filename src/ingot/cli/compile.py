"""`ingot compile`: a model of a file becomes a package and its stub."""

import json as jsonlib
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ingot.errors import Problem

__all__ = ["compile"]

Several = tuple[str, ...]


def compile(
    file: Path,
    /,
    *overrides: str,
    model: str | None = None,
    driver: str | None = None,
    output_dir: Path = Path("aoti"),
    device: Literal["cpu"] = "cpu",
    dtype: Literal["float64", "float32"] = "float64",
    backend: Annotated[tuple[Literal["kernel"], ...], Parameter(consume_multiple=True)] = (
        "kernel",
    ),
    parameter: Annotated[Several, Parameter(alias="-p")] = (),
    derivative: Annotated[Several, Parameter(alias="-d")] = (),
    example_batch_shape: Several = (),
    rename_input: Several = (),
    rename_output: Several = (),
    rename_parameter: Several = (),
    jobs: Annotated[int, Parameter(alias="-j")] = 2,
    no_stub: bool = False,
    json: bool = False,
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
    device
        What the package runs on.
    dtype
        Its precision.
    backend
        What the package holds.
    parameter
        A parameter to promote, by the name that `ingot show FILE MODEL` prints; repeatable.
    derivative
        A pair OUT:IN; either side may be left out for all; repeatable.
    example_batch_shape
        Structural extents, (2; 12) for all variables or VAR=(2; 12) for one; repeatable.
    rename_input
        An input to rename, OLD:NEW; repeatable.
    rename_output
        An output to rename, OLD:NEW; repeatable.
    rename_parameter
        A promoted parameter to rename, OLD:NEW; repeatable.
    jobs
        How many compilers run at once.
    no_stub
        Write no stub beside the package.
    json
        Print the summary as JSON.
    """
    from ingot.drivers import transient_driver
    from ingot.hit import read
    from ingot.model import Factory
    from ingot.package import compile_model
    from ingot.package.target import Target

    if (model is None) == (driver is None):
        fix = "write --model NAME, or --driver NAME"
        told = Problem("wrong-usage", "give one of --model and --driver", None, fix)
        print(told, file=sys.stderr)
        return 2
    start = time.perf_counter()
    tree = read(file, overrides)
    shapes = None
    if driver is not None:
        found = transient_driver(Factory(tree), driver)
        model, shapes = found.model.name, dict(found.shapes)
    assert model is not None
    target = Target(
        output_dir=output_dir, backend=backend, device=device, dtype=dtype, parameter=parameter,
        derivative=derivative, example_batch_shape=example_batch_shape, rename_input=rename_input,
        rename_output=rename_output, rename_parameter=rename_parameter, jobs=jobs, stub=not no_stub,
    )  # fmt: skip
    package = compile_model(
        tree, model, target, driver=driver, shapes=shapes,
        command=shlex.join(["ingot", *sys.argv[1:]]),
        progress=lambda name: print(f"  {device}/{name}", file=sys.stderr),
    )  # fmt: skip
    seconds = time.perf_counter() - start
    meta = package.metadata
    if json:
        report = {
            "package": str(package.folder), "stub": str(package.stub) if package.stub else None,
            "inputs": [v.name for v in meta.inputs], "outputs": [v.name for v in meta.outputs],
            "parameters": [p.variable.name for p in meta.parameters],
            "derivatives": [f"{b.output}:{b.input}" for b in meta.derivatives], "seconds": seconds,
        }  # fmt: skip
        print(jsonlib.dumps(report))
        return 0
    print(
        f"{package.folder}: {len(meta.outputs)} outputs, {len(meta.derivatives)} derivative pairs"
    )
    if package.stub is not None:
        print(f"{package.stub}: the stub")
    print(f"compiled in {seconds:.1f} s")
    return 0
