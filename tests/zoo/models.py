"""Models written from the descriptions of their papers, narrow and without weights.

Each entry of `ZOO` has a model, its block, and calls of it; a second call has other sizes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WORDS = 17


class RotaryAttention(nn.Module):
    """Causal attention with grouped keys, rotary positions and maybe a cache."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, angles: Tensor, cache: Tensor | None, at: Tensor) -> Tensor:
        batch, length, width = x.shape
        q = rotate(self.q(x).view(batch, length, self.heads, self.size), angles)
        k, v = self.kv(x).view(batch, length, 2, self.groups, self.size).unbind(2)
        k = rotate(k, angles)
        if cache is None:
            mask = torch.ones(length, length, dtype=torch.bool).tril()
        else:
            cache[0].index_copy_(1, at, k)
            cache[1].index_copy_(1, at, v)
            k, v = cache[0], cache[1]
            mask = torch.arange(k.shape[1]) <= at[:, None]
        k, v = (t.repeat_interleave(self.heads // self.groups, 2).transpose(1, 2) for t in (k, v))
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn pairs of entries by their angles."""
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class LlamaBlock(nn.Module):
    """Attention and a gated layer, each after a root-mean-square norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.attention = RotaryAttention(width, 4, 2)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor, angles: Tensor, cache: Tensor | None, at: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), angles, cache, at)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A decoder of words, whose embedding is tied to its head."""

    def __init__(self, width: int = 16, blocks: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList([LlamaBlock(width) for _ in range(blocks)])
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, WORDS, bias=False)
        self.head.weight = self.embed.weight
        half = width // 4 // 2
        speeds = 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("speeds", speeds, persistent=False)

    def forward(
        self, words: Tensor, cache: Tensor | None = None, at: Tensor | None = None
    ) -> Tensor:
        at = torch.arange(words.shape[1]) if at is None else at
        x, angles = self.embed(words), at[:, None] * self.speeds
        for i, block in enumerate(self.blocks):
            x = block(x, angles, None if cache is None else cache[i], at)
        return self.head(self.norm(x))


class EncoderBlock(nn.Module):
    """Attention between all tokens and a layer, each after a norm, with dropout."""

    def __init__(self, width: int, heads: int = 2) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        mixed = F.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4).unbind(0))
        x = x + F.dropout(self.out(mixed.transpose(1, 2).flatten(2)), 0.1, self.training)
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Patches of an image as tokens beside one that is read out."""

    def __init__(self, width: int = 16, blocks: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 5, width) * 0.02)
        self.blocks = nn.ModuleList([EncoderBlock(width) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 5)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class TimedConvolution(nn.Module):
    """Two convolutions with a shift by the embedded time between them."""

    def __init__(self, inward: int, outward: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(2, inward), nn.GroupNorm(2, outward)
        self.conv1 = nn.Conv2d(inward, outward, 3, padding=1)
        self.conv2 = nn.Conv2d(outward, outward, 3, padding=1)
        self.time = nn.Linear(time, outward)
        self.skip = nn.Conv2d(inward, outward, 1) if inward != outward else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.conv2(F.dropout(F.silu(self.norm2(h)), 0.1, self.training))


class UNet(nn.Module):
    """Down and up again, with what was on the way down beside what comes up."""

    def __init__(self, width: int = 4, time: int = 8) -> None:
        super().__init__()
        self.time, self.embed = time, nn.Sequential(nn.Linear(time, time), nn.SiLU())
        self.first, self.last = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 1, 1)
        self.down = nn.ModuleList([TimedConvolution(width, width, time) for _ in range(2)])
        self.middle = TimedConvolution(width, width, time)
        self.up = nn.ModuleList([TimedConvolution(2 * width, width, time) for _ in range(2)])

    def forward(self, image: Tensor, time: Tensor) -> Tensor:
        rates = torch.exp(-math.log(1e4) * torch.arange(self.time // 2) / (self.time // 2))
        angles = time[:, None] * rates
        t = self.embed(torch.cat([angles.sin(), angles.cos()], -1))
        x, kept = self.first(image), []
        for block in self.down:
            kept.append(x := block(x, t))
            x = F.avg_pool2d(x, 2)
        x = self.middle(x, t)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, kept.pop()], 1), t)
        return self.last(x)


class BasicBlock(nn.Module):
    """Two convolutions with batch norms, and a shortcut."""

    def __init__(self, inward: int, outward: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inward, outward, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outward, outward, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outward), nn.BatchNorm2d(outward)
        self.shortcut = None
        if stride != 1 or inward != outward:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inward, outward, 1, stride, bias=False), nn.BatchNorm2d(outward)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet18(nn.Module):
    """Four stages of two basic blocks."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.stages = nn.ModuleList()
        for i in range(4):
            self.stages.append(BasicBlock(widths[i], widths[i + 1], 1 if i == 0 else 2))
            self.stages.append(BasicBlock(widths[i + 1], widths[i + 1], 1))
        self.head = nn.Linear(widths[-1], 5)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        for block in self.stages:
            x = block(x)
        return self.head(x.mean((2, 3)))


class SelectiveScan(nn.Module):
    """A gated state space whose step, input and output follow from the input."""

    def __init__(self, width: int, states: int = 3) -> None:
        super().__init__()
        self.norm, self.states = nn.RMSNorm(width, eps=1e-5), states
        self.into = nn.Linear(width, 4 * width, bias=False)
        self.conv = nn.Conv1d(2 * width, 2 * width, 3, padding=2, groups=2 * width)
        self.select = nn.Linear(2 * width, 1 + 2 * states, bias=False)
        self.step = nn.Linear(1, 2 * width)
        self.log_decay = nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(2 * width, 1))
        self.direct = nn.Parameter(torch.ones(2 * width))
        self.out = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        u, gate = self.into(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(u.mT)[..., :length].mT)
        rate, enter, leave = self.select(u).split([1, self.states, self.states], -1)
        step = F.softplus(self.step(rate))[..., None]
        decay = torch.exp(-step * self.log_decay.exp())
        drive = step * enter[:, :, None] * u[..., None]
        state, seen = torch.zeros_like(drive[:, 0]), []
        for t in range(length):
            state = decay[:, t] * state + drive[:, t]
            seen.append((state * leave[:, t, None]).sum(-1))
        y = torch.stack(seen, 1) + self.direct * u
        return x + self.out(y * F.silu(gate))


class Mamba(nn.Module):
    """Selective scans in a row."""

    def __init__(self, width: int = 4, blocks: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList([SelectiveScan(width) for _ in range(blocks)])
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embed(words)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Experts(nn.Module):
    """Every token goes to the two of four experts that its router likes best."""

    def __init__(self, width: int, count: int = 4, best: int = 2) -> None:
        super().__init__()
        self.norm, self.router, self.best = nn.LayerNorm(width), nn.Linear(width, count), best
        self.up = nn.Parameter(torch.randn(count, width, 2 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(count, 2 * width, width) * width**-0.5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.norm(x).flatten(0, -2)
        likes = self.router(y).softmax(-1)
        weights, chosen = likes.topk(self.best, -1)
        mixed = torch.zeros_like(y)
        for k in range(self.best):
            h = F.relu(torch.bmm(y[:, None], self.up[chosen[:, k]]))
            h = torch.bmm(h, self.down[chosen[:, k]])[:, 0]
            mixed = mixed + weights[:, k, None] * h / weights.sum(-1, keepdim=True)
        used = F.one_hot(chosen, likes.shape[-1]).sum(1).to(x.dtype)
        balance = likes.shape[-1] * (used.mean(0) * likes.mean(0)).sum()
        return x + mixed.view(x.shape), balance


class SparseExperts(Experts):
    """The same, where an expert sees only the tokens that chose it."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.norm(x).flatten(0, -2)
        likes = self.router(y).softmax(-1)
        weights, chosen = likes.topk(self.best, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        mixed = torch.zeros_like(y)
        for expert in range(likes.shape[-1]):
            token, rank = torch.where(chosen == expert)
            h = F.relu(y[token] @ self.up[expert]) @ self.down[expert]
            mixed.index_add_(0, token, weights[token, rank, None] * h)
        return x + mixed.view(x.shape), likes.amax(-1).mean()


class MixtureOfExperts(nn.Module):
    """Experts in a row; the loss of balance is the second result."""

    def __init__(self, width: int = 8, blocks: int = 2, kind: type[Experts] = Experts) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.blocks = nn.ModuleList([kind(width) for _ in range(blocks)])

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        x, balance = self.embed(words), torch.zeros(())
        for block in self.blocks:
            x, more = block(x)
            balance = balance + more
        return self.head(x), balance


class MessagePassing(nn.Module):
    """Nodes take the mean of messages along the edges that enter them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU())
        self.update, self.norm = nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        sent = self.message(torch.cat([x[source], x[target]], -1))
        total = torch.zeros_like(x).index_add_(0, target, sent)
        count = x.new_zeros(x.shape[0]).scatter_add_(0, target, torch.ones_like(sent[:, 0]))
        mean = total / count.clamp(min=1)[:, None]
        return x + self.norm(F.relu(self.update(torch.cat([x, mean], -1))))


class GraphNetwork(nn.Module):
    """Rounds of messages, and a sum over the nodes of each graph."""

    def __init__(self, width: int = 8, blocks: int = 3) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, width), nn.Linear(width, 2)
        self.blocks = nn.ModuleList([MessagePassing(width) for _ in range(blocks)])

    def forward(self, nodes: Tensor, edges: Tensor, member: Tensor) -> Tensor:
        x = self.first(nodes)
        for block in self.blocks:
            x = block(x, edges)
        return self.last(x.new_zeros(2, x.shape[1]).index_add_(0, member, x))


class Recurrent(nn.Module):
    """A layer of long short-term memory over a sequence, with its state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.given, self.kept = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width, bias=False)

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state if state is not None else (torch.zeros_like(x[:, 0]),) * 2
        seen = []
        for t in range(x.shape[1]):
            i, f, g, o = (self.given(x[:, t]) + self.kept(h)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            seen.append(h)
        return torch.stack(seen, 1), (h, c)


class LSTM(nn.Module):
    """A language model of two recurrent layers with dropout between them."""

    def __init__(self, width: int = 8, blocks: int = 2) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.blocks = nn.ModuleList([Recurrent(width) for _ in range(blocks)])
        self.drop = nn.Dropout(0.2)

    def forward(
        self, words: Tensor, states: list[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        x, after = self.drop(self.embed(words)), []
        for i, block in enumerate(self.blocks):
            x, state = block(x, None if states is None else states[i])
            x = self.drop(x)
            after.append(state)
        return self.head(x), after


@dataclass(frozen=True)
class Entry:
    """A model, its block, and arguments of calls: those of the first one are the example."""

    make: Callable[[], nn.Module]
    block: type[nn.Module]
    calls: Callable[[], list[tuple[Any, ...]]]


def _words(batch: int, length: int) -> Tensor:
    return torch.randint(WORDS, (batch, length))


def _graph(nodes: int, edges: int) -> tuple[Tensor, ...]:
    member = (torch.arange(nodes) * 2) // nodes
    return torch.randn(nodes, 3), torch.randint(nodes, (2, edges)), member


ZOO = {
    "llama": Entry(Llama, LlamaBlock, lambda: [(_words(2, 6),), (_words(1, 9),)]),
    "vit": Entry(ViT, EncoderBlock, lambda: [(torch.randn(n, 3, 8, 8),) for n in (2, 3)]),
    "unet": Entry(
        UNet, TimedConvolution, lambda: [(torch.randn(n, 1, 8, 8), torch.rand(n)) for n in (2, 3)]
    ),
    "resnet18": Entry(ResNet18, BasicBlock, lambda: [(torch.randn(n, 3, 64, 64),) for n in (2, 3)]),
    "mamba": Entry(Mamba, SelectiveScan, lambda: [(_words(2, 5),), (_words(3, 5),)]),
    "moe": Entry(MixtureOfExperts, Experts, lambda: [(_words(2, 5),), (_words(3, 4),)]),
    "sparse-moe": Entry(
        lambda: MixtureOfExperts(kind=SparseExperts), SparseExperts,
        lambda: [(_words(2, 5),), (_words(3, 4),)],
    ),
    "gnn": Entry(GraphNetwork, MessagePassing, lambda: [_graph(7, 12), _graph(9, 20)]),
    "lstm": Entry(LSTM, Recurrent, lambda: [(_words(2, 4),), (_words(3, 4),)]),
}  # fmt: skip
