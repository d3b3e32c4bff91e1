"""Random small phase fields: whole inputs, with every solver, layout, precision and stepper."""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["SOLVERS", "Drawn", "draw"]

SPLIT = ("AdamsBashforthMoulton", "AdamsBashforthMoultonCoupled", "ETDRK4Solver", "SecantSolver",
         "BroydenSolver")  # fmt: skip
SOLVERS = (*SPLIT, "ForwardEulerSolver", "RealSpaceForwardEuler", "")


@dataclass(frozen=True)
class Drawn:
    """An input, and what was drawn for it."""

    text: str
    dim: int
    mode: str
    solver: str
    single: bool


def block(name: str, **options: Any) -> str:
    """A block of a file with some options."""
    lines = (f"{key} = '{value}'" for key, value in options.items())
    return "\n".join((f"[{name}]", *lines, "[]"))


def section(name: str, *blocks: str) -> str:
    """A block of a file that holds other blocks, or lines."""
    return "\n".join((f"[{name}]", *blocks, "[]"))


def draw(seed: int, *, modes: tuple[str, ...] = (), solvers: tuple[str, ...] = SOLVERS) -> Drawn:
    """The input of a seed; `modes` are the layouts to draw from, all that fit unless given."""
    dice = np.random.default_rng(seed)

    def pick(*values: Any) -> Any:
        return values[int(dice.integers(len(values)))]

    def chance(share: float) -> bool:
        return bool(dice.random() < share)

    solver, dim = pick(*solvers), pick(1, 2, 2, 3)
    known = ["NONE", "NONE", *(["FFT_SLAB"] if dim > 1 else []), *(["FFT_PENCIL"] * (dim > 2))]
    known += ["REAL_SPACE"]
    mode = pick(*([each for each in known if each in modes] if modes else known))
    if mode == "REAL_SPACE":
        solver = pick("RealSpaceForwardEuler", "")
    spectral = mode != "REAL_SPACE"
    sizes = [pick(1, 2, 3, 4, 5, 6, 7, 8) for _ in range(dim)]
    if mode == "FFT_SLAB":
        sizes[1] = max(sizes[1], 2)
    single = chance(0.3)
    domain = {
        "dim": dim, **{f"n{a}": n for a, n in zip("xyz", sizes, strict=False)},
        **{f"{a}min": pick(0, -1.5, 2) for a in "xyz"[:dim]},
        **{f"{a}max": pick(3, 4.5, 6) for a in "xyz"[:dim]},
        "parallel_mode": mode, "floating_precision": "SINGLE" if single else "DOUBLE",
    }  # fmt: skip
    if mode == "REAL_SPACE":
        domain["periodic_directions"] = " ".join("XYZ"[:dim])
    initialize = [
        pick(
            block("c", type="RandomTensor", buffer="c", min=0.2, max=0.8, seed=seed),
            block("c", type="ParsedCompute", buffer="c", extra_symbols="true", expand="REAL",
                  expression="0.5 + 0.2*sin(x) + 0.1*cos(y + 2*z)"),
        ),
        block("w", type="SmoothRectangleCompute", buffer="w", x1=0.5, x2=2.5, y1=0.5, y2=2.5, z1=0,
              z2=2, int_width=0.7, profile=pick("COS", "TANH"), inside=0.9, outside=0.1),
        block("one", type="ConstantTensor", buffer="one", real=pick(1, "amount")),
    ]  # fmt: skip
    drift = pick("0.1*sin(t + 1)", "0", "0.05*x")
    solve = [
        block("mu", type="ParsedCompute", buffer="mu", inputs="c w", derivatives=pick("c", "c w"),
              expression="c^2*(1 - c)^2 + 0.3*c*w^2 + 0.1*c^2*w"),
        block("push", type="ParsedCompute", buffer="push", inputs="c w", extra_symbols="true",
              expression=f"if(c > 0.5, c*w, w - c) + {drift}"),
    ]  # fmt: skip
    width = pick("3", "5")
    solve += [block("lap", type="FiniteDifferenceLaplacian", buffer="lap", input="c", factor=0.05,
                    stencil_width=width)]  # fmt: skip
    rate = "0.2*push - mu + lap"
    if spectral:
        initialize += [
            block("L", type="ReciprocalLaplacianFactor", buffer="L", factor=0.05),
            block("M", type="ReciprocalLaplacianSquareFactor", buffer="M", factor=-0.002),
            block("N", type="DeAliasingTensor", buffer="N", method=pick("SHARP", "HOULI")),
        ]  # fmt: skip
        solve += [
            block("slope", type="FFTGradientSquare", buffer="slope", input="c", factor=0.01),
            block("edge", type="FFTGradient", buffer="edge", input="w",
                  direction=pick(*"XYZ"[:dim])),
            block("cbar", type="ForwardFFT", buffer="cbar", input="c"),
            block("wbar", type="ForwardFFT", buffer="wbar", input="w"),
        ]  # fmt: skip
        rate += " + slope - 0.01*edge"
    names = "push mu lap slope edge" if spectral else "push mu lap"
    solve += [
        block("rate", type="ParsedCompute", buffer="rate", inputs=names, expression=rate,
              expand=pick("NONE", "REAL")),
        block("turn", type="ParsedCompute", buffer="turn", inputs="c w rate", expression="c - w"),
    ]  # fmt: skip
    if spectral:
        solve += [
            block("ratebar_", type="ForwardFFT", buffer="ratebar_", input="rate"),
            block("ratebar", type="ParsedCompute", buffer="ratebar", inputs="ratebar_ N",
                  expression="ratebar_*N"),
            block("turnbar", type="ForwardFFT", buffer="turnbar", input="turn"),
        ]  # fmt: skip
    order = list(dice.permutation(len(solve)))
    solve = [solve[k] for k in order]
    root = {}
    if chance(0.5):
        cut = int(dice.integers(1, len(solve)))
        flag = str(chance(0.5)).lower()
        solve = [section("all", section("part", f"enable_jit = {flag}", *solve[:cut]),
                         *solve[cut:])]  # fmt: skip
        root = {"root_compute": "all"} if chance(0.5) else {}
    moved = {"buffer": "c w", "reciprocal_buffer": "cbar wbar"}
    split = {**moved, "nonlinear_reciprocal": "ratebar turnbar"}
    options: dict[str, Any] = {"type": solver, "substeps": pick(1, 1, 2, 3), **root}
    match solver:
        case "ForwardEulerSolver":
            options |= {**moved, "time_derivative_reciprocal": "ratebar turnbar"}
        case "RealSpaceForwardEuler":
            options |= {"buffer": "c w", "time_derivative": "rate turn"}
        case "":
            options = {}
        case _:
            linear = ("L M", "L L") if "Coupled" in solver else ("L M", "L 0", "0 0")
            options |= {**split, "linear_reciprocal": pick(*linear)}
    if solver.startswith("Adams"):
        options |= {"predictor_order": pick(1, 2, 3, 4), "corrector_order": pick(1, 2, 3),
                    "corrector_steps": pick(0, 0, 1, 2)}  # fmt: skip
    if "Coupled" in solver and chance(0.7):
        options |= {"linear_offdiag_rows": 0, "linear_offdiag_cols": 1, "linear_offdiag": "M",
                    "assume_symmetric": str(chance(0.5)).lower()}  # fmt: skip
    if solver in ("SecantSolver", "BroydenSolver"):
        # nearer to rounding, whether a secant converges is a matter of luck
        small = 1e-4 if single else 1e-9
        options |= {"max_iterations": 50, "relative_tolerance": small, "absolute_tolerance": small}
    stepper = pick(
        "", "", block("TimeStepper", type="IterationAdaptiveDT", dt=0.01, growth_factor=1.3),
        block("TimeStepper", type="FunctionDT", function="size"),
    )  # fmt: skip
    measures = [
        block("mean", type="TensorAveragePostprocessor", buffer="c"),
        block("high", type="TensorExtremeValuePostprocessor", buffer="w", value_type="MAX"),
        block("change", type="TensorIntegralChangePostprocessor", buffer="c"),
        block("total", type="TensorIntegralPostprocessor", buffer="rate"),
    ]  # fmt: skip
    measures += [block("speed", type="TensorInterfaceVelocityPostprocessor", buffer="c")] * spectral
    after = [
        block("both", type="ParsedCompute", buffer="both", inputs="c w one",
              expression="c*one + w"),
        *([block("slopes", type="GradientTensor", buffer="slopes", input="both")] * spectral),
    ]  # fmt: skip
    text = "\n".join((
        block("Domain", **domain),
        block("Problem", marlin_compatible=str(chance(0.5)).lower(), scalar_constant_names="amount",
              scalar_constant_values=1.5),
        section("Functions", block("size", type="ParsedFunction", expression="0.01/(1 + t)")),
        section("TensorComputes", section("Initialize", *initialize), section("Solve", *solve),
                section("Postprocess", *after)),
        block("TensorSolver", **options) if options else "",
        section("Postprocessors", *measures),
        section("Executioner", "type = Transient", "dt = 0.01", "num_steps = 4", stepper),
        section("TensorOutputs", block("xdmf", type="XDMFTensorOutput", buffer="c w",
                                       enable_hdf5="true")),
        section("Outputs", "csv = true"),
    ))  # fmt: skip
    return Drawn(text, dim, mode, solver, single)
