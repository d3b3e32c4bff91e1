"""Units: factors, powers, temperatures, and what cannot be converted."""

import pytest

from ingot.hit import Fault
from ingot.hit.units import convert, parse_unit


@pytest.mark.parametrize(
    ("number", "given", "wanted", "value"),
    [
        (90, "MPa", "Pa", 9e7),
        (1, "kg*m/s^2", "N", 1),
        (1, "J/mol", "kg*m^2/s^2/mol", 1),
        (2, "mm^2", "m^2", 2e-6),
        (1, "s^-1", "Hz", 1),
        (1, "1/s", "Hz", 1),
        (5, "min", "s", 300),
        (1, "mum", "nm", 1000),
        (1, "dam", "m", 10),
        (1, "lbf/in^2", "psi", 1),
        (25, "degC", "K", 298.15),
        (212, "degF", "degC", 100),
        (1, "eV", "J", 1.602176634e-19),
    ],
)
def test_number_is_converted(number: float, given: str, wanted: str, value: float) -> None:
    assert convert(number, given, wanted) == pytest.approx(value, rel=1e-12)
    assert convert(value, wanted, given) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "wanted", "says"),
    [
        ("m", "s", "'m' cannot be converted to 's'"),
        ("degC/s", "K/s", "'degC' cannot be part of 'degC/s'"),
        ("megapascal", "Pa", "there is no unit 'megapascal'"),
        ("kg m", "kg", "the unit 'kg m' is not understood"),
        ("*m", "m", r"the unit '\*m' is not understood"),
    ],
)
def test_wrong_unit_is_refused_with_a_fix(given: str, wanted: str, says: str) -> None:
    with pytest.raises(Fault, match=says) as raised:
        convert(1, given, wanted)
    assert raised.value.fix


def test_a_prefix_of_no_unit_is_none() -> None:
    with pytest.raises(Fault, match="there is no unit 'kmin'"):
        parse_unit("kmin")
