"""Kinds of values at one point, and their algebra.

Here: what a Scalar, SR2 or MRP is, arithmetic, invariants, rotations, operations along an axis, and
the names of an input file's tensor expressions. Not here: physics, names of variables, tracing.
"""

from ingot.types.algebra import (
    abs, acos, add_up, asin, atan, below_one, clamp, compose, cos, cosh, cross, det, dev, eps,
    euler_rodrigues, exp, exp_map, heaviside, inner, inv, log, log10, macaulay, matmul,
    maximum, minimum, norm, outer, pow, r2_from_sr2, r2_from_wr2, rotate, sign, signed_power, sin,
    sinh, skew, sqrt, sym, tan, tanh, tr, transpose, unit, vdot, vol,
)  # fmt: skip
from ingot.types.axes import append, contract, difference, positions, total, trim
from ingot.types.contraction import einsum
from ingot.types.history import lag
from ingot.types.interpolation import interpolate
from ingot.types.kinds import KINDS, MRP, R2, SR2, SSR4, WR2, MillerIndex, Quaternion, Vec
from ingot.types.logarithm import log1p3
from ingot.types.repetition import repeat
from ingot.types.spectral import Eigen, Polar, eigh3, expm3, polar
from ingot.types.value import Axed, Flag, Scalar, Value, apply, assemble, places, where

__all__ = [
    "KINDS", "MRP", "R2", "SR2", "SSR4", "WR2", "Axed", "Eigen", "Flag", "MillerIndex", "Polar",
    "Quaternion", "Scalar", "Value", "Vec", "abs", "acos", "add_up", "append", "apply", "asin",
    "assemble", "atan", "below_one", "clamp", "compose", "contract", "cos", "cosh", "cross", "det",
    "dev", "difference", "eigh3", "einsum", "eps", "euler_rodrigues", "exp", "exp_map", "expm3",
    "heaviside", "inner", "interpolate", "inv", "lag", "log", "log1p3", "log10", "macaulay",
    "matmul", "maximum", "minimum", "norm", "outer", "places", "polar", "positions", "pow",
    "r2_from_sr2", "r2_from_wr2", "repeat",
    "rotate", "sign", "signed_power", "sin", "sinh", "skew", "sqrt", "sym", "tan", "tanh", "total",
    "tr", "transpose", "trim", "unit", "vdot", "vol", "where",
]  # fmt: skip
