"""`ingot show`: what a file, a model or its program says, at any stage."""

from pathlib import Path
from typing import Literal

__all__ = ["Stage", "show"]

Stage = Literal[
    "tree", "model", "program", "clean", "hoist", "loops", "factor", "schedule", "source"
]


def show(
    file: Path, model: str, /, *overrides: str, stage: Stage = "model", driver: str | None = None
) -> None:
    """Print a model of FILE as it is after a stage of compilation.

    Parameters
    ----------
    file
        The input file.
    model
        The name of a block in [Models].
    overrides
        Values that replace those of the file, such as Models/elasticity/E:=210000.
    stage
        How far to go: as read, as built, as traced, or after one of the compiler's passes.
    driver
        A driver whose values give the structural shapes of the model's variables.
    """
    from ingot.hit import read

    tree = read(file, overrides)
    if stage == "tree":
        print(tree, end="")
        return
    from ingot.model import Factory

    factory = Factory(tree)
    built = factory.model(model)
    if stage == "model":
        print(built)
        return
    from ingot.drivers import structural_shapes
    from ingot.program import prepared

    program = prepared(built, structural_shapes(factory, built, driver))
    if stage == "source":
        from ingot.execute.cpp import source
        from ingot.program.passes import planned

        print(source(planned(program)), end="")
        return
    from ingot.program.passes import staged

    print(staged(program, stage))
