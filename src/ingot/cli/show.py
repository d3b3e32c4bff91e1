"""`ingot show`: what a file, a model or its program says, at any stage."""

import json as jsonlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ingot.cli.flags import Flags, Targeted, part_overrides, target_of, tell_code
from ingot.errors import IngotError, Problem, warn_of

if TYPE_CHECKING:
    from ingot.package.stages import Loaded, Partitioned

__all__ = ["Stage", "lowered", "show"]

Seven = Literal["load", "select", "route", "freeze", "shape", "partition", "lower"]
Torch = Literal["joint", "forward", "backward", "post-grad", "inductor-ir", "fused", "code"]
Stage = Literal[
    "tree", "model", Seven, "program", "clean", "hoist", "loops", "regions", "factor", "schedule",
    "source", Torch,
]  # fmt: skip
Shapes = dict[str, tuple[int, ...]]


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
        told = Problem("wrong-usage", f"--stage {stage} is text only", None, fix)
        print(told, file=sys.stderr)
        return 2
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
    if stage not in get_args(Seven) and flags != alone:
        fix = f"choose one of --stage {', '.join(get_args(Seven))}"
        told = Problem("wrong-usage", f"--stage {stage} takes no flag of compiling", None, fix)
        print(told, file=sys.stderr)
        return 2
    from ingot.hit import read

    tree = read(Path(file), overrides)
    if stage == "tree":
        warn_of(tree.doubts)
        print(tree, end="")
        return 0
    if model is None:
        fix = f"one of: {', '.join(tree.names('Models')) or 'none is there'}"
        print(Problem("wrong-usage", "which model?", None, fix), file=sys.stderr)
        return 2
    from ingot.drivers import structural_shapes
    from ingot.model import Factory

    tell_code(tree, untrusted=untrusted)
    factory = Factory(tree, untrusted=untrusted)
    built = factory.model(model)
    if stage == "model":
        print(built)
        return 0
    shapes = structural_shapes(factory, built, driver)
    if stage in get_args(Seven):
        from ingot.package.stages import load

        loaded = load(tree, model, target_of(flags), driver, untrusted=untrusted)
        print(at_stage(stage, loaded, shapes))
        return 0
    from ingot.program import prepared
    from ingot.program.passes import clean, loops, planned, staged

    program = prepared(built, shapes)
    if stage == "source":
        from ingot.execute.cpp import source

        print(source(planned(program), flags.inline), end="")
    elif json:
        from ingot.program.regions import report

        print(jsonlib.dumps(report(loops(clean(program)))))
    else:
        print(staged(program, stage))
    return 0


def at_stage(stage: str, value: "Loaded", shapes: Shapes) -> str:
    """What one of the seven stages makes of a model."""
    from ingot.package import stages

    name = value.model.name
    verbs = {
        "load": lambda x: x, "select": stages.select, "route": stages.route,
        "freeze": stages.freeze, "shape": lambda x: stages.shape(x, shapes),
        "partition": stages.partition, "lower": lambda x: lowered(x, name),
    }  # fmt: skip
    found: Any = value
    for title, verb in verbs.items():
        found = verb(found)
        if title == stage:
            break
    return str(found)


def lowered(stage: "Partitioned", name: str) -> str:
    """The files that lowering would write, with the operations of each entry or graph."""
    from ingot.package.lower import graphs_of

    backends = stage.shaped.loaded.target.backend
    rows = kernel_rows(stage, name) if "kernel" in backends else []
    rows += [str(graphs_of(stage, name))] if "inductor" in backends else []
    return "\n".join([*rows, f"{name}_meta.json"])


def kernel_rows(stage: "Partitioned", name: str) -> list[str]:
    """The files of the kernel backend; under the source what each entry costs at a point."""
    from ingot.package.lower import kernel_files
    from ingot.program import with_jacobian
    from ingot.program.passes import planned

    entries = {"values": stage.program}
    if stage.pairs:
        slopes = with_jacobian(stage.program, stage.pairs)
        entries[f"values and slopes ({len(stage.pairs)})"] = slopes
    files = kernel_files(stage, name)
    rows = [files.header, files.source]
    for title, program in entries.items():
        plan = planned(program)
        rows.append(f"  {title}: {plan.program.count()} operations a point")
        rows += [f"    {row}" for row in str(plan).splitlines() if plan.solves]
    return [*rows, *files.libraries.values()]
