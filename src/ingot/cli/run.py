"""`ingot run`: a driver of a file, run and, where it judges itself, judged; or a simulation."""

import json as jsonlib
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ingot.cli.flags import device_asked, refuse, use_threads, wrong_usage
from ingot.cli.plot import plot_words
from ingot.cli.ranks import join_world, start_ranks
from ingot.errors import IngotError, IngotWarning, Problem, raise_if
from ingot.extras import find_missing
from ingot.options import Backend

if TYPE_CHECKING:
    from ingot.drivers import Result, TransientDriver, Verdict
    from ingot.execute import Status
    from ingot.fields import World
    from ingot.hit import Tree

__all__ = ["only_driver", "run"]


def run(
    file: Annotated[Path, Parameter(name=("--file", "-i"))],
    *words: str,
    backend: Backend | None = None,
    json: bool = False,
    save: Path | None = None,
    plot: Annotated[tuple[str, ...] | None, Parameter(consume_multiple=True)] = None,
    checkpoint_every: int | None = None,
    checkpoint: Path | None = None,
    restart: Path | None = None,
    eager: bool = False,
    device: Annotated[str | None, Parameter(name=("--device", "--compute-device"))] = None,
    n_threads: int | None = None,
    ranks: int | None = None,
    strict: bool = False,
    untrusted: bool = False,
) -> int:
    """Run a driver of FILE: its only one, or the one named first among WORDS; or a simulation.

    A file with a [Domain] is a simulation on a grid; it writes its files to the working folder.

    Example: ingot run model.i driver nbatch:=5

    Parameters
    ----------
    file
        The input file.
    words
        The driver's name, then values that replace those of the file, such as nbatch:=5.
    backend
        What runs the model: torch operations, generated C++, or compiled graphs of torch. Unless
        given kernel. A package by itself runs by its own.
    json
        Print the summary as JSON.
    save
        Write the result of a transient here, by its ending: a table (.csv, .parquet), an array for
        each variable (.npz, .h5, .zarr), or every value by name and step (.pt, .pth).
    plot
        Draw the result of a transient: what is most telling, or what the words after it say, as
        strain.xx:stress.xx; a word such as curves.svg names the picture, FILE's name with the
        ending .png unless given. See ingot plot.
    checkpoint_every
        Store a simulation after each so many steps, and at its end.
    checkpoint
        The folder to store it in, FILE's name with the ending .checkpoint unless given.
    restart
        Go on from this checkpoint, or from the only one in this folder.
    eager
        Run the computes of a simulation one by one, without compiling sequences of them.
    device
        What it runs on: cpu, cuda or cuda:1; a simulation also on mps, and where its file does not
        say otherwise.
    n_threads
        How many threads of the CPU a simulation uses.
    ranks
        Share the box of a simulation among so many processes of this machine, as [Domain]
        parallel_mode says; on several machines, torchrun -m ingot run FILE.
    strict
        End with an error at whatever is warned of otherwise, as [Settings] strict = true does.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    """
    from ingot.drivers import TransientDriver, build_driver, require_converged
    from ingot.drivers.formats.choice import find_unwritable
    from ingot.execute import DEFAULT_BACKEND
    from ingot.hit import read, read_contents, sections_in

    text = read_contents(file)
    if "Domain" in sections_in(text):
        refuse(file, "a simulation", {"--save": save, "--plot": plot})
        place = checkpoint or Path(f"{file.stem}.checkpoint")
        if checkpoint is not None and checkpoint_every is None:
            message = "--checkpoint does not say how often"
            raise wrong_usage(message, "add --checkpoint-every 100")
        stored = None if checkpoint_every is None else (checkpoint_every, place)
        if ranks is not None:
            flags = {
                "--checkpoint-every": checkpoint_every, "--checkpoint": checkpoint,
                "--restart": restart, "--device": device, "--n-threads": n_threads,
                "--eager": eager or None, "--strict": strict or None,
                "--untrusted": untrusted or None, "--json": json or None,
            }  # fmt: skip
            given = {name: value for name, value in flags.items() if value is not None}
            flat = [name if value is True else f"{name}={value}" for name, value in given.items()]
            start_ranks(ranks, ["run", str(file), *words, *flat])
            return 0
        use_threads(n_threads)
        tree = read(file, words, moose=True, text=text)
        asked = device_asked(device)
        with join_world(asked) as world, silent(world is not None and world.rank > 0):
            return simulate(
                tree, stored, restart, eager=eager, device=asked, strict=strict,
                untrusted=untrusted, json=json, world=world,
            )  # fmt: skip
    only = {
        "--checkpoint-every": checkpoint_every,
        "--checkpoint": checkpoint,
        "--restart": restart,
        "--eager": eager or None,
        "--n-threads": n_threads,
        "--ranks": ranks,
    }
    refuse(file, "no simulation: it has no [Domain]", only)
    named = words[:1] if words and "=" not in words[0] else ()
    tree = read(file, words[len(named) :], text=text)
    name = named[0] if named else only_driver(tree)
    if save is not None:
        raise_if(find_unwritable(save))
    if plot is not None:
        raise_if(find_missing("matplotlib", "pictures"))
    driver = build_driver(tree, name, strict=strict, untrusted=untrusted, device=device or "cpu")
    if not isinstance(driver, TransientDriver):
        refuse_save("save", save, name)
        refuse_save("plot", plot, name)
        return judge(driver.run(backend), name, json=json)
    result = driver.compute(backend)
    if save is not None:
        result.save(save)
    picture = None if plot is None else plot_words(result, plot, Path(f"{file.stem}.png"))
    report = summary(driver, result, backend or DEFAULT_BACKEND)
    if picture is not None:
        report["picture"] = str(picture)
    print(jsonlib.dumps(report) if json else table(report))
    require_converged(driver, result)
    return 0


@contextmanager
def silent(others: bool) -> Iterator[None]:
    """Keep from the user what another process tells as well; errors are told by all."""
    if not others:
        yield
        return
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), warnings.catch_warnings():
        warnings.simplefilter("ignore", IngotWarning)
        yield


def simulate(
    tree: "Tree",
    stored: tuple[int, Path] | None,
    restart: Path | None,
    *,
    eager: bool,
    device: str,
    strict: bool,
    untrusted: bool,
    json: bool,
    world: "World | None",
) -> int:
    """Run what this process has of a simulation; `stored` says how often to store it, and where."""
    from time import perf_counter

    from ingot.cli.live import live, statistics
    from ingot.fields import build, prepared
    from ingot.fields.checkpoint import restore

    start = perf_counter()
    simulation = build(tree, untrusted=untrusted)
    if simulation.problem.print_debug_output:
        print(simulation)
    ready = prepared(simulation, jit=not eager, device=device, strict=strict, world=world)
    if stored is not None:
        ready.stored = (stored,)
    if restart is not None:
        restore(ready, restart)
    first = ready.number
    try:
        with live(ready) if ready.leads else nullcontext(lambda now: None) as show:
            for now in ready.steps():
                show(now)
    except KeyboardInterrupt:
        message = f"the run was stopped after step {ready.number}, at time {ready.time:g}"
        fix = "store it on the way with --checkpoint-every, and go on with --restart"
        raise IngotError([Problem("interrupted", message, fix=fix)]) from None
    result, seconds = ready.result(), perf_counter() - start
    compiled, counts = statistics(ready.executor)
    report = {
        "steps": result.steps,
        "time": result.times[-1],
        "seconds": seconds,
        "device": str(result.state.space.k2.device),
        "steps_per_second": (result.steps - first) / seconds,
        "values": result.values[-1],
        "files": [str(path) for path in result.files],
        "jit": counts,
        "checkpoint": str(ready.stored[-1][1]) if ready.stored else None,
        "restarted_at": None if restart is None else first,
    }
    print(jsonlib.dumps(report) if json else told(report, compiled))
    return 0


def told(report: dict[str, Any], compiled: str) -> str:
    """The summary of a simulation as lines."""
    steps, first, seconds = report["steps"], report["restarted_at"], report["seconds"]
    place = "" if report["device"] == "cpu" else f" on {report['device']}"
    since = "" if first is None else f", the first {first} of them before the restart,"
    lines = [f"{steps} steps{since} to time {report['time']:g} in {seconds:.3g} s{place}"]
    lines += [f"{name} = {value:.6g}" for name, value in report["values"].items()]
    lines += [compiled] if compiled else []
    lines += [f"wrote {path}" for path in report["files"]]
    if report["checkpoint"] is not None:
        lines.append(f"stored {report['checkpoint']}")
    return "\n".join(lines)


def only_driver(tree: "Tree") -> str:
    """The name of a file's driver where there is just one."""
    names = tree.names("Drivers")
    if len(names) == 1:
        return names[0]
    where = "<text>" if tree.file is None else str(tree.file)
    span = None
    if not names:
        from ingot.model import ELSEWHERE

        message, fix = f"{where} has no [Drivers]", "add a driver to the file"
        blocks = (block for part in tree.blocks for block in (part, *part.blocks))
        stray = next((block for block in blocks if block.type in ELSEWHERE["Drivers"]), None)
        if stray is not None:
            span, fix = stray.span, f"[{stray.path}] is a driver: move it into [Drivers]"
    else:
        message, fix = f"{where} has {len(names)} drivers", f"name one: {', '.join(names)}"
    raise IngotError([Problem("which-driver", message, span, fix)])


def refuse_save(verb: str, asked: object, name: str) -> None:
    if asked is not None:
        message = f"[Drivers/{name}] judges a result and has none of its own to {verb}"
        raise IngotError([Problem("which-driver", message, fix="name its TransientDriver")])


def judge(verdict: "Verdict", name: str, *, json: bool) -> int:
    """Print whether a driver that judges itself passed."""
    if json:
        report = {
            "driver": name,
            "passed": verdict.passed,
            "checks": verdict.checks,
            "problems": [problem.message for problem in verdict.problems],
        }
        print(jsonlib.dumps(report))
    if not verdict.passed:
        raise IngotError(verdict.problems)
    if not json:
        print(f"{name} passed: {verdict.checks} values agree")
    return 0


def summary(driver: "TransientDriver", result: "Result", backend: Backend) -> dict[str, Any]:
    """What there is to tell about a run."""
    return {
        "driver": driver.block.name,
        "backend": driver.label(backend),
        "steps": result.steps,
        "points": result.points,
        "seconds": result.seconds,
        "prepare_seconds": driver.prepare_seconds[backend],
        "microseconds_per_point_and_step": result.microseconds,
        "solves": {
            status.solve: {
                "points": counts(status, result.points),
                "mean_iterations": status.mean_iterations,
                "most_iterations": status.most_iterations,
                **accepted(status),
            }
            for status in result.statuses
        },
    }


def counts(status: "Status", points: int) -> dict[str, int]:
    """How many points converged at every step, and how many first failed for which reason."""
    from ingot.execute import Reason

    rows = status.find_first_failures()
    reasons = Counter(int(status.reason[step, point]) for step, point in rows.tolist())
    reasons[Reason.CONVERGED] = points - len(rows)
    return {reason.name.lower().replace("_", " "): reasons[reason] for reason in Reason}


def accepted(status: "Status") -> dict[str, Any]:
    """The largest residual that was accepted, by which criterion, and how many each accepted."""
    from ingot.execute import Criterion

    worst = status.find_worst_accepted()
    counts = Counter(status.accepted.flatten().tolist())
    return {
        "worst_accepted_residual": None if worst is None else worst.residual,
        "worst_accepted_by": None if worst is None else worst.criterion.name.lower(),
        "accepted_by": {c.name.lower(): counts[c] for c in Criterion if c is not Criterion.NONE},
    }


def table(report: dict[str, Any]) -> str:
    """A summary as lines of a name and a value."""
    rows = [
        ("driver", f"{report['driver']} ({report['backend']})"),
        ("steps", str(report["steps"])),
        ("points", str(report["points"])),
        ("time", f"{report['seconds']:.3g} s, and {report['prepare_seconds']:.3g} s to prepare"),
    ]
    if speed := report["microseconds_per_point_and_step"]:
        rows.append(("speed", f"{speed:.3g} µs per point and step"))
    for name, solve in report["solves"].items():
        found = [f"{count} {why}" for why, count in solve["points"].items() if count]
        points = ", ".join(found) or "no points"
        mean, most = solve["mean_iterations"], solve["most_iterations"]
        worst, by = solve["worst_accepted_residual"], solve["worst_accepted_by"]
        residual = "" if worst is None else f"; worst residual {worst:.1e}, accepted by {by}"
        rows.append((name, f"{points}; {mean:.2g} iterations a step, {most} at most{residual}"))
    if "picture" in report:
        rows.append(("wrote", report["picture"]))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)
