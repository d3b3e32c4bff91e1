"""Random programs of fields, compiled and direct: the same up to rounding, on every kind of box."""

import random
from dataclasses import dataclass, field

import pytest
import torch

from ingot.fields import COMPUTES
from ingot.fields.jit import Jit
from ingot.fields.jit.agree import differences
from ingot.fields.spaces import Mode
from ingot.fields.step import Ambient, Buffer, Eager, Source, State, Step, evaluate

from .cases import copied, parsed, state_of
from .cases import step as step_of

BOXES: list[tuple[tuple[int, ...], Mode]] = [
    ((1,), "NONE"), ((2,), "NONE"), ((7,), "NONE"), ((16,), "NONE"), ((3, 4), "NONE"),
    ((5, 1), "NONE"), ((2, 6), "NONE"), ((9, 7), "NONE"), ((6, 8), "FFT_SLAB"),
    ((3, 4, 5), "NONE"), ((1, 4, 3), "NONE"), ((4, 3, 6), "FFT_PENCIL"), ((5, 2, 3), "NONE"),
]  # fmt: skip
SPACE: dict[str, Source] = {"space": Ambient("space")}
REAL = ["{a}*{b}+c", "sin({a})-{b}^2", "if({a}<{b}, {a}, 2*{b})", "exp(-{a}*{a})/(1+{b}^2)",
        "sqrt(abs({a}))+min({b},0.4)", "cos(x)+{a}*t", "{a}-{b}*y", "tanh({a})*{b}-{b}*tanh({a})",
        "{a}%0.3+{b}", "1/(2+{a}^2)", "pow(abs({a})+0.1,1.5)", "atan2({a},{b})+hypot({a},{b})",
        "({a}<0.5)+({b}>=0.5)&({a}!={b})", "2+cos(x)", "3", "x*z+t"]  # fmt: skip
COMPLEX = ["{a}*{b}", "i*kx*{a}", "-k2*{a}+{b}", "{a}/(1+k2)", "0.5*{a}-i*{b}", "{a}*{b}-{b}*{a}",
           "k2*kx", "exp(-k2/100)*{a}"]  # fmt: skip


@dataclass
class Drawing:
    """Steps drawn one after the other, each from what is there."""

    dice: random.Random
    real: list[str] = field(default_factory=lambda: ["c", "d"])
    spectra: list[str] = field(default_factory=lambda: ["cbar", "dbar"])

    def drawn(self, count: int) -> tuple[Step, ...]:
        first = (self.declared("ForwardFFT", "cbar", input="c"),
                 self.declared("ForwardFFT", "dbar", input="d"))  # fmt: skip
        return (*first, *(self.one(f"r{at}") for at in range(count)))

    def declared(self, name: str, gives: str, **options: object) -> Step:
        found = {
            key: Buffer(str(value)) if key == "input" else value for key, value in options.items()
        }
        return step_of(gives, COMPUTES[name].function, gives, **SPACE, **found)

    def one(self, name: str) -> Step:
        a, b = (self.dice.choice(self.real) for _ in range(2))
        p, q = (self.dice.choice(self.spectra) for _ in range(2))
        kind = self.dice.choice(["real", "real", "real", "complex", "complex", "forward", "inverse",
                                 "slope", "square", "laplacian", "gives"])  # fmt: skip
        match kind:
            case "real":
                text = self.dice.choice(REAL).format(a=a, b=b)
                made = parsed(name, text, *dict.fromkeys((a, b, "c")), extra_symbols=True,
                              expand=self.dice.choice(["NONE", "NONE", "REAL"]))  # fmt: skip
            case "complex":
                text = self.dice.choice(COMPLEX).format(a=p, b=q)
                made = parsed(name, text, *dict.fromkeys((p, q)), extra_symbols=True)
            case "forward":
                made = self.declared("ForwardFFT", name, input=a)
            case "inverse":
                made = self.declared("InverseFFT", name, input=p)
            case "slope":
                made = self.declared("FFTGradient", name, input=a, direction="X")
            case "square":
                made = self.declared("FFTGradientSquare", name, input=p, input_is_reciprocal=True)
            case "laplacian":
                width = self.dice.choice(["3", "5"])
                made = self.declared("FiniteDifferenceLaplacian", name, input=a,
                                     stencil_width=width)  # fmt: skip
            case _:
                made = self.declared("ReciprocalLaplacianFactor", name, factor=0.3)
        spectral = kind in ("complex", "forward", "gives")
        (self.spectra if spectral else self.real).append(name)
        return made


def compare(seed: int, sizes: tuple[int, ...], mode: Mode) -> Jit:
    """Run a random program both ways, two turns; what differs by more than rounding is told."""
    dice = random.Random(seed)
    steps = Drawing(dice).drawn(dice.randint(3, 9))
    state = state_of(sizes, "c", "d", seed=seed, mode=mode)
    executor = Jit()
    for _ in range(2):
        direct = copied(state)
        before: State = copied(state)
        executor.run(steps, state)
        Eager().run(steps, direct)
        given = {name: state.buffers[name] for step in steps for name in step.gives}
        expected = {name: direct.buffers[name] for name in given}
        told = differences(given, steps, evaluate(steps, before.look_up), before.look_up)
        assert not told, (told, [str(step) + str(step.options) for step in steps])
        for name, value in expected.items():
            assert given[name].shape == value.shape and given[name].dtype == value.dtype
        state.time += 0.5
    return executor


@pytest.mark.parametrize("seed", range(13))
def test_a_random_program_is_the_same_compiled_and_direct(seed: int) -> None:
    sizes, mode = BOXES[seed % len(BOXES)]
    executor = compare(seed, sizes, mode)
    small = min(sizes) < 3
    assert executor.statistics.fallbacks == 0
    assert executor.statistics.calls == (0 if small else 2)
    assert torch.is_grad_enabled()
