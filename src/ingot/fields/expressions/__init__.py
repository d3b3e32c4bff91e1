"""Expressions of input files: text -> Expression -> Formula of tensors; and derivatives."""

from ingot.fields.expressions.formulas import Formula, constants_of, formula
from ingot.fields.expressions.parse import ExpressionError

__all__ = ["ExpressionError", "Formula", "constants_of", "formula"]
