"""Regular grids: domains, buffers, computes, groups, transforms, solvers, output.

Here: fields over a whole grid and what moves them. Not here: physics of one point (catalog/).
"""

from ingot.fields.blocks.domain import World
from ingot.fields.declare import COMPUTES, POSTPROCESSORS, Dt, Time, compute, postprocessor
from ingot.fields.runs import Result, Run, prepared, run, run_file
from ingot.fields.simulation import Simulation, build, is_simulation
from ingot.fields.spaces import Grid, Narrow, Space, Spectrum, space

__all__ = [
    "COMPUTES",
    "POSTPROCESSORS",
    "Dt",
    "Grid",
    "Narrow",
    "Result",
    "Run",
    "Simulation",
    "Space",
    "Spectrum",
    "Time",
    "World",
    "build",
    "compute",
    "is_simulation",
    "postprocessor",
    "prepared",
    "run",
    "run_file",
    "space",
]
