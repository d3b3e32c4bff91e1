"""`ingot show`: what a file, a model or its program says, at any stage."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from ingot.cli.flags import Flags, Targeted, part_overrides, target_of, tell_code, wrong_usage
from ingot.errors import IngotError, Problem, warn_of
from ingot.package import Stage as Compiling

if TYPE_CHECKING:
    from ingot.regions.report import Report
    from ingot.train.describe import Shown

__all__ = ["Pass", "Stage", "Torch", "show"]

Torch = Literal[
    "joint", "forward", "backward", "post-grad", "inductor-ir", "fused", "constants", "code"
]
"""The names of `train.describe.STAGES`; a test compares both."""
Pass = Literal["clean", "loops", "factor", "hoist", "schedule"]
"""The names of `program.PASSES` in their order: help must not import them. A test compares both."""
Stage = Literal["tree", "model", Compiling, "program", Pass, "regions", "source", "units", Torch]


def show(
    file: str,
    model: str | None = None,
    /,
    *overrides: str,
    stage: Stage = "model",
    expand: bool = False,
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
        The input file; for the stages of torch MODULE:NAME, a function or nn.Module whose
        arguments stand beside it as NAME_example, and its open sizes as NAME_dynamic, or the
        folder of a package of `ingot.train` or `ingot.regions`; for the regions of an nn.Module
        MODULE:NAME, whose blocks may stand beside it as NAME_blocks.
    model
        The name of a block in [Models].
    overrides
        Values that replace those of the file, such as Models/elasticity/E:=210000.
    stage
        How far to go: as read or built; to one of the seven stages of `ingot compile`, whose flags
        are the other options; as traced, or to one of the compiler's passes; of a torch function,
        to the graphs of `ingot.train.joint` (joint, forward, backward), or into Inductor, by which
        both are compiled: ingot show my_models:loss --stage fused; of an nn.Module, to its units,
        the distinct pieces that `ingot.regions` compiles.
    expand
        Print the whole file with its presets written out as the blocks they stand for, its
        overrides and every ${...} in place: an input file that says the same.
    driver
        A driver whose values give the structural shapes of the model's variables.
    json
        Print a stage of torch, or the report of --stage regions, as JSON, for programs.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    """
    from ingot.cli.torch_stages import is_package, is_target

    if expand:
        stage = "tree"
    packaged = is_package(file)
    of_torch = packaged or stage == "units" or stage in get_args(Torch)
    if json and stage != "regions" and not of_torch:
        fix = "leave --json out, or choose --stage regions"
        raise wrong_usage(f"--stage {stage} is text only", fix)
    if of_torch or (stage == "regions" and is_target(file)):
        shown = _show_torch(file, stage, packaged=packaged, untrusted=untrusted)
        print(shown.json() if json else shown)
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
        from ingot.codegen.source import write_source
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


def _show_torch(file: str, stage: Stage, *, packaged: bool, untrusted: bool) -> "Shown | Report":
    """A stage of torch, of what is imported or read."""
    from ingot.cli.torch_stages import region_report, show_module, show_package

    if packaged:
        return show_package(file, stage)
    if untrusted:
        message = f"'{file}' is a module, whose code is not run"
        raise IngotError([Problem("untrusted-code", message, None, "leave --untrusted out")])
    return region_report(file) if stage == "regions" else show_module(file, stage)
