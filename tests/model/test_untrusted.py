"""Python of an untrusted file computes tensors, and does nothing else."""

import random
import resource
import threading
import time
from pathlib import Path

import pytest
import torch

from ingot.drivers import build_driver
from ingot.errors import IngotError
from ingot.hit import read, read_text
from ingot.model import Factory, Tensors
from ingot.model.untrusted import MAX_SECONDS
from ingot.types import Value


def tensors(*, untrusted: bool = True, **expressions: str) -> Tensors:
    blocks = [f"[{n}]\ntype = Python\nexpr = '''{e}'''\n[]" for n, e in expressions.items()]
    return Tensors(read_text("\n".join(["[Tensors]", *blocks, "[]"])), untrusted=untrusted)


HOSTILE = {
    # reaching the interpreter
    "import": '__import__("os").system("touch stolen")',
    "import statement": 'import os\nresult = os.system("touch stolen")',
    "from import": 'from os import system\nresult = system("touch stolen")',
    "eval": 'eval("1")',
    "exec": 'exec("result = 1")',
    "open": 'open("stolen", "w")',
    "compile": 'compile("1", "x", "eval")',
    "getattr": 'getattr(torch, "load")',
    "globals": "globals()",
    "vars": "vars(torch)",
    "type": "type(torch)",
    "builtins": "__builtins__",
    "input": "input()",
    "breakpoint": "breakpoint()",
    "print": 'print("x")',
    # attributes
    "class": "().__class__.__bases__[0].__subclasses__()",
    "class of a tensor": "torch.tensor(1.0).__class__",
    "class of a number": "(1).__class__",
    "class of a kind": "Scalar.__init__.__globals__",
    "mro": "Scalar.mro()",
    "function globals": "torch.stack.__globals__",
    "lambda globals": "(lambda: 1).__globals__",
    "lambda code": "(lambda: 1).__code__",
    "generator frame": "(x for x in [1]).gi_frame",
    "string format": '"{0.__class__}".format(1)',
    "f-string": 'f"{torch.__file__}"',
    "torch load": 'torch.load("x.pt")',
    "torch save": 'torch.save(1, "stolen")',
    "torch hub": 'torch.hub.load("a/b", "c")',
    "torch jit": 'torch.jit.load("x.pt")',
    "torch library": 'torch.ops.load_library("x.so")',
    "torch classes": 'torch.classes.load_library("x.so")',
    "torch utils": 'torch.utils.cpp_extension.load(name="x", sources=[])',
    "torch serialization": "torch.serialization",
    "torch sys": "torch.sys",
    "torch os": "torch.os",
    "torch nn": "torch.nn.Module",
    "torch functional": "torch.nn.functional.math",
    "torch default": "torch.set_default_dtype(torch.float32)",
    "torch seed": "torch.manual_seed(0)",
    "torch threads": "torch.set_num_threads(1)",
    "torch from file": 'torch.from_file("/etc/passwd", size=10)',
    "numpy": 'np.load("x.npy", allow_pickle=True)',
    "numpy file": 'np.fromfile("/etc/passwd")',
    "tensor storage": "torch.ones(2).data_ptr()",
    "tensor numpy": 'torch.ones(2).numpy().tofile("stolen")',
    "tensor apply": "torch.ones(2).apply_(lambda x: x)",
    "tensor hook": "torch.ones(2).register_hook(lambda x: x)",
    "tensor in place": "torch.ones(2).resize_(10)",
    "tensor reduce": "torch.ones(2).__reduce_ex__(2)",
    "module of math": "math.__loader__",
    "sub of kind": "Scalar.__subclasses__()",
    "method function": "torch.ones(1).sum.__self__",
    # syntax
    "walrus": "[y := 1, y]",
    "generator": "sum(x for x in [1])",
    "dict": "{1: 2}",
    "set": "{1, 2}",
    "set comprehension": "{x for x in [1]}",
    "dict comprehension": "{x: x for x in [1]}",
    "nested comprehension": "[1 for x in range(100000) for y in range(100000)]",
    "while": "while True: pass\nresult = 1",
    "for": "for i in [1]: pass\nresult = 1",
    "def": "def f(): return 1\nresult = f()",
    "class statement": "class A: pass\nresult = 1",
    "with": 'with open("stolen", "w") as f: pass\nresult = 1',
    "try": "try:\n    1\nexcept Exception: pass\nresult = 1",
    "del": "del torch\nresult = 1",
    "global": "global x\nx = 1\nresult = x",
    "yield": "(yield 1)",
    "await": "await x",
    "assign attribute": "torch.x = 1\nresult = 1",
    "assign item": "x = [1]\nx[0] = 2\nresult = 1",
    "augmented": "x = 1\nx += 1\nresult = x",
    "star keywords": 'torch.ones(2, **{"out": 1})',
    "out": "torch.ones(2, out=torch.ones(2))",
    "device": 'torch.ones(2, device="cuda")',
    "bytes": 'b"abc"',
    "complex": "1j",
    "lambda default": "(lambda x=1: x)()",
    # size, powers, time
    "power tower": "10**10**10",
    "power": "9**9**9",
    "product": "(2**900) * (2**900)",
    "long string": '"a" * 10**9',
    "long list": "[0] * 10**9",
    "list of lists": "torch.tensor([[0.0] * 50000] * 50000)",
    "shared lists": "x = [1.0, 1.0]\n" + "x = [x, x]\n" * 60 + "result = torch.tensor(x)",
    "range": "[i for i in range(10**9)]",
    "ones": "torch.ones(10**12)",
    "ones of two": "torch.ones(10**5, 10**5)",
    "zeros": "torch.zeros((10**6, 10**6))",
    "linspace": "torch.linspace(0, 1, 10**11)",
    "logspace": "torch.logspace(0, 1, 10**11)",
    "arange": "torch.arange(0, 1e12)",
    "eye": "torch.eye(10**6)",
    "full": "torch.full((10**12,), 1.0)",
    "rand": "torch.rand(10**12)",
    "expand": "torch.ones(1).expand(10**12).contiguous()",
    "repeat": "torch.ones(10).repeat(10**11)",
    "outer product": "torch.ones(10**6, 1) * torch.ones(10**6)",
    "matrix product": "torch.ones(10**6, 1) @ torch.ones(1, 10**6)",
    "outer": "torch.outer(torch.ones(10**6), torch.ones(10**6))",
    "pad": "torch.nn.functional.pad(torch.ones(1), (10**12, 0))",
    "stack": "torch.stack([torch.ones(10**6)] * 1000)",
    "many": "[torch.ones(10**6) for i in range(10000)]",
    "kind": "Scalar.zeros(10**12)",
    "kind product": "Scalar(torch.ones(10**6, 1)) * Scalar(torch.ones(10**6))",
    "kind expand": "Scalar(1.0).dynamic_batch.expand(10**12)",
    "kind linspace": "linspace(Scalar(0.0).dynamic_batch, Scalar(1.0).dynamic_batch, 10**11)",
    "kind fill": "SR2.fill(Scalar(torch.ones(10**6, 1)), Scalar(torch.ones(10**6)), 0.0)",
    "tensor of tensor": "torch.tensor([torch.ones(10**6)])",
    "iterate": "[x for x in torch.ones(10**7)]",
    "index": "torch.ones(10**6)[[0] * 90000, :]",
    "meshgrid": "torch.meshgrid(torch.ones(10**6), torch.ones(10**6), indexing='ij')",
    "rounding": "round(10, -10**9)",
    "recursion": "(lambda f: f(f))(lambda f: f(f))",
    "named recursion": "f = lambda x: f(x) + f(x)\nresult = f(1)",
    "deep": "[" * 150 + "1" + "]" * 150,
    "deep signs": "-" * 50000 + "1",
    "deep sum": "+".join(["1"] * 20000),
    "long": "[" + "1.0, " * 100000 + "]",
    "steps": "[[j for j in range(10000)] for i in range(10000)]",
    "a function": "torch.ones",
    "a module": "torch",
    "a lambda": "lambda x: x",
    "a text": '"abc"',
    "a list": "[1.0]",
    "nothing": "",
    "unknown": "nobody",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_python_is_refused_in_bounds(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    tree = read_text("[Tensors]\n[x]\ntype = Python\nexpr = x\n[]\n[]")
    found = Tensors(tree, untrusted=True)
    block = tree.require("Tensors", "x")
    with pytest.raises(IngotError) as caught:
        found._expression(block, text)
    (problem,) = caught.value.problems
    assert problem.code in ("untrusted-code", "tensor-expression")
    assert time.monotonic() - start < MAX_SECONDS + 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_500_000  # kB
    assert list(tmp_path.iterdir()) == []


def test_the_time_of_all_expressions_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingot.model.untrusted.MAX_SECONDS", 0.001)
    busy = "[torch.ones(100000).exp().sum().item() for i in range(60)][0]"
    found = tensors(**{f"x{i}": busy for i in range(50)})
    with pytest.raises(IngotError, match=r"takes more than 0\.001 s"):
        for i in range(50):
            found[f"x{i}"]


def test_references_share_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingot.model.untrusted.MAX_TOTAL", 1000)
    chain = {f"x{i}": f"x{i + 1} + torch.ones(100)" for i in range(9)}
    with pytest.raises(IngotError, match="more than 1000 numbers in all"):
        tensors(**chain, x9="torch.ones(100)")["x0"]


def test_published_expressions_give_the_same_numbers(cases: Path) -> None:
    """Of 395 expressions of the published cases all run, and give what trusted ones give."""
    count = 0
    for file in sorted(cases.parent.rglob("*.i")):
        try:
            tree = read(file)
        except IngotError:
            continue  # a kind of file that is read otherwise
        trusted, bounded = Tensors(tree), Tensors(tree, untrusted=True)
        for block in (b for part in tree.section("Tensors") for b in part.blocks):
            if block.type == "Python":
                assert_same(bounded[block.name], trusted[block.name])
                count += 1
    assert count > 300


LAWFUL = ("round(2.5)", "round(10, -1)", "round(0.123456, 3)", "len([1, 2])", "min(3, 1.5)",
          "2**10 % 7",
          "[x * y for x, y in zip([1, 2], [3, 4]) if x > 1][0]", "(lambda a, b: a / b)(1, 4)",
          "max([i for i, _ in enumerate([0.0] * 4)])", "3 if 2 < 1 else 4",
          "torch.ones(2, 3)[..., 1:].sum()",
          "Scalar([1.0, 2.0]).dynamic_batch.expand(3, 2).dynamic_batch[0]",
          "float(torch.tensor(2.0))",
          "torch.stack([*[torch.ones(2)] * 3])", "math.hypot(3, 4)")  # fmt: skip


@pytest.mark.parametrize("text", LAWFUL)
def test_lawful_python_gives_what_python_gives(text: str) -> None:
    found, wanted = (tensors(x=text, untrusted=untrusted)["x"] for untrusted in (True, False))
    if isinstance(wanted, int | float):
        assert (type(found), found) == (type(wanted), wanted)
    else:
        assert_same(found, wanted)


def assert_same(found: object, wanted: object) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, Value):
        assert isinstance(found, Value)
        assert found.sub == wanted.sub
        found, wanted = found.data, wanted.data
    assert isinstance(found, torch.Tensor)
    assert isinstance(wanted, torch.Tensor)
    assert found.dtype == wanted.dtype
    assert torch.allclose(found, wanted, rtol=0, atol=0, equal_nan=True)


ATOMS = ("torch.arange(1, 4)", "torch.tensor([1.0, 2.0, 3.0])", "torch.tensor([1, 2, 3])", "2",
         "0.5", "torch.ones(3, 3)", "torch.linspace(0, 1, 3)", "torch.full((3,), 2)",
         "torch.full((3,), 0.1)",
         "torch.eye(3)", "torch.tensor([1.0, 2.0, 3.0], dtype=torch.float32)",
         "torch.rand(3, generator=torch.Generator().manual_seed(1))",
         "torch.where(torch.arange(3) > 1, -1.0, 1.0)")  # fmt: skip
FORMS = ("({} + {})", "({} * {})", "({} / ({} + 7))", "({} - {})",
         "torch.sqrt(0 * torch.arange(3) + {} + {})",
         "torch.exp(-torch.abs(0 * torch.arange(3) + {} + {}))",
         "(0 * torch.arange(3) + {} + {}).sum()",
         "torch.maximum(torch.zeros(3) + {}, torch.zeros(3) + {})")  # fmt: skip


def random_expression(draw: random.Random, depth: int) -> str:
    if depth == 0:
        return draw.choice(ATOMS)
    left, right = (random_expression(draw, draw.randrange(depth)) for _ in range(2))
    return draw.choice(FORMS).format(left, right)


def test_numbers_are_float64_as_under_torchs_default_but_in_this_thread_alone() -> None:
    """Random expressions against Python itself under torch's global default."""
    draw = random.Random(4)
    texts = [f"torch.as_tensor({random_expression(draw, 3)})" for _ in range(300)]
    torch.set_default_dtype(torch.float64)
    try:
        wanted = [eval(text, {"torch": torch}) for text in texts]
    finally:
        torch.set_default_dtype(torch.float32)
    seen: list[torch.dtype] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(torch.ones(1).dtype)
            time.sleep(0.001)

    other = threading.Thread(target=watch)
    other.start()
    try:
        for untrusted in (False, True):
            for text, value in zip(texts, wanted, strict=True):
                assert_same(tensors(x=text, untrusted=untrusted)["x"], value)
    finally:
        over.set()
        other.join()
    assert set(seen) == {torch.float32}


NATIVE = "[Models]\n[m]\ntype = AOTIModel\nartifact_path = aoti/m\n[]\n[]"


def test_a_compiled_package_is_not_opened() -> None:
    with pytest.raises(IngotError, match=r"untrusted-code.*native code is not run"):
        Factory(read_text(NATIVE), untrusted=True).model("m")
    with pytest.raises(IngotError, match=r"no-package|file-not-found|there is no"):
        Factory(read_text(NATIVE)).model("m")


def test_a_result_is_not_written_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = """
[Tensors]
  [t]
    type = Python
    expr = 'Scalar(torch.arange(3.0))'
  []
[]
[Models]
  [m]
    type = ScalarVariableRate
    variable = 't'
  []
[]
[Drivers]
  [d]
    type = TransientDriver
    model = 'm'
    prescribed_time = 't'
    save_as = '{}'
  []
[]
"""
    for place in ("/elsewhere/stolen.pt", "../stolen.pt", "a/../../stolen.pt"):
        with pytest.raises(IngotError, match="outside of the working folder"):
            build_driver(read_text(text.format(place)), "d", untrusted=True)
    build_driver(read_text(text.format("here.pt")), "d", untrusted=True)
    build_driver(read_text(text.format("../stolen.pt")), "d")


def test_a_reference_of_code_is_not_opened(tmp_path: Path) -> None:
    from ingot.drivers.regression import read_stored

    class Held(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("x", torch.ones(2))

    torch.jit.script(Held()).save(str(tmp_path / "old.pt"))  # pyright: ignore
    span = read_text("[a]\n[]").blocks[0].span
    assert list(read_stored(tmp_path / "old.pt", span)) == ["x"]
    with pytest.raises(IngotError, match="unreadable-reference"):
        read_stored(tmp_path / "old.pt", span, untrusted=True)
