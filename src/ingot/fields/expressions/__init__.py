"""Expressions of input files: text -> Node -> Formula, a function of tensors; and derivatives."""

from ingot.fields.expressions.formula import Formula, constants_of, formula
from ingot.fields.expressions.parse import ExpressionError

__all__ = ["ExpressionError", "Formula", "constants_of", "formula"]
