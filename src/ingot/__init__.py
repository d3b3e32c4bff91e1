"""Ingot: physics written for one point becomes code that runs on millions of points.

The public names. Each is imported when it is first used, so that `import ingot` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingot import hosts, laws
    from ingot.drivers import (
        Diagnosis,
        Result,
        TransientDriver,
        Verdict,
        build_driver,
        diagnose,
        read_result,
    )
    from ingot.drivers.modelling import from_hit, transient
    from ingot.drivers.parameter_sweep import Sweep, sweep
    from ingot.errors import IngotError, IngotWarning, Problem
    from ingot.execute import executor
    from ingot.hit import Tree, read, read_text
    from ingot.model import Factory, Model, build
    from ingot.options import Newton
    from ingot.package import compile_model
    from ingot.program import Program, prepared
    from ingot.program.modelling import compose, implicit
    from ingot.runtime import Artifact, load
    from ingot.runtime.in_process import compile

__version__ = "0.1.0"

__all__ = [
    "Artifact",
    "Diagnosis",
    "Factory",
    "IngotError",
    "IngotWarning",
    "Model",
    "Newton",
    "Problem",
    "Program",
    "Result",
    "Sweep",
    "TransientDriver",
    "Tree",
    "Verdict",
    "build",
    "build_driver",
    "compile",
    "compile_model",
    "compose",
    "diagnose",
    "executor",
    "from_hit",
    "hosts",
    "implicit",
    "laws",
    "load",
    "prepared",
    "read",
    "read_result",
    "read_text",
    "sweep",
    "transient",
]  # fmt: skip

_ROOMS = {
    "drivers": (
        "Diagnosis", "Result", "TransientDriver", "Verdict", "build_driver", "diagnose",
        "read_result",
    ),
    "drivers.parameter_sweep": ("Sweep", "sweep"),
    "drivers.modelling": ("from_hit", "transient"),
    "errors": ("IngotError", "IngotWarning", "Problem"),
    "execute": ("executor",),
    "hit": ("Tree", "read", "read_text"),
    "model": ("Factory", "Model", "build"),
    "options": ("Newton",),
    "package": ("compile_model",),
    "program": ("Program", "prepared"),
    "program.modelling": ("compose", "implicit"),
    "runtime": ("Artifact", "load"),
    "runtime.in_process": ("compile",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("hosts", "laws"):
        return importlib.import_module(f"ingot.{name}")
    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        from ingot.errors import did_you_mean

        meant = "" if name.startswith("_") else did_you_mean(name, __all__) or ""
        raise AttributeError(f"module 'ingot' has no attribute '{name}'. {meant}".strip(". "))
    return getattr(importlib.import_module(f"ingot.{room}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
