"""Three parameters of a hardening law fitted to noisy data by exact gradients. Writes `fit.svg`."""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

import ingot
from ingot.catalog import Parameter, model
from ingot.types import Scalar, exp

HERE = Path(__file__).parent


@model(gives="flow_stress")
def SaturatingFlow(
    plastic_strain: Scalar,
    *,
    first: Parameter[Scalar],
    gain: Parameter[Scalar],
    rate: Parameter[Scalar],
) -> Scalar:
    r"""Flow stress that saturates, $\sigma = y + Q (1 - e^{-b p})$.

    first: stress at first yield, $y$
    gain: hardening once saturated, $Q$
    rate: how fast it saturates, $b$
    """
    return first + gain * (1 - exp(-(rate * plastic_strain)))


def main(folder: Path) -> None:
    """Make data, fit the law to it, and plot both."""
    torch.manual_seed(1)
    strain = {"plastic_strain": torch.linspace(0, 0.2, 41, dtype=torch.float64)}
    true = ingot.compile(SaturatingFlow, {"first": 210, "gain": 130, "rate": 25})
    data = true(strain)["flow_stress"]
    data = data + 4 * torch.randn_like(data)

    guess = {"first": 150.0, "gain": 50.0, "rate": 5.0}
    law = ingot.compile(SaturatingFlow, guess, parameter=tuple(guess), train=True)
    before = law(strain)["flow_stress"].detach()
    optimiser = torch.optim.LBFGS(law.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = (law(strain)["flow_stress"] - data).square().mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    found = {name: float(value.detach()) for name, value in law.named_parameters()}
    print(", ".join(f"{name} {value:.1f}" for name, value in found.items()))

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(strain["plastic_strain"], data, ".", color="0.4", label="data")
    axes.plot(strain["plastic_strain"], before, ":", color="0.6", label="first guess")
    axes.plot(strain["plastic_strain"], law(strain)["flow_stress"].detach(), label="fit")
    axes.set_xlabel("plastic strain")
    axes.set_ylabel("flow stress (MPa)")
    axes.legend(frameon=False, loc="lower right")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "fit.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
