"""A small network compiled with its gradient: save it, load it as if elsewhere, train it.

Writes `out/joint.package` and `out/joint.txt` beside this file, or under the folder that is named.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import ingot.train as train

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Compile, save, load, train."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))
    example = torch.zeros(16, 2)
    compared = train.compare_partitions(network, example, dynamic="batch", sizes={"batch": 1000})
    folder.mkdir(parents=True, exist_ok=True)
    train.joint(network, example, dynamic="batch").save(folder / "joint.package")

    loaded = train.load(folder / "joint.package")
    first, last = fitted(loaded)
    text = f"{compared}\nloss {first:.4f} before training, {last:.4f} after 300 steps\n"
    (folder / "joint.txt").write_text(text)
    print(text, end="")


def fitted(model: nn.Module) -> tuple[float, float]:
    """The loss before and after learning a saddle, from batches of any size."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for step in range(300):
        x = torch.rand(64 + step % 7, 2) * 2 - 1
        loss = functional.mse_loss(model(x), saddle(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def saddle(x: Tensor) -> Tensor:
    """What is to be learnt."""
    return x[:, :1] ** 2 - x[:, 1:] ** 2


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "out")
