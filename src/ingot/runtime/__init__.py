"""Package -> Artifact: load, check, call.

Here: what a process that never saw the source needs: digests, CPU levels, checked calls,
derivatives, autograd. Not here: compiling (package), drivers. Loading a folder imports torch,
numpy and msgspec.

A package is native code: load only packages you trust as you trust a program.
"""

from ingot.runtime.artifact import Artifact
from ingot.runtime.loader import load

__all__ = ["Artifact", "load"]
