"""converted: a number from one unit to another, as `${units 90 MPa -> Pa}` asks for.

In: a number and units written as products of powers. Out: a number, or a Fault.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ingot.errors import did_you_mean
from ingot.hit.arithmetic import Fault

__all__ = ["UNITS", "Unit", "convert", "parse_unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A factor to SI, the powers of (m, kg, s, A, K, mol, cd), and where zero lies in SI."""

    factor: float
    powers: tuple[int, ...]
    zero: float = 0.0


METRE, KILOGRAM, SECOND, AMPERE, KELVIN, MOLE, CANDELA = (
    tuple(int(i == j) for j in range(7)) for i in range(7)
)
FORCE, PRESSURE, ENERGY = (1, 1, -2, 0, 0, 0, 0), (-1, 1, -2, 0, 0, 0, 0), (2, 1, -2, 0, 0, 0, 0)
POWER, CHARGE, VOLTAGE = (2, 1, -3, 0, 0, 0, 0), (0, 0, 1, 1, 0, 0, 0), (2, 1, -3, -1, 0, 0, 0)
NONE, RATE = (0,) * 7, (0, 0, -1, 0, 0, 0, 0)
PREFIXES = {
    "Y": 1e24, "Z": 1e21, "E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2,
    "da": 1e1, "d": 1e-1, "c": 1e-2, "m": 1e-3, "mu": 1e-6, "u": 1e-6, "n": 1e-9, "p": 1e-12,
    "f": 1e-15, "a": 1e-18, "z": 1e-21, "y": 1e-24,
}  # fmt: skip
PREFIXED = {
    "m": Unit(1, METRE), "g": Unit(1e-3, KILOGRAM), "s": Unit(1, SECOND), "A": Unit(1, AMPERE),
    "K": Unit(1, KELVIN), "mol": Unit(1, MOLE), "cd": Unit(1, CANDELA), "Hz": Unit(1, RATE),
    "N": Unit(1, FORCE), "Pa": Unit(1, PRESSURE), "J": Unit(1, ENERGY), "W": Unit(1, POWER),
    "C": Unit(1, CHARGE), "V": Unit(1, VOLTAGE), "F": Unit(1, (-2, -1, 4, 2, 0, 0, 0)),
    "Ohm": Unit(1, (2, 1, -3, -2, 0, 0, 0)), "S": Unit(1, (-2, -1, 3, 2, 0, 0, 0)),
    "Wb": Unit(1, (2, 1, -2, -1, 0, 0, 0)), "T": Unit(1, (0, 1, -2, -1, 0, 0, 0)),
    "H": Unit(1, (2, 1, -2, -2, 0, 0, 0)), "Bq": Unit(1, RATE),
    "Gy": Unit(1, (2, 0, -2, 0, 0, 0, 0)), "Sv": Unit(1, (2, 0, -2, 0, 0, 0, 0)),
    "kat": Unit(1, (0, 0, -1, 0, 0, 1, 0)), "l": Unit(1e-3, (3, 0, 0, 0, 0, 0, 0)),
    "L": Unit(1e-3, (3, 0, 0, 0, 0, 0, 0)), "eV": Unit(1.602176634e-19, ENERGY),
    "bar": Unit(1e5, PRESSURE), "cal": Unit(4.184, ENERGY), "erg": Unit(1e-7, ENERGY),
    "dyn": Unit(1e-5, FORCE), "rad": Unit(1, NONE), "t": Unit(1e3, KILOGRAM),
}  # fmt: skip
PLAIN = {
    "min": Unit(60, SECOND), "h": Unit(3600, SECOND), "hr": Unit(3600, SECOND),
    "day": Unit(86400, SECOND), "d": Unit(86400, SECOND), "Ang": Unit(1e-10, METRE),
    "in": Unit(0.0254, METRE), "ft": Unit(0.3048, METRE), "yd": Unit(0.9144, METRE),
    "mi": Unit(1609.344, METRE), "lb": Unit(0.45359237, KILOGRAM),
    "oz": Unit(0.028349523125, KILOGRAM), "lbf": Unit(4.4482216152605, FORCE),
    "psi": Unit(6894.757293168361, PRESSURE), "ksi": Unit(6894757.293168361, PRESSURE),
    "atm": Unit(101325, PRESSURE), "Torr": Unit(101325 / 760, PRESSURE),
    "mmHg": Unit(133.322387415, PRESSURE), "BTU": Unit(1055.05585262, ENERGY),
    "hp": Unit(745.6998715822702, POWER), "deg": Unit(math.pi / 180, NONE), "pct": Unit(1e-2, NONE),
    "degC": Unit(1, KELVIN, 273.15), "degF": Unit(5 / 9, KELVIN, 459.67 * 5 / 9),
    "degR": Unit(5 / 9, KELVIN), "at": Unit(98066.5, PRESSURE),
}  # fmt: skip
UNITS = PREFIXED | PLAIN
PART = re.compile(r"\s*([*/]?)\s*([A-Za-z]+|1)\s*(?:\^\s*\(?\s*([+-]?\d{1,2})(?!\d)\s*\)?)?\s*")


def convert(number: float, given: str, wanted: str) -> float:
    """A number in another unit of the same kind; temperatures move with their zero."""
    source, target = parse_unit(given), parse_unit(wanted)
    if source.powers != target.powers:
        message = f"'{given}' cannot be converted to '{wanted}'"
        raise Fault(message, "convert between units of the same quantity")
    if source.zero == target.zero:
        value = number * (source.factor / target.factor)
    else:
        value = (number * source.factor + source.zero - target.zero) / target.factor
    if math.isfinite(number) and not math.isfinite(value):
        raise Fault(f"'{number:g} {given}' is too large in '{wanted}'", "use a larger unit")
    return value


def parse_unit(text: str) -> Unit:
    """A unit written as a product of powers, such as `kg*m/s^2`."""
    factor, powers, position = 1.0, NONE, 0
    parts: list[re.Match[str]] = []
    while position < len(text):
        match = PART.match(text, position)
        if match is None or not match[0] or (bool(match[1]) == (position == 0)):
            raise Fault(f"the unit '{text}' is not understood", "write it like 'kg*m/s^2'")
        parts.append(match)
        position = match.end()
    for match in parts:
        unit = parse_simple(match[2])
        power = int(match[3] or 1) * (-1 if match[1] == "/" else 1)
        if unit.zero:
            if len(parts) > 1 or power != 1:
                fix = "use K, whose degrees are as large as those of degC"
                raise Fault(f"'{match[2]}' cannot be part of '{text}'", fix)
            return unit
        try:
            factor *= unit.factor**power
        except OverflowError:
            factor = math.inf
        if not 1e-300 < factor < 1e300:
            raise Fault(f"the unit '{text}' is too large or too small", "use smaller powers")
        powers = tuple(a + power * b for a, b in zip(powers, unit.powers, strict=True))
    if not parts:
        raise Fault("there is no unit", "write a number and its unit: ${units 10 s}")
    return Unit(factor, powers)


def parse_simple(word: str) -> Unit:
    """One unit, with or without a prefix."""
    if word == "1":
        return Unit(1, NONE)
    if word in UNITS:
        return UNITS[word]
    for prefix, scale in PREFIXES.items():
        rest = word.removeprefix(prefix)
        if rest != word and rest in PREFIXED:
            unit = PREFIXED[rest]
            return Unit(scale * unit.factor, unit.powers)
    known = [*UNITS, *(prefix + each for prefix in "kMmc" for each in ("Pa", "m", "g", "N", "J"))]
    fix = did_you_mean(word, known) or "use an SI unit such as Pa, with a prefix if you like"
    raise Fault(f"there is no unit '{word}'", fix)
