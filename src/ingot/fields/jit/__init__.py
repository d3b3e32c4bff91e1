"""Compiled sequences of steps: plan, capture, fuse, write, run.

In: steps of a simulation. Out: an executor, `jit(simulation)`, to pass to `ingot.fields.run`.
"""

from ingot.fields.jit.executor import Jit, Statistics, drop, jit
from ingot.fields.jit.planner import JitPlan, PlanPart, plan

__all__ = ["Jit", "JitPlan", "PlanPart", "Statistics", "drop", "jit", "plan"]
