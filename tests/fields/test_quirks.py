"""Quirks of the reference are told where they change a number, once each, and only there."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from ingot.errors import IngotError, IngotWarning
from ingot.fields import Simulation, build, prepared, run
from ingot.fields.quirks import quirks
from ingot.hit import read_text
from tests.fields.drawn_inputs import block, section

RIGHT = "Problem/marlin_compatible=false"
WAVES = "\n".join(
    (
        block("Domain", dim=1, nx=8, xmin="${low}", xmax="${fparse low + 2 * pi}"),
        section(
            "Functions",
            block("push", type="ParsedFunction", expression="${push}"),
        ),
        section(
            "TensorComputes",
            section(
                "Initialize",
                block(
                    "u",
                    type="ParsedCompute",
                    buffer="u",
                    extra_symbols="true",
                    expression="1 + sin(x) / 2",
                ),
                block(
                    "v",
                    type="ParsedCompute",
                    buffer="v",
                    extra_symbols="true",
                    expression="2 + cos(x + 1) / 3",
                ),
                block("push", type="MooseFunctionTensor", buffer="push", function="push"),
                block("L", type="ReciprocalLaplacianFactor", buffer="L", factor=0.1),
                block("E", type="ReciprocalLaplacianFactor", buffer="E", factor=0.05),
            ),
            section(
                "Solve",
                block("ubar", type="ForwardFFT", buffer="ubar", input="u"),
                block("vbar", type="ForwardFFT", buffer="vbar", input="v"),
                block(
                    "urate",
                    type="ParsedCompute",
                    buffer="urate",
                    inputs="ubar vbar",
                    extra_symbols="true",
                    expression="${rate}",
                ),
                block(
                    "vrate",
                    type="ParsedCompute",
                    buffer="vrate",
                    inputs="ubar vbar",
                    expression="(ubar - vbar) / 2",
                ),
            ),
        ),
        block("Executioner", type="Transient", dt=0.1, num_steps=3),
    )
)
SPLIT = """
[TensorSolver]
  buffer = 'u v'
  reciprocal_buffer = 'ubar vbar'
  linear_reciprocal = '${linear}'
  nonlinear_reciprocal = 'urate vrate'
[]
"""
GROWING = ("Executioner/TimeStepper/type=IterationAdaptiveDT", "Executioner/TimeStepper/dt=0.1",
           "Executioner/TimeStepper/growth_factor=1.5")  # fmt: skip


def simulation(text: str, *overrides: str) -> Simulation:
    defaults = {"low": "0", "push": "1", "rate": "ubar - vbar", "linear": "L L"}
    given = {each.partition("=")[0] for each in overrides}
    first = "\n".join(f"{k} = '{v}'" for k, v in defaults.items() if k not in given)
    return build(read_text(f"{first}\n{text}", overrides=overrides, moose=True))


def fields(made: Simulation, folder: Path) -> dict[str, torch.Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IngotWarning)
        return run(made, folder, jit=False).state.buffers


def drawn(seed: int) -> tuple[str, list[str]]:
    """A solver with options, a stepper, and what its computes see."""
    dice = np.random.default_rng(seed)

    def one_of(*values: str) -> str:
        return str(dice.choice(values))

    overrides = [f"rate={one_of('ubar - vbar', 'ubar * (1 + t) - vbar')}"]
    overrides += [f"low={one_of('0', '1')}", f"push={one_of('2', 'x', 't', 'x + t')}"]
    overrides += GROWING if dice.random() < 0.3 else ()
    kind = one_of("", "AdamsBashforthMoulton", "AdamsBashforthMoulton",
                  "AdamsBashforthMoultonCoupled", "ETDRK4Solver")  # fmt: skip
    if not kind:
        return WAVES, overrides
    overrides += [f"TensorSolver/type={kind}", f"TensorSolver/substeps={one_of('1', '2')}"]
    overrides += [f"linear={'L L' if 'Coupled' in kind else one_of('L L', '0 0')}"]
    if kind.startswith("Adams"):
        overrides += [f"TensorSolver/predictor_order={dice.integers(1, 5)}",
                      f"TensorSolver/corrector_order={dice.integers(1, 4)}",
                      f"TensorSolver/corrector_steps={dice.integers(0, 2)}"]  # fmt: skip
    if "Coupled" in kind:
        overrides += ["TensorSolver/linear_offdiag_rows=0", "TensorSolver/linear_offdiag_cols=1",
                      "TensorSolver/linear_offdiag=E"]  # fmt: skip
    return WAVES + SPLIT, overrides


def check(seed: int, folder: Path) -> bool:
    """That quirks are told if and only if the corrected form gives other fields."""
    text, overrides = drawn(seed)
    made, right = simulation(text, *overrides), simulation(text, *overrides, RIGHT)
    told = [problem.message for problem in quirks(made)]
    assert len(set(told)) == len(told) and not list(quirks(right))
    first, second = fields(made, folder), fields(right, folder)
    # beside a solver, a rate is that of the last evaluation, whichever that is
    names = ("u", "v", "push", *(("urate",) if made.solver is None else ()))
    differs = any(not torch.allclose(first[n], second[n], rtol=1e-12, atol=1e-13) for n in names)
    assert differs == bool(told), (told, overrides)
    return differs


@pytest.mark.parametrize("seed", range(24))
def test_a_quirk_is_told_if_and_only_if_it_changes_a_number(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.exhaustive
def test_two_hundred_draws_are_told_of_where_they_differ(tmp_path: Path) -> None:
    assert 20 < sum(check(seed, tmp_path) for seed in range(1000, 1200)) < 180


SOLVER = {
    "": [("rate=ubar*t", "sees the time where a step begins")],
    "AdamsBashforthMoulton": [
        ("TensorSolver/substeps=2", "nothing is remembered in the first step"),
        ("TensorSolver/predictor_order=3 linear='0 0'", "so that the run is of second order"),
        (" ".join(GROWING), "where steps change their size"),
        ("TensorSolver/corrector_steps=1 TensorSolver/corrector_order=1"
         " TensorSolver/predictor_order=1", "a corrector of first order changes nothing"),
        ("TensorSolver/corrector_steps=1", "old rates are those of predicted fields"),
        ("push=x low=1", "sees x from the lower corner of the box"),
        ("push=t Executioner/start_time=1", "sees the time as 0"),
        ("Postprocessors/d/type=TensorIntegralChangePostprocessor Postprocessors/d/buffer=u",
         "TensorIntegralChangePostprocessor gives Marlin's numbers"),
        ("Postprocessors/d/type=TensorInterfaceVelocityPostprocessor Postprocessors/d/buffer=u",
         "TensorInterfaceVelocityPostprocessor gives Marlin's numbers"),
    ],
    "AdamsBashforthMoultonCoupled": [
        ("", "phases are dropped"),
        ("TensorSolver/linear_offdiag_rows=0 TensorSolver/linear_offdiag_cols=1"
         " TensorSolver/linear_offdiag=E", "couplings act the other way round"),
    ],
    "ETDRK4Solver": [("rate=ubar*t", "all stages see the time where a substep begins")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("solver", "overrides", "message"),
    [(solver, *case) for solver, cases in SOLVER.items() for case in cases],
)
def test_a_quirk_is_warned_of_once_and_refused_where_strict(
    solver: str, overrides: str, message: str, tmp_path: Path
) -> None:
    given = [each.replace("~", " ") for each in overrides.replace("'0 0'", "0~0").split()]
    given += [f"TensorSolver/type={solver}"] if solver else []
    text = WAVES + SPLIT if solver else WAVES
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IngotWarning)
        prepared(simulation(text, *given), tmp_path)
    told = [str(each.message) for each in caught if "reference-quirk" in str(each.message)]
    assert sum(message in each for each in told) == 1, told
    with pytest.raises(IngotError, match="reference-quirk"):
        prepared(simulation(text, *given), tmp_path, strict=True)
    assert not list(quirks(simulation(text, *given, RIGHT)))


def test_a_block_may_be_right_by_itself() -> None:
    block = "TensorComputes/Initialize/push/marlin_compatible"
    wrong = ("TensorSolver/type=ETDRK4Solver", "push=x", "low=1")
    assert list(quirks(simulation(WAVES + SPLIT, *wrong)))
    assert not list(quirks(simulation(WAVES + SPLIT, *wrong, f"{block}=false")))
    assert list(quirks(simulation(WAVES + SPLIT, *wrong, RIGHT, f"{block}=true")))
