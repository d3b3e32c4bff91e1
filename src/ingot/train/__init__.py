"""Training: a function and its gradient as one graph, compiled, packaged, loaded without source.

Here: joint graphs (trace, partition, compile, package, the runtime wrapper) and the report that
compares partitions; in time, adjoints over time steps and calibration. Not here: compiling point
programs (program, execute), repeated blocks (regions).

    prepare -> Call -> trace -> Traced -> partition -> Halves -> assembled -> Joint -> save -> load
"""

from ingot.graphs.sizes import Dynamic
from ingot.train.assemble import assembled, joint
from ingot.train.call import Call, prepare
from ingot.train.compile import Compiler, Half
from ingot.train.module import Joint
from ingot.train.package import load, save
from ingot.train.partitioner import STRATEGIES, Halves, Partition, partition
from ingot.train.report import Comparison, compare_partitions
from ingot.train.signature import Saved, Signature
from ingot.train.tracer import Traced, trace

__all__ = [
    "STRATEGIES", "Call", "Comparison", "Compiler", "Dynamic", "Half", "Halves", "Joint",
    "Partition", "Saved", "Signature", "Traced", "assembled", "compare_partitions", "joint",
    "load", "partition", "prepare", "save", "trace",
]  # fmt: skip
