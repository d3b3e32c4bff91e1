"""`ingot show`: what a file, a model or its program says, at any stage."""

import json as jsonlib
import os
from pathlib import Path
from typing import Literal, cast, get_args

from ingot.cli.flags import Flags, Targeted, part_overrides, target_of, tell_code, wrong_usage
from ingot.errors import IngotError, Problem, warn_of
from ingot.package import Stage as Compiling

__all__ = ["Pass", "Stage", "show"]

Torch = Literal["joint", "forward", "backward", "post-grad", "inductor-ir", "fused", "code"]
Pass = Literal["clean", "loops", "factor", "hoist", "schedule"]
"""The names of `program.PASSES` in their order: help must not import them. A test compares both."""
Stage = Literal["tree", "model", Compiling, "program", Pass, "regions", "source", Torch]


def show(
    file: str,
    model: str | None = None,
    /,
    *overrides: str,
    stage: Stage = "model",
    driver: str | None = None,
    json: bool = False,
    untrusted: bool = False,
    flags: Targeted = Flags(),  # noqa: B008 it is frozen
) -> int:
    """Print a model of FILE, or a torch function, as it is after a stage of compilation.

    Example: ingot show model.i elasticity --stage partition -d stress:strain

    Parameters
    ----------
    file
        The input file; for the stages of torch MODULE:FUNCTION, whose arguments stand beside the
        function as FUNCTION_example; for the regions of an nn.Module MODULE:NAME, whose blocks may
        stand beside it as NAME_blocks.
    model
        The name of a block in [Models].
    overrides
        Values that replace those of the file, such as Models/elasticity/E:=210000.
    stage
        How far to go: as read or built; to one of the seven stages of `ingot compile`, whose flags
        are the other options; as traced, or to one of the compiler's passes; of a torch function,
        to a stage of AOT autograd (joint, forward, backward) or of Inductor.
    driver
        A driver whose values give the structural shapes of the model's variables.
    json
        Print the report of --stage regions as JSON, for programs.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    """
    if json and stage != "regions":
        fix = "leave --json out, or choose --stage regions"
        raise wrong_usage(f"--stage {stage} is text only", fix)
    imports = stage in get_args(Torch) or (stage == "regions" and not os.path.exists(file))
    if imports and untrusted:
        message = f"'{file}' is a module, whose code is not run"
        raise IngotError([Problem("untrusted-code", message, None, "leave --untrusted out")])
    if stage == "regions" and not os.path.exists(file):
        from ingot.regions.stages import is_target, region_report

        if is_target(file):
            report = region_report(file)
            print(report.json() if json else report)
            return 0
    if stage in get_args(Torch):
        from ingot.regions.stages import torch_stage

        print(torch_stage(file, stage), end="")
        return 0
    if model is not None and "=" in model:
        model, overrides = None, (model, *overrides)
    flags, overrides = part_overrides(flags, overrides)
    alone = Flags(inline=flags.inline) if stage == "source" else Flags()
    if stage not in get_args(Compiling) and flags != alone:
        fix = f"choose one of --stage {', '.join(get_args(Compiling))}"
        raise wrong_usage(f"--stage {stage} takes no flag of compiling", fix)
    from ingot.hit import read

    tree = read(Path(file), overrides)
    if stage == "tree":
        warn_of(tree.doubts)
        print(tree, end="")
        return 0
    if model is None:
        fix = f"one of: {', '.join(tree.names('Models')) or 'none is there'}"
        raise wrong_usage("which model?", fix)
    from ingot.drivers import structural_shapes
    from ingot.model import Factory

    tell_code(tree, untrusted=untrusted)
    factory = Factory(tree, untrusted=untrusted)
    built = factory.model(model)
    if stage == "model":
        print(built)
        return 0
    shapes = structural_shapes(factory, built, driver)
    if stage in get_args(Compiling):
        from ingot.package.describe import describe
        from ingot.package.stages import advance, load

        loaded = load(factory, model, target_of(flags), driver=driver, shapes=shapes)
        last = cast(Compiling, stage)
        print(describe(advance(loaded, last), last))
        return 0
    from ingot.program import prepared

    program = prepared(built, shapes)
    if stage == "source":
        from ingot.execute.cxx_source import write_source
        from ingot.program import compile_passes
        from ingot.program.boundaries import find_points_apart

        for part in find_points_apart(program):
            print(write_source(compile_passes(part), flags.inline), end="")
    elif json:
        from ingot.program.pipeline import Choices, clean, loops
        from ingot.program.regions import describe_regions

        print(jsonlib.dumps(describe_regions(loops(clean(program, Choices()), Choices()))))
    else:
        from ingot.program.describe import describe_pass

        print(describe_pass(program, stage))
    return 0
