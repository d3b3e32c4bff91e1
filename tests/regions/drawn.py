"""A seed -> the source text of a module, of its blocks and of the calls that are made of it.

The text is a Python module with a class `Model`, `BLOCKS`, `DYNAMIC`, `example()` and functions
`step_0(run)`, ...; `play` runs it eagerly or compiled and gives a record per step.
"""

import copy
import linecache
import random
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ingot.errors import IngotError
from tests.regions.observe import describe, state, surroundings, weighted

PREAMBLE = '''
import copy
from collections import namedtuple
from contextlib import nullcontext
from dataclasses import dataclass
from types import MethodType, SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from ingot.regions import noinline

LOG = []
HOOKS = []
SCALE = 1.25
CONFIG = {"inner": {"scale": 0.75, "act": "tanh"}}
SETTINGS = SimpleNamespace(shift=0.5, deep=True)
Pair = namedtuple("Pair", "main aside")


@dataclass
class Result:
    main: object
    aside: object


@noinline
def mix(x, y):
    return torch.tanh(x) + 0.5 * y


def halve(x):
    return x * 0.5


def soft(x):
    return x / (1 + x.abs())


class Adapted(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.low = nn.Parameter(torch.randn(1, layer.in_features) * 0.3)
        self.high = nn.Parameter(torch.randn(layer.out_features, 1) * 0.3)

    def forward(self, x):
        return self.layer(x) + (x @ self.low.T) @ self.high.T


def owner(model, k):
    """The module and name of the parameter that has number k, counted round and round."""
    named = [(m, n) for m in model.modules() for n, p in m._parameters.items() if p is not None]
    return named[k % len(named)]


def tie(one, other):
    part, name = owner(one, 0)
    setattr(part, name, getattr(*owner(other, 0)))


def replace(model, k):
    part, name = owner(model, k)
    old = getattr(part, name)
    setattr(part, name, nn.Parameter(old.detach() * 0.5 + 0.1, requires_grad=old.requires_grad))


def freeze(model, k):
    part, name = owner(model, k)
    getattr(part, name).requires_grad_(not getattr(part, name).requires_grad)


def adapt(model, k):
    found = [(m, n) for m in model.modules() for n, c in m.named_children()
             if type(c) is nn.Linear and not isinstance(m, Adapted)]
    if found:
        part, name = found[k % len(found)]
        setattr(part, name, Adapted(getattr(part, name)))


def descend(model):
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p -= 0.1 * p.grad


def part(model, k):
    """A module below the model that has no children, by its number."""
    below = [m for m in model.modules() if not any(m.children())]
    return below[k % len(below)]


def report(module, args, out):
    LOG.append((type(module).__name__, len(args)))


def scale_result(module, args, out):
    return out * 1.5 if isinstance(out, torch.Tensor) else None


def scale_argument(module, args):
    return (args[0] * 0.8, *args[1:]) if args else None


def scale_gradient(module, given, taken):
    return tuple(g if g is None else g * 0.5 for g in given)
'''
WIDTH = 4


@dataclass(frozen=True)
class Layer:
    """How a block gets `h` from `x`: what it makes, what it does."""

    make: str
    do: str


ROWS = [  # x has axes (batch, length, WIDTH)
    Layer("self.lin = nn.Linear(4, 4)", "h = self.lin(x)"),
    Layer("self.lin = nn.Linear(4, 4, bias=False)", "h = F.gelu(self.lin(x))"),
    Layer("self.up = nn.Linear(4, 8)", "a, b = self.up(x).chunk(2, -1); h = F.silu(a) * b"),
    Layer("self.norm = nn.LayerNorm(4); self.lin = nn.Linear(4, 4)", "h = self.lin(self.norm(x))"),
    Layer("self.bn = nn.BatchNorm1d(4)", "h = self.bn(x.reshape(-1, 4)).view(x.shape)"),
    Layer("self.qkv = nn.Linear(4, 12)",
          "q, k, v = self.qkv(x).chunk(3, -1); s = q @ k.mT / 2; "
          "s = s if mask is None else s.masked_fill(mask, -1e4); h = s.softmax(-1) @ v"),
    Layer("self.qkv = nn.Linear(4, 12)",
          "q, k, v = self.qkv(x).view(x.shape[0], x.shape[1], 3, 2, 2).permute(2, 0, 3, 1, 4); "
          "h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)"),
    Layer("self.gru = nn.GRU(4, 4, batch_first=True)", "h = self.gru(x)[0]"),
    Layer("self.cell = nn.GRUCell(4, 4)",
          "s = x.new_zeros(x.shape[0], 4)\n"
          "for t in range(min(x.shape[1], 3)):\n    s = self.cell(x[:, t], s)\n"
          "h = x + s[:, None]"),
    Layer("self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))",
          "h = self.net(x)"),
    Layer("self.lin = nn.Linear(4, 4); self.gain = nn.Parameter(torch.ones(4))",
          "h = self.lin(x).cumsum(1) * self.gain"),
]  # fmt: skip
IMAGES = [  # x has axes (batch, WIDTH, height, width)
    Layer("self.conv = nn.Conv2d(4, 4, 3, padding=1)", "h = F.relu(self.conv(x))"),
    Layer("self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False); self.bn = nn.BatchNorm2d(4)",
          "h = F.relu(self.bn(self.conv(x)))"),
    Layer("self.conv = nn.Conv2d(4, 4, 3, padding=1, groups=4); self.norm = nn.GroupNorm(2, 4)",
          "h = self.norm(self.conv(x))"),
    Layer("self.conv = nn.Conv2d(4, 8, 1)",
          "a, b = self.conv(x).chunk(2, 1); h = torch.sigmoid(a) * b"),
    Layer("self.squeeze = nn.Linear(4, 4)",
          "h = x * torch.sigmoid(self.squeeze(x.mean((2, 3))))[:, :, None, None]"),
]  # fmt: skip

BODY = [  # statements on h and x; a pair is what __init__ makes for it, and the statement
    ("", "h = torch.relu(h)"),
    ("", 'h = getattr(torch, CONFIG["inner"]["act"])(h)'),
    ("", "h = h * SCALE"),
    ("", 'h = h * CONFIG["inner"]["scale"]'),
    ("", "h = h + SETTINGS.shift if SETTINGS.deep else h"),
    ("self.options = SimpleNamespace(scale=SCALE, table={'k': 2.0})",
     "h = h * self.options.scale + self.options.table['k']"),
    ("", "h = soft(h)"),
    ("", "h = mix(h, x)"),
    ("", "if x.shape[1] > 1:\n    h = h - h.mean(1, keepdim=True)\nelse:\n    h = h * 2"),
    ("", "if x.shape[0] > 1:\n    h = h.flip(0)\nelse:\n    h = h + 3"),
    ("", "if x.shape[1] == 0:\n    h = h + 1\nelif x.shape[0] == x.shape[1]:\n    h = -h"),
    ("", "if self.training:\n    h = h * 1.1"),
    ("", "if torch.is_grad_enabled():\n    h = h * 0.9"),
    ("", "h = h * x.shape[0]"),
    ("self.register_buffer('total', torch.zeros(()))", "self.total.add_(x.detach().sum())"),
    ("self.register_buffer('total', torch.zeros(()))",
     "self.total = self.total + 1; h = h + self.total"),
    ("self.register_buffer('mean', torch.zeros(4), persistent=False)",
     "if self.training:\n    self.mean.lerp_(torch.full_like(self.mean, 0.5), 0.1)\n"
     "h = h + self.mean.sum()"),
    ("self.calls = 0", "self.calls += 1"),
    ("self.calls = 0", "self.calls += 1; h = h * (1 + self.calls % 2)"),
    ("self.seen = []", "self.seen.append(tuple(x.shape))"),
    ("self.last = None", "self.last = h.detach()"),
    ("", "LOG.append(('block', x.shape[1], self.training))"),
    ("", "h = F.dropout(h, 0.3, self.training)"),
    ("self.drop = nn.Dropout(0.4)", "h = self.drop(h)"),
    ("", "h = h + 0.1 * torch.rand_like(h)"),
    ("", "h = h.clone(); h.mul_(0.5)"),
    ("", "h = h + 0; h[:, :1] = 0"),
    ("", "h = h + 0; h.transpose(0, 1).add_(1.0)"),
    ("", "h = h.transpose(0, 1).contiguous().transpose(0, 1)"),
    ("", "h = h[:, :1].expand_as(h)"),
    ("", "if h.requires_grad:\n    h.register_hook(halve)"),
    ("", "with torch.no_grad():\n    h = h + x.sum()"),
    ("", "h = h.detach() + h * 0.5"),
    ("", "if cache is not None:\n    cache.copy_(h.detach().sum()); h = h + cache.sum()"),
    ("", "if cache is not None:\n    cache.add_(1.0)"),
    ("", "h = h.sort(-1).values"),
    ("", "h = torch.where(h > 0, h, x)"),
    ("", "h = h.to(x.dtype)"),
]  # fmt: skip
RARE = [
    ("", "if h.sum() > 0:\n    h = h + 1"),
    ("", "x.mul_(0.9)"),
    ("", "h = h + x.sum().item() * 0.01"),
    ("", "torch._dynamo.graph_break()"),
]
RETURNS = {  # what a block gives, and how its caller gets the main part of it
    "x + h": "{}",
    "h": "{}",
    "x": "{}",
    "h if x.shape[0] > 2 else x + h": "{}",
    "Pair(x + h, h.sum())": "{}.main",
    "Result(h, [x, None])": "{}.main",
    "{'main': h, 'size': x.shape[0]}": "{}['main']",
    "(h, x.transpose(0, 1))": "{}[0]",
}

AROUND = [  # a call of a block, C, on x
    "x = C",
    "x = C",
    "x = C",
    "with torch.no_grad():\n    x = C",
    "with torch.no_grad():\n    y = C\nx = x + y",
    "with torch.inference_mode():\n    y = C\nx = x + y",
    "with torch.enable_grad():\n    x = C",
    "with torch.autocast('cpu', dtype=torch.bfloat16):\n    x = C\nx = x.to(dtype)",
    "with torch.autocast('cpu', enabled=False):\n    x = C",
    "x = C.detach()",
    "x = C + 0\nx.detach_()",
    "x = C\nif x.requires_grad:\n    x.register_hook(lambda g: g * 2)",
    "x = C\naside.append(x.mean())",
    "x = C + 0\nx.add_(0.5)",
    "x = x.transpose(0, 1)\nx = C\nx = x.transpose(0, 1)",
    "z = x\nx = x[:, :1]\nx = z + C",
    "z = x\nx = x[:, :0]\nx = z + C.sum()",
    "z = x\nx = x[:, :1].expand_as(z)\nx = z + C",
    "if x.shape[0] > 2:\n    x = C",
    "if self.flag:\n    x = C",
    "for _ in range(2):\n    x = C",
    "x = C + C",
    "x = checkpoint(lambda x: C, x, use_reentrant=False)",
    "x = checkpoint(lambda x: F.dropout(C, 0.4), x, use_reentrant=False)",
    "LOG.append(tuple(x.shape))\nx = C",
    "try:\n    x = C\nfinally:\n    LOG.append('done')",
]
WRITES = ("self.total", "self.mean", "self.calls", "self.seen", "self.last", "LOG.", "cache.",
          "_hook", "x.mul_", "self.bn")  # fmt: skip
RESULTS = [
    "x",
    "x, aside",
    "{'x': x, 'aside': aside, 'none': None}",
    "Pair(x, aside)",
    "Result(x, given)",
    "[x, x.shape[0]]",
    "x, x[:, :1]",
    "x.transpose(0, 1)",
    "x.detach(), x",
]

EDITS = [
    "model.train()",
    "model.eval()",
    "part(model, {k}).eval()",
    "replace(model, {k})",
    "freeze(model, {k})",
    "adapt(model, {k})",
    "SCALE = {f}",
    'CONFIG["inner"]["scale"] = {f}',
    'CONFIG["inner"]["act"] = "relu"',
    'CONFIG["inner"] = {{"scale": {f}, "act": "sigmoid"}}',
    "SETTINGS.shift = {f}",
    "SETTINGS.deep = not SETTINGS.deep",
    "[setattr(m.options, 'scale', {f}) for m in model.modules() if hasattr(m, 'options')]",
    "[m.options.table.update(k={f}) for m in model.modules() if hasattr(m, 'options')]",
    "soft = torch.tanh",
    "HOOKS.append(part(model, {k}).register_forward_hook(report))",
    "HOOKS.append(part(model, {k}).register_forward_hook(scale_result))",
    "HOOKS.append(part(model, {k}).register_forward_pre_hook(scale_argument))",
    "HOOKS.append(model.blocks[{i}].register_forward_hook(scale_result))",
    "HOOKS.append(model.blocks[{i}].register_forward_pre_hook(scale_argument))",
    "HOOKS.append(part(model, {k}).weight.register_hook(halve) "
    "if getattr(part(model, {k}), 'weight', None) is not None "
    "and part(model, {k}).weight.requires_grad else model.register_forward_hook(report))",
    "HOOKS.append(model.register_forward_hook(report))",
    "HOOKS.append(nn.modules.module.register_module_forward_hook(report_inner))",
    "if HOOKS:\n    HOOKS.pop().remove()",
    "model.blocks[{i}] = copy.deepcopy(model.blocks[{i}])",
    "model.flag = not model.flag",
    "descend(model)",
    "model.zero_grad()",
    "model.load_state_dict({{k: v * 0.5 for k, v in model.state_dict().items()}}, strict=False)",
    "model.load_state_dict({{k: v * 1 for k, v in model.state_dict().items()}}, "
    "strict=False, assign=True)",
    "model.to(torch.float64)",
    "model = run.copy()",
]  # fmt: skip
CALLED = [  # modes of a call
    "nullcontext()",
    "nullcontext()",
    "nullcontext()",
    "torch.no_grad()",
    "torch.inference_mode()",
    "torch.autocast('cpu', dtype=torch.bfloat16)",
]


def indent(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else "" for line in text.split("\n"))


def statements(text: str) -> str:
    """One statement a line, where `; ` stands between some."""
    lines = text.split("\n")
    return "\n".join(
        " " * (len(line) - len(line.lstrip())) + part
        for line in lines
        for part in line.strip().split("; ")
    )


@dataclass
class Block:
    """A class of blocks that was drawn: its name, text and how its result is taken apart."""

    name: str
    text: str
    take: str


class Grammar:
    """What is drawn from one seed."""

    def __init__(self, seed: int, small: bool) -> None:
        self.seed, self.small = seed, small
        self.random = random.Random(seed)
        self.images = self.random.random() < 0.25
        self.double = self.random.random() < 0.3

    def source(self) -> str:
        """The text of the draw."""
        choice = self.random.choice
        count = self.random.choice([1, 1] if self.small else [1, 1, 2, 2, 3])
        blocks: list[Block] = []
        for i in range(count):
            blocks.append(self.block(f"Block{i}", blocks))
        if self.random.random() < 0.3:
            blocks += self.factory(blocks)
        chosen = [
            self.random.choice(blocks) for _ in range(2 if self.small else choice([2, 2, 3, 4]))
        ]
        if self.random.random() < 0.6:
            chosen = [chosen[0], chosen[0], *chosen[2:]]
        calls = [self.call() for _ in range(choice([1, 2, 2] if self.small else [2, 3, 3, 4]))]
        again = 0.7 if self.small else 0.5  # tracing open sizes is the dear part of a draw
        steps = [
            self.step(
                i, call, len(chosen), first=calls[0] if self.random.random() < again else None
            )
            for i, call in enumerate(calls)
        ]
        names = sorted({b.name for b in chosen})
        mark = choice([f"[{', '.join(names)}]"] * 3 + ['"auto"', names[0]])
        closed = ["{}"] * (6 if self.small else 2)
        dynamic = choice([*closed, '{0: "batch"}', '{0: "batch", 1: "length"}'])
        if self.images:
            dynamic = self.random.choice(["{}", '{0: "batch"}'])
        return "\n\n\n".join([
            f"# draw {self.seed}{PREAMBLE}"
            + "\n\ndef report_inner(module, args, out):\n"
            + "    if not type(module).__module__.startswith(('ingot.', 'torch._dynamo')):\n"
            + "        LOG.append(type(module).__name__)",
            *(b.text for b in blocks),
            self.model(chosen),
            f"BLOCKS = {mark}\nDYNAMIC = {dynamic}",
            "def example():\n"
            + indent(f"{calls[0].inputs}\nreturn {calls[0].keywords}", 4),
            *steps,
        ])  # fmt: skip

    def block(self, name: str, earlier: list[Block], act: bool = False) -> Block:
        """A class of blocks; `act` if it applies a class attribute."""
        draw = self.random
        layer = draw.choice(IMAGES if self.images else ROWS)
        body = draw.sample(BODY, draw.choice([0, 1, 1, 2, 2, 3]))
        if draw.random() < 0.12:
            body.append(draw.choice(RARE))
        made, done = [layer.make], [layer.do]
        for make, do in body:
            made += [make] if make else []
            done.append(do)
        if act:
            done.append("h = self.ACT(h)")
        inner = [b for b in earlier if b.take == "{}"]
        if inner and draw.random() < 0.4:
            made.append(f"self.inner = {draw.choice(inner).name}()")
            done.insert(draw.choice([1, len(done)]), "h = self.inner(h)")
        gives = draw.choice(["x + h"] * 6 + list(RETURNS))
        text = f"class {name}(nn.Module):\n"
        text += "    ACT = act\n\n" if act else ""
        text += "    def __init__(self):\n        super().__init__()\n"
        text += indent(statements("\n".join(made)), 8)
        text += "\n\n    def forward(self, x, mask=None, *, cache=None):\n"
        text += indent(statements("\n".join(done)), 8) + f"\n        return {gives}"
        return Block(name, text, RETURNS[gives])

    def factory(self, earlier: list[Block]) -> list[Block]:
        """Two classes of one function, which differ in a class attribute."""
        block = self.block("Made", [], act=True)
        text = "def make(act):\n" + indent(block.text, 4) + "\n\n    return Made"
        acts = self.random.choice([("torch.tanh", "torch.relu"), ("torch.sin", "torch.sigmoid")])
        text += f"\n\n\nMadeA = make({acts[0]})\nMadeB = make({acts[1]})"
        return [Block("MadeA", text, block.take), Block("MadeB", "", block.take)]

    def model(self, chosen: list[Block]) -> str:
        """The model that has these blocks in a row."""
        draw = self.random
        made = f"self.blocks = nn.ModuleList([{', '.join(b.name + '()' for b in chosen)}])"
        made += "\nself.flag = True"
        same = [i for i, b in enumerate(chosen) if b.name == chosen[0].name and i]
        if same and draw.random() < 0.25:
            made += draw.choice([
                f"\nself.blocks[{same[0]}] = self.blocks[0]",
                f"\ntie(self.blocks[{same[0]}], self.blocks[0])",
            ])  # fmt: skip
        body = "aside = []\ngiven = x\ndtype = x.dtype\n"
        shape = "x.shape[0], 3" + (", 1, 1, 1" if self.images else ", 1, 1")
        body += f"cache = x.new_zeros({shape}) if cache is None else cache\n"
        for i, block in enumerate(chosen):
            call = f"self.blocks[{i}]({draw.choice(['x', 'x', 'x, mask=mask', 'x=x'])}"
            call += draw.choice(["", "", f", cache=cache[:, {min(i, 2)}]"]) + ")"
            around = draw.choice(AROUND) if draw.random() < 0.5 else "x = C"
            if "checkpoint" in around and any(w in b.text for b in chosen for w in WRITES):
                around = "x = C"  # Dynamo refuses to write in what is computed twice
            body += around.replace("C", block.take.format(call)) + "\n"
        body += f"return {draw.choice(RESULTS)}"
        return (
            "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            + indent(made, 8)
            + "\n\n    def forward(self, x, mask=None, cache=None):\n"
            + indent(body, 8)
        )

    def call(self) -> "Call":
        """Inputs of a call, and how they are passed."""
        draw = self.random
        batch, length = draw.choice([2, 2, 3, 3, 5, 1, 0]), draw.choice([3, 3, 4, 2, 6, 1, 1, 0])
        dtype = "torch.float64" if self.double else "torch.float32"
        if self.images:
            length = max(length, 1)
            made = draw.choice([
                f"torch.randn({batch}, 4, {length}, 3)",
                f"torch.randn({batch}, 4, {length}, 3).to(memory_format=torch.channels_last)",
                f"torch.randn({batch}, 4, 3, {length}).transpose(2, 3)",
            ])  # fmt: skip
        else:
            made = draw.choice([
                f"torch.randn({batch}, {length}, 4)",
                f"torch.randn({batch}, {length}, 4)",
                f"torch.randn({length}, {batch}, 4).transpose(0, 1)",
                f"torch.randn(1, {length}, 4).expand({batch}, -1, -1)",
                f"torch.randn({batch}, {length}, 8)[..., ::2]",
            ])  # fmt: skip
        inputs = f"x = {made}.to({dtype})"
        if draw.random() < 0.4:
            inputs += ".requires_grad_()"
        passed = ["x=x"]
        if not self.images and draw.random() < 0.3:
            inputs += f"\nmask = torch.rand({length}, {length}) > 0.7"
            passed.append("mask=mask")
        if draw.random() < 0.3:
            shape = f"{batch}, 3" + (", 1, 1, 1" if self.images else ", 1, 1")
            inputs += f"\ncache = torch.zeros({shape}).to({dtype})"
            passed.append("cache=cache")
        draw.shuffle(passed)
        return Call(inputs, f"dict({', '.join(passed)})", draw.choice(CALLED))

    def step(self, number: int, call: "Call", blocks: int, first: "Call | None") -> str:
        """A function that edits and calls, maybe with the inputs of the first call."""
        draw = self.random
        inputs, keywords = (first or call).inputs, (first or call).keywords
        edits = draw.sample(EDITS, draw.choice([0, 1, 1, 2])) if number else []
        filled = [
            e.format(k=draw.randrange(20), i=draw.randrange(blocks), f=draw.choice([0.5, 2.0, 3.0]))
            for e in edits
        ]
        doubled = self.double or any("float64" in e for e in filled)
        if any("model.to" in e for e in filled):
            self.double = True
        if doubled:
            inputs = inputs.replace("float32", "float64")
        how = draw.choice(["fast(**given)", "fast(**given)", "fast(given.pop('x'), **given)"])
        body = "\n".join([
            "global SCALE, soft", "model = run.model", *filled, "fast = run.fast",
            "torch.manual_seed(7)", inputs, f"given = {keywords}", "named = dict(given)",
            f"with {call.mode}:", f"    out = {how}", "run.record(out, named, LOG)",
        ])  # fmt: skip
        return f"def step_{number}(run):\n" + indent(body, 4)


@dataclass(frozen=True)
class Call:
    """A call that was drawn: lines that make inputs, how they are passed, and in what mode."""

    inputs: str
    keywords: str
    mode: str


@dataclass
class Run:
    """A module that a text is played with, and what its steps left behind."""

    model: Any
    fast: Any
    records: list[Any] = field(default_factory=list)

    def copy(self) -> Any:
        """Go on with a deep copy."""
        self.fast = copy.deepcopy(self.fast)
        self.model = getattr(self.fast, "module", self.fast)
        return self.model

    def record(self, out: Any, given: dict[str, Tensor], log: list[Any]) -> None:
        """Describe a result, go backward, and describe all that a call may have changed."""
        made = {"out": describe(out, given), "around": surroundings()}
        loss = weighted(out)
        if loss is not None and loss.requires_grad:
            loss.backward()
        gradients = {k: None if t.grad is None else t.grad.clone() for k, t in given.items()}
        self.records.append(made | {"given": describe(given), "gradients": gradients,
                                    "state": state(self.model), "log": list(log)})  # fmt: skip


Compiler = Callable[[nn.Module, Any, Any, dict[int, str]], nn.Module]


def play(text: str, name: str, compiler: Compiler | None = None) -> list[Any]:
    """The records of the steps of a text; the last may be that of an error."""
    space = types.ModuleType(name)
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(keepends=True), f"<{name}>")
    sys.modules[name] = space
    exec(compile(text, f"<{name}>", "exec"), space.__dict__)
    torch.manual_seed(1)
    model = space.Model()
    if "torch.float64" in text.split("def step_1")[0].split("def example")[1]:
        model.double()
    run = Run(model, model)
    try:
        if compiler is not None:
            run.fast = compiler(model, space.example(), space.BLOCKS, space.DYNAMIC)
        for i in range(99):
            step = getattr(space, f"step_{i}", None)
            if step is None:
                break
            step(run)
    except IngotError as error:
        run.records.append({"refused": error})
    except Exception as error:
        run.records.append({"raised": error})
    finally:
        for hook in space.HOOKS:
            hook.remove()
        torch.set_grad_enabled(True)
        linecache.cache.pop(f"<{name}>", None)
        del sys.modules[name]
    return run.records


def draw(seed: int, *, small: bool = False) -> str:
    """The source text of a seed; a small one has two blocks and two calls."""
    return Grammar(seed, small).source()
