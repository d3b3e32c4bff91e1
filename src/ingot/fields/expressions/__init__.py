"""Expressions of input files: text -> Expression -> Formula of tensors; and derivatives."""

from ingot.fields.expressions.formulas import Formula, constants_of, formula
from ingot.fields.expressions.parse import DESCRIBED, OPERATORS, ExpressionError

__all__ = ["DESCRIBED", "OPERATORS", "ExpressionError", "Formula", "constants_of", "formula"]
