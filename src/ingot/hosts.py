"""For programs that call a compiled model at points of their own, such as finite elements.

`State` keeps what points remember, `Increments` cuts steps, a `Convention` converts tensors.
"""

from ingot.runtime.increments import Increments
from ingot.runtime.point_state import State, Update
from ingot.types.conventions import ABAQUS, PLANE, TENSOR, VOIGT, Convention

__all__ = ["ABAQUS", "PLANE", "TENSOR", "VOIGT", "Convention", "Increments", "State", "Update"]
