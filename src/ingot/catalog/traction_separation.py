"""Traction against separation of an interface: when it gives way, how, and what is left of it.

The first component of a separation is along the normal; it opens where that is above zero.
"""

import math

from ingot.catalog.declare import Fixed, Parameter, model, old, optional
from ingot.types import Scalar, Vec, eps, exp, maximum, sqrt, where


@model(gives="mode_mixity")
def ModeMixity(normal_separation: Scalar, tangential_separation: Scalar) -> Scalar:
    r"""The share of shear in an opening, $\beta = \delta_s / \delta_n$; 0 where none opens."""
    opens = normal_separation > 0.0
    return where(opens, tangential_separation / where(opens, normal_separation, 1.0), 0.0)


@model(gives="critical_separation")
def CamanhoDavilaCriticalSeparation(
    normal_separation: Scalar,
    *,
    mode_mixity: Parameter[Scalar],
    penalty_stiffness: Fixed[Scalar],
    normal_strength: Fixed[Scalar],
    shear_strength: Fixed[Scalar],
) -> Scalar:
    r"""The separation at which damage begins,
    $\delta_c = \delta_n \delta_s \sqrt{(1 + \beta^2) / (\delta_s^2 + \beta^2 \delta_n^2)}$.

    mode_mixity: share of shear, $\beta$
    penalty_stiffness: stiffness of the sound interface, $K$
    normal_strength: strength in opening, $K \delta_n$
    shear_strength: strength in shear, $K \delta_s$; it alone counts where none opens
    """
    normal, shear = normal_strength / penalty_stiffness, shear_strength / penalty_stiffness
    square = mode_mixity * mode_mixity
    below = sqrt(shear * shear + square * normal * normal + eps(shear))
    return where(normal_separation > 0.0, normal * shear * sqrt(1.0 + square) / below, shear)


@model(gives="full_separation")
def BenzeggaghKenaneFullSeparation(
    normal_separation: Scalar,
    *,
    mode_mixity: Parameter[Scalar],
    critical_separation: Parameter[Scalar],
    penalty_stiffness: Fixed[Scalar],
    mode_I_fracture_toughness: Fixed[Scalar],
    mode_II_fracture_toughness: Fixed[Scalar],
    shear_strength: Fixed[Scalar],
    eta: Fixed[Scalar],
) -> Scalar:
    r"""The separation at which nothing is left, by Benzeggagh and Kenane,
    $\frac{2}{K \delta_c} (G_I + (G_{II} - G_I) (\beta^2 / (1 + \beta^2))^\eta)$.

    mode_mixity: share of shear, $\beta$
    critical_separation: separation at which damage begins, $\delta_c$
    penalty_stiffness: stiffness of the sound interface, $K$
    mode_I_fracture_toughness: energy per area in opening, $G_I$
    mode_II_fracture_toughness: energy per area in shear, $G_{II}$
    shear_strength: strength in shear, $S$: where none opens, it is $2 G_{II} / S$
    eta: exponent, $\eta$
    """
    opening, shear = mode_I_fracture_toughness, mode_II_fracture_toughness
    square = mode_mixity * mode_mixity
    part = (square / (1.0 + square) + eps(square)) ** eta
    mixed = 2.0 / (penalty_stiffness * critical_separation) * (opening + (shear - opening) * part)
    return where(normal_separation > 0.0, mixed, 2.0 * shear / shear_strength)


@model(gives="full_separation")
def PowerLawFullSeparation(
    normal_separation: Scalar,
    *,
    mode_mixity: Parameter[Scalar],
    critical_separation: Parameter[Scalar],
    penalty_stiffness: Fixed[Scalar],
    mode_I_fracture_toughness: Fixed[Scalar],
    mode_II_fracture_toughness: Fixed[Scalar],
    shear_strength: Fixed[Scalar],
    eta: Fixed[Scalar],
) -> Scalar:
    r"""The separation at which nothing is left, by a power law,
    $\frac{2 + 2 \beta^2}{K \delta_c} (G_I^{-\eta} + (\beta^2 / G_{II})^\eta)^{-1/\eta}$.

    mode_mixity: share of shear, $\beta$
    critical_separation: separation at which damage begins, $\delta_c$
    penalty_stiffness: stiffness of the sound interface, $K$
    mode_I_fracture_toughness: energy per area in opening, $G_I$
    mode_II_fracture_toughness: energy per area in shear, $G_{II}$
    shear_strength: strength in shear, $S$: where none opens, it is $2 G_{II} / S$
    eta: exponent, $\eta$
    """
    square = mode_mixity * mode_mixity
    shear = (square / mode_II_fracture_toughness + eps(square)) ** eta
    energy = ((1.0 / mode_I_fracture_toughness) ** eta + shear) ** (-1.0 / eta)
    mixed = (2.0 + 2.0 * square) / (penalty_stiffness * critical_separation) * energy
    closed = 2.0 * mode_II_fracture_toughness / shear_strength
    return where(normal_separation > 0.0, mixed, closed)


@model(gives="traction")
def OrthotropicLinearTraction(
    normal_separation: Scalar,
    tangential_separation_1: Scalar,
    tangential_separation_2: Scalar,
    normal_penetration: Scalar = optional,
    *,
    normal_stiffness: Fixed[Scalar],
    tangential_stiffness: Fixed[Scalar],
    penalty_stiffness: Fixed[Scalar] = 0.0,
) -> Vec:
    r"""Springs between two faces, $t = (K_n \delta_n + K_p \delta_p, K_t \delta_1, K_t \delta_2)$.

    normal_stiffness: stiffness along the normal, $K_n$
    tangential_stiffness: stiffness in shear, $K_t$
    penalty_stiffness: stiffness against penetration, $K_p$
    """
    traction = Vec.of(
        normal_stiffness * normal_separation,
        tangential_stiffness * tangential_separation_1,
        tangential_stiffness * tangential_separation_2,
    )
    return _resist(traction, penalty_stiffness, normal_penetration)


def _resist(traction: Vec, stiffness: Scalar, penetration: Scalar | None) -> Vec:
    """The traction with what resists penetration, where that is told."""
    if penetration is None:
        return traction
    return Vec.of(traction[0] + stiffness * penetration, traction[1], traction[2])


@model(gives=("traction", "damage"))
def BilinearTraction(
    effective_separation: Scalar,
    normal_separation: Scalar,
    tangential_separation_1: Scalar,
    tangential_separation_2: Scalar,
    normal_penetration: Scalar = optional,
    damage_old: Scalar = old("damage"),
    *,
    penalty_stiffness: Fixed[Scalar],
    critical_separation: Parameter[Scalar],
    full_separation: Parameter[Scalar],
) -> tuple[Vec, Scalar]:
    r"""Traction $K (1 - d) \delta$ with damage that never heals, up to
    $d = \delta_f (\delta_m - \delta_c) / (\delta_m (\delta_f - \delta_c))$.

    penalty_stiffness: stiffness of the sound interface, $K$, and against penetration
    critical_separation: separation at which damage begins, $\delta_c$
    full_separation: separation at which nothing is left, $\delta_f$
    """
    sound, broken = (
        effective_separation < critical_separation,
        effective_separation >= full_separation,
    )
    span = full_separation - critical_separation
    size = where(sound, 1.0, effective_separation)
    ramp = full_separation * (size - critical_separation) / (size * where(span > 0.0, span, 1.0))
    damage = maximum(where(sound, 0.0, where(broken, 1.0, ramp)), damage_old)
    separation = Vec.of(normal_separation, tangential_separation_1, tangential_separation_2)
    traction = separation * (penalty_stiffness * (1.0 - damage))
    return _resist(traction, penalty_stiffness, normal_penetration), damage


@model(gives=("traction", "damage"))
def SalehaniIraniTraction(
    normal_separation: Scalar,
    tangential_separation_1: Scalar,
    tangential_separation_2: Scalar,
    normal_penetration: Scalar = optional,
    damage_old: Scalar = old("damage"),
    *,
    normal_characteristic_length: Fixed[Scalar],
    tangential_characteristic_length: Fixed[Scalar],
    normal_strength: Fixed[Scalar],
    shear_strength: Fixed[Scalar],
    penalty_stiffness: Fixed[Scalar] = 0.0,
) -> tuple[Vec, Scalar]:
    r"""Traction $e T_n b_n (1 - d)$ along the normal and $\sqrt{2 e}\, T_t b_i (1 - d)$ in shear,
    with damage that never heals, up to $d = 1 - e^{-b_n - b_1^2 - b_2^2}$.

    normal_characteristic_length: what $\delta_n$ is divided by in $b_n$
    tangential_characteristic_length: what $\delta_i$ is divided by in $\sqrt 2\, b_i$
    normal_strength: strength in opening, $T_n$
    shear_strength: strength in shear, $T_t$
    penalty_stiffness: stiffness against penetration
    """
    length = math.sqrt(2.0) * tangential_characteristic_length
    normal = normal_separation / normal_characteristic_length
    first, second = tangential_separation_1 / length, tangential_separation_2 / length
    damage = maximum(1.0 - exp(-normal - first * first - second * second), damage_old)
    opening = math.e * normal_strength * (1.0 - damage)
    shear = math.sqrt(2.0 * math.e) * shear_strength * (1.0 - damage)
    traction = Vec.of(opening * normal, shear * first, shear * second)
    return _resist(traction, penalty_stiffness, normal_penetration), damage
