"""What C++ refuses it refuses in Python's words: spoiled packages, stubs and calls."""

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

import ingot
from benchmarks import cpp_tables
from ingot import IngotError
from ingot.execute import Transient
from ingot.options import Range
from ingot.package.metadata import Metadata, ParameterInfo, SolverInfo
from ingot.package.seal import seal, write_sealed
from ingot.runtime.loader import metadata_of
from tests import packages
from tests.cpp.host import Host, Refused, build, needs_compiler
from tests.packages import inputs_of

Meta = dict[str, Any]


def test_the_tables_of_cpp_are_those_of_python() -> None:
    """`python -m benchmarks.cpp_tables` prints them anew."""
    assert cpp_tables.FILE.read_text() == cpp_tables.write_tables()


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    running = Host(build("driver.cpp"))
    yield running
    running.close()


def told(call: Callable[[], object]) -> str:
    """The text of a refusal, here or there."""
    with pytest.raises((IngotError, Refused)) as refused:
        call()
    return str(refused.value)


def told_or_done(call: Callable[[], object]) -> str:
    """The same, or nothing where nothing was refused."""
    try:
        call()
    except (IngotError, Refused) as refused:
        return str(refused)
    return ""


def copied(made: packages.Made, folder: Path, edit: Callable[[Metadata], Metadata]) -> Path:
    """A copy of a package with other metadata, whole: its sources carry the contract of that."""
    shutil.copytree(made.folder, folder)
    meta, _ = metadata_of(folder, "cpu")
    file = folder / f"{meta.name}_meta.json"
    file.unlink()
    write_sealed(edit(meta), file)
    return folder


def changed(edit: Callable[[Meta], object]) -> Callable[[Path], None]:
    """Metadata edited and sealed again."""

    def spoil(folder: Path) -> None:
        (file,) = folder.glob("*_meta.json")
        meta = json.loads(file.read_bytes())
        edit(meta)
        text = json.dumps(meta, indent=1).encode()
        file.write_bytes(seal(text) or text)

    return spoil


def rewritten(edit: Callable[[bytes], bytes], pattern: str = "*_meta.json") -> Callable[..., None]:
    """A file with other bytes."""

    def spoil(folder: Path) -> None:
        file = sorted(folder.glob(pattern))[0]
        file.write_bytes(edit(file.read_bytes()))

    return spoil


def link(folder: Path) -> None:
    file = sorted(folder.glob("*.so"))[0]
    other = folder.parent / "elsewhere.so"
    shutil.move(file, other)
    file.symlink_to(other)


def doubled(folder: Path) -> None:
    (file,) = folder.glob("*_meta.json")
    shutil.copy(file, folder / "other_meta.json")


def set_at(*path: Any) -> Callable[[Path], None]:
    """The last of these put where the others lead."""
    *keys, last, value = path

    def edit(meta: Meta) -> None:
        at: Any = meta
        for key in keys:
            at = at[key]
        if value is None and last not in ("kernel", "header"):
            del at[last]
        else:
            at[last] = value

    return changed(edit)


SPOILED: dict[str, Callable[[Path], object]] = {
    "newer schema": set_at("schema_version", 99),
    "older schema without a command": changed(
        lambda m: m.update(schema_version=1, origin={"command": ""})
    ),
    "schema in words": set_at("schema_version", "4"),
    "no schema": set_at("schema_version", None),
    "another format": set_at("format", "other"),
    "a list": lambda f: next(f.glob("*_meta.json")).write_text("[]"),
    "empty": rewritten(lambda text: b""),
    "cut": rewritten(lambda text: text[: len(text) // 2]),
    "no JSON": rewritten(lambda text: text.replace(b":", b";", 1)),
    "a word without quotes": rewritten(lambda text: text.replace(b'"name"', b"name", 1)),
    "a string without an end": rewritten(lambda text: text[: text.index(b'"dtype"') + 4]),
    "behind it": rewritten(lambda text: text + b"x"),
    "edited": rewritten(lambda text: text.replace(b'"float64"', b'"float32"', 1)),
    "no solver of an implicit segment": set_at("solvers", []),
    "a segment of another solve": set_at("segments", 0, "name", "else"),
    "other code": set_at("derivatives", []),
    "unknown key": set_at("more", 1),
    "missing key": set_at("inputs", None),
    "another type": set_at("inputs", 3),
    "a number for a name": set_at("name", 3),
    "another device": set_at("device", "tpu"),
    "a size in words": set_at("inputs", 0, "size", "six"),
    "a size that is no integer": set_at("inputs", 0, "size", 1.5),
    "a size that does not multiply up": set_at("inputs", 0, "size", 17),
    "a kind that is not there": set_at("inputs", 0, "kind", "SR9"),
    "another base": set_at("outputs", 0, "base", [2, 2]),
    "an input twice": changed(lambda m: m["inputs"].append(m["inputs"][0])),
    "a pair of nobody": changed(lambda m: m["derivatives"][0].update(output="nobody")),
    "no backend": set_at("kernel", None),
    "a header for nobody": set_at("kernel", "header", None),
    "more in the kernel": set_at("kernel", "vumat", "x.inc"),
    "a user material that is a number": set_at("kernel", "umat", 3),
    "a user material without its file": set_at("kernel", "umat", "update-umat.inc"),
    "a file outside": set_at("kernel", "source", "../x.cpp"),
    "a digest that is none": changed(lambda m: m["digests"].update(x="zz")),
    "a digest too many": changed(lambda m: m["digests"].update({"x.so": "0" * 64})),
    "a digest too few": changed(lambda m: m["digests"].popitem()),
    "another name": set_at("name", "else"),
    "a file is missing": lambda f: sorted(f.glob("*.so"))[0].unlink(),
    "a source is missing": lambda f: next(f.glob("*.cpp")).unlink(),
    "a file is changed": rewritten(lambda x: x[:-1] + b"\0\1", "*.so"),
    "a file is cut": rewritten(lambda x: x[:100], "*.so"),
    "a link leads out": link,
    "a folder for a file": lambda f: [p.unlink() or p.mkdir() for p in f.glob("*.h")],
    "two metadata": doubled,
    "older than its neighbour": lambda f: (f.parent / ".older").write_text("cpu"),
    "no metadata": lambda f: next(f.glob("*_meta.json")).unlink(),
    "a module of torch": lambda f: next(f.glob("*_meta.json")).rename(f / "graphs.json"),
}


@needs_compiler
@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_package_is_refused_in_the_same_words(
    host: Host, how: str, tmp_path: Path
) -> None:
    folder = tmp_path / "plastic" / "cpu"
    shutil.copytree(packages.plastic().folder, folder)
    ingot.load(folder), host.load(folder)  # it is whole before
    SPOILED[how](folder)
    assert told(lambda: host.load(folder)) == told(lambda: ingot.load(folder))


NUMBERS = (
    0,
    1,
    -1,
    7,
    2**40,
    1.5,
    -0.0,
    1e-5,
    3e22,
    True,
    None,
    "",
    "x",
    "E",
    [],
    {},
    [3],
    {"a": 1},
)


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with every key or place in it."""
    keys: list[Any] = []
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, k) for k in keys] + [spot for k in keys for spot in spots(value[k])]


def spoil_once(dice: random.Random, meta: Meta) -> None:
    """One fault in a document, of any kind and anywhere; some do no harm."""
    at, key = dice.choice(spots(meta))
    how = dice.choice(("put", "remove", "add", "double", "move", "near"))
    if how == "put":
        at[key] = dice.choice(NUMBERS)
    elif how == "remove":
        del at[key]
    elif how == "double" and isinstance(at, list):
        at.insert(dice.randrange(len(at) + 1), at[key])
    elif how == "move" and isinstance(at, dict):
        at[key] = at.pop(key)  # to the end
    elif how == "move":
        dice.shuffle(at)
    elif how == "near" and isinstance(at[key], str):
        at[key] += dice.choice(("", "x", " ", "\u00e9", '"'))
    elif how == "near" and type(at[key]) in (int, float):
        at[key] = type(at[key])(at[key] * dice.choice((0, 1, 2, -1)))
    elif isinstance(at, dict):
        at[dice.choice(("more", "name", "size", "abs_tol", "spellings", "range"))] = dice.choice(
            NUMBERS
        )


def spoil_text(dice: random.Random, text: bytes) -> bytes:
    """A document with some other bytes."""
    at = dice.randrange(4, len(text))  # the first four tell Python the encoding
    end = min(len(text), at + dice.choice((0, 1, 1, 4, 200)))
    words = (
        b"", b'"', b",", b"{", b"]", b"\xff", b"\xc3", b"\xc3\xa9", b"\xe2\x82", b"\\", b"\n",
        b"\0", b"NaN", b"1e999", b"-0", b"0.50", b"1E+2", b"null", b'"name": 3,', b" ",
    )  # fmt: skip
    return text[:at] + dice.choice(words) + text[end:]


@needs_compiler
@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400])
def test_numbers_beyond_range_are_refused_in_the_same_words(
    host: Host, tmp_path: Path, number: str
) -> None:
    folder = tmp_path / "plastic"
    shutil.copytree(packages.plastic().folder, folder)
    (file,) = folder.glob("*_meta.json")
    whole = file.read_bytes()
    for key in ("name", "device", "inputs", "adjoints", "kernel", "digests", "torch_version"):
        text = json.dumps({**json.loads(whole), key: "@"}).replace('"@"', number).encode()
        file.write_bytes(seal(text))
        mine = told(lambda: host.load(folder))
        assert mine == told(lambda: ingot.load(folder)) and "Number out of range" in mine


@needs_compiler
@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_faults_drawn_at_random_are_told_in_the_same_words(
    host: Host, tmp_path: Path, count: int
) -> None:
    """One to three faults at once, in metadata that is sealed again or in its bytes."""
    dice, told_by = random.Random(count), set[str]()
    for name in ("plastic", "trained", "steel"):
        folder = tmp_path / name
        shutil.copytree(getattr(packages, name)().folder, folder)
        (file,) = folder.glob("*_meta.json")
        whole = file.read_bytes()
        for i in range(count // 3):
            meta = json.loads(whole)
            for _ in range(dice.randint(1, 3)):
                spoil_once(dice, meta)
            text = json.dumps(meta, indent=dice.choice((None, 1)), ensure_ascii=dice.random() < 0.5)
            spoiled = text.encode() if i % 4 else spoil_text(dice, whole)
            file.write_bytes(seal(spoiled) or spoiled)
            theirs = told_or_done(lambda at=folder: ingot.load(at))
            mine = told_or_done(lambda at=folder: host.load(at))
            assert mine == theirs, f"{i} of {name}"
            told_by.add(re.sub(r"'[^']*'|`[^`]*`|[0-9]+", "", theirs.partition("\n")[0]))
    assert "" in told_by and len(told_by) > 20  # kinds of faults


@needs_compiler
def test_rules_out_of_range_are_refused_in_the_same_words(host: Host, tmp_path: Path) -> None:
    for name, value in {
        "abs_tol": -1, "max_its": 0, "stop": "never", "linesearch_cutback": 1, "max_its ": 2,
        "linesearch_stopping_criteria": 1,
    }.items():  # fmt: skip
        folder = tmp_path / name.strip() / str(value)
        shutil.copytree(packages.plastic().folder, folder)
        set_at("solvers", 0, name.replace(" ", ""), value if name != "max_its " else 2**40)(folder)
        assert told(lambda at=folder: host.load(at)) == told(lambda at=folder: ingot.load(at))


@needs_compiler
@pytest.mark.parametrize(
    "given",
    [
        {"place": "nowhere"}, {"place": "nowhere.i"}, {"device": "cuda"}, {"device": "tpu"},
        {"dtype": "float32"}, {"backend": "inductor"}, {"device": "gpu"}, {"device": "CPU:1"},
        {"dtype": "float16"}, {"backend": "kernle"}, {"backend": "x", "dtype": "int8"},
    ],
    ids=str,
)  # fmt: skip
def test_what_was_not_compiled_is_refused_in_the_same_words(
    host: Host, given: dict[str, str]
) -> None:
    folder = packages.plastic().folder
    more: dict[str, Any] = {k: v for k, v in given.items() if k != "place"}
    place = given.get("place", folder)
    mine = told(lambda: host.load(place, **more))
    if "dtype" in more:
        more["dtype"] = getattr(torch, more["dtype"])
    assert mine == told(lambda: ingot.load(place, **more))


@needs_compiler
def test_solvers_and_segments_agree_where_they_do_in_python(host: Host, tmp_path: Path) -> None:
    """Segments and solvers drawn at random: some are lawful, and both loaders say of which."""
    dice, texts = random.Random(3), set[str]()

    def edit(meta: Metadata) -> Metadata:
        (segment,), (solver,) = meta.segments, meta.solvers
        drawn = dice.choices(("update", "inner", "other"), k=dice.randint(1, 2))
        segments = tuple(
            msgspec.structs.replace(segment, name=n, kind=dice.choice(("forward", "implicit")))
            for n in drawn
        )
        names = dice.sample(("update", "inner", "other"), k=dice.randint(0, 3))
        solvers: tuple[SolverInfo, ...] = tuple(
            msgspec.structs.replace(solver, name=n) for n in names
        )
        return msgspec.structs.replace(meta, segments=segments, solvers=solvers)

    for i in range(60):
        folder = copied(packages.plastic(), tmp_path / str(i), edit)
        mine = told_or_done(lambda at=folder: host.load(at))
        assert mine == told_or_done(lambda at=folder: ingot.load(at))
        texts.add(mine)
        shutil.rmtree(folder)
    assert "" in texts and any("solvers and implicit segments" in text for text in texts)


@needs_compiler
def test_fields_that_say_nothing_may_stand_there(host: Host, tmp_path: Path) -> None:
    """Python leaves them out of what it digests."""
    folder = tmp_path / "cpu"
    shutil.copytree(packages.elastic().folder, folder)

    def edit(meta: Meta) -> None:
        meta["kernel"]["umat"] = None
        meta["origin"]["laws"] = {}
        for constant in meta["constants"]:
            constant["spellings"] = []

    changed(edit)(folder)
    ingot.load(folder), host.load(folder, backend="kernel")
    changed(lambda m: m["origin"].update(laws={"law.py": "0" * 64}))(folder)
    theirs = told(lambda: ingot.load(folder))
    assert "was compiled with other metadata" in theirs
    assert told(lambda: host.load(folder, backend="kernel")) == theirs


@needs_compiler
def test_names_of_parameters_are_told_as_in_python(host: Host, tmp_path: Path) -> None:
    """Parameters of names drawn at random, asked for by ends of them and by what is close."""
    dice, words = random.Random(5), ("flow", "exponent", "E", "nu", "law", "k")
    texts = set[str]()

    def draw() -> str:
        return ".".join(dice.choices(words, k=dice.randint(1, 4)))

    def edit(meta: Metadata) -> Metadata:
        own = meta.parameters[0]
        names = {draw() for _ in range(dice.randint(2, 40))}
        more = tuple(
            ParameterInfo(
                msgspec.structs.replace(own.variable, name=name), own.value,
                tuple(draw() for _ in range(dice.randint(0, 2))),
            )
            for name in sorted(names)
        )  # fmt: skip
        return msgspec.structs.replace(meta, parameters=(*meta.parameters, *more))

    value = torch.tensor(2.0).double()
    for i in range(6):
        folder = copied(packages.trained(), tmp_path / str(i), edit)
        artifact, model = ingot.load(folder), host.load(folder)
        for word in {*words, *(draw() for _ in range(40)), "exponnt", "floww.E", "", "zzz"}:
            theirs = told_or_done(lambda word=word, a=artifact: a.set_parameter(word, 2.0))
            mine = told_or_done(lambda word=word, m=model: m.call("set", {word: value}))
            assert mine == theirs
            texts.add(mine.partition("]")[0])
    assert texts == {"", "error[ambiguous-parameter", "error[unknown-parameter"}


@needs_compiler
def test_parameters_out_of_range_are_refused_in_the_same_words(host: Host, tmp_path: Path) -> None:
    """Ranges and numbers drawn at random, of any size and sign; Python's own says which lie in."""
    dice, texts = random.Random(7), set[str]()

    def draw() -> float:
        sign, power = dice.choice((-1, 1)), dice.choice((-30, -6, -4, -1, 0, 2, 5, 16, 17, 40))
        return dice.choice((0.0, 1.0, sign * round(dice.random(), dice.randint(1, 17)) * 10**power))

    def draw_range() -> Range:
        return Range(*(draw() if dice.random() < 0.4 else None for _ in range(4)))

    def edit(meta: Metadata) -> Metadata:
        parameters = tuple(msgspec.structs.replace(p, range=draw_range()) for p in meta.parameters)
        return msgspec.structs.replace(meta, parameters=parameters)

    for i in range(12):
        folder = copied(packages.steel(), tmp_path / str(i), edit)
        artifact, model = ingot.load(folder), host.load(folder)
        for info in artifact.metadata.parameters:
            name, own = info.variable.name, info.range
            assert own is not None
            bounds = [x for x in (own.gt, own.ge, own.lt, own.le) if x is not None]
            values: list[Any] = [*bounds, *(draw() for _ in range(9)), float("inf"), float("nan")]
            values += [[draw(), draw()], [draw()], []]
            for value in values:
                given = torch.tensor(value, dtype=torch.float64)
                theirs = told_or_done(lambda n=name, x=given, a=artifact: a.set_parameter(n, x))
                mine = told_or_done(lambda n=name, x=given, m=model: m.call("set", {n: x}))
                assert mine == theirs
                assert bool(theirs) != all(map(own.holds, given.reshape(-1).tolist()))
                texts.add(re.sub(r"[0-9.e+-]+", "", theirs.partition("fix")[0]))
    assert len(texts) > 8


@needs_compiler
@pytest.mark.parametrize(
    "value",
    [
        None, {}, 3, [], "x", {"gt": None}, {"gt": "0"}, {"gt": 0}, {"gt": 0, "more": 1},
        {"lt": True}, {"le": [1]}, {"ge": 1, "le": 0}, {"gt": 0.0, "lt": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_range_is_read_and_digested_as_in_python(
    host: Host, tmp_path: Path, value: object
) -> None:
    folder = tmp_path / "cpu"
    shutil.copytree(packages.steel().folder, folder)
    changed(lambda m: m["parameters"][0].update(range=value))(folder)
    theirs = told_or_done(lambda: ingot.load(folder))
    assert told_or_done(lambda: host.load(folder)) == theirs
    assert bool(theirs) == (value not in ({"gt": 0}, {"gt": 0.0, "lt": None}))  # what it has


X = torch.zeros(2, 6, dtype=torch.float64)
CALLS: dict[str, Callable[[dict[str, Any]], object]] = {
    "misspelt": lambda x: x.update({"plastic_strian~1": x.pop("plastic_strain~1")}),
    "unknown": lambda x: x.update(zzzz=X),
    "missing": lambda x: x.pop("E"),
    "two missing": lambda x: [x.pop("E"), x.pop("t")],
    "another shape": lambda x: x.update(E=X[:, :5]),
    "no shape": lambda x: x.update(E=X[0, 0]),
    "single": lambda x: x.update(t=torch.zeros(2)),
    "whole numbers": lambda x: x.update(t=torch.zeros(2, dtype=torch.int64)),
    "another batch": lambda x: x.update(t=torch.zeros(3, dtype=torch.float64)),
    "all wrong": lambda x: x.update(E=torch.zeros(3), t=torch.zeros(3, dtype=torch.int32), y=X),
}


@needs_compiler
@pytest.mark.parametrize("how", CALLS)
def test_a_wrong_call_is_refused_in_the_same_words(host: Host, how: str) -> None:
    made = packages.plastic()
    artifact, model = ingot.load(made.folder), host.load(made.folder)
    inputs: dict[str, Any] = dict(inputs_of(made, 2))
    CALLS[how](inputs)
    for what in ("forward", "jacobian"):
        theirs = told(lambda what=what: getattr(artifact, what)(inputs))
        assert told(lambda what=what: model.call(what, inputs)) == theirs


@needs_compiler
@pytest.mark.parametrize("name", ["plastic", "decay"])
def test_a_transient_without_an_input_is_refused_in_the_same_words(host: Host, name: str) -> None:
    """Every set of inputs that is left out, beside names and shapes that are wrong."""
    made: packages.Made = getattr(packages, name)()
    artifact = ingot.load(made.folder, backend="kernel")
    model = host.load(made.folder, backend="kernel")
    now = {n: x for n, x in inputs_of(made, 2).items() if "~" not in n}
    whole = {n: x.expand(3, *x.shape).clone() for n, x in now.items()}
    guesses = {u for s in artifact.metadata.solvers for u in s.unknowns}
    assert "t" in whole
    for count in range(2 ** len(whole)):
        given = {n: x for i, (n, x) in enumerate(whole.items()) if count >> i & 1}
        missing = [n for n in whole if n not in given and n not in guesses]
        for more in ({}, {"tt": whole["t"]}, {"t": whole["t"][:2]}):
            along = {**given, **more}
            steps = Transient(3, along, {})
            with torch.no_grad():
                theirs = told_or_done(lambda a=artifact, s=steps: a.transient(s))
            assert told_or_done(lambda m=model, a=along: m.call("transient", a, steps=3)) == theirs
            assert bool(theirs) == bool(missing or more)
            assert all(f"nothing gives '{n}'" in theirs for n in missing if n not in more)
    for steps in (0, -1):
        theirs = told(lambda s=steps: artifact.transient(Transient(s, whole, {})))
        assert told(lambda s=steps: model.call("transient", whole, steps=s)) == theirs


@needs_compiler
def test_directions_and_names_are_refused_in_the_same_words(host: Host) -> None:
    made = packages.plastic()
    artifact, model = ingot.load(made.folder), host.load(made.folder)
    inputs = inputs_of(made, 2)
    for what, along in (
        ("jvp", {"F": X}), ("jvp", {"E": X[:, :2]}), ("jvp", {"E": torch.zeros(3, 6).double()}),
        ("vjp", {"stres": X}), ("vjp", {"plastic_strain": X.float()}),
    ):  # fmt: skip
        theirs = told(lambda what=what, along=along: getattr(artifact, what)(inputs, along))
        mine = told(lambda what=what, along=along: model.call(what, inputs, along))
        assert mine == theirs
    theirs = told(lambda: artifact.set_parameter("nu", 0.3))
    assert told(lambda: model.call("set", {"nu": torch.tensor(0.3).double()})) == theirs


@needs_compiler
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("update:newton", "updat:newton"), ("update:newton", "update:newtn"),
        ("update:newton", "update:newton update:newton"),
        ("type = AOTIModel", "type = ComposedModel"), ("artifact_path", "artefact_path"),
        ("solvers = ", "solver = newton\n    solvers = "),
    ],
)  # fmt: skip
def test_a_wrong_stub_is_refused_in_the_same_words(
    host: Host, tmp_path: Path, old: str, new: str
) -> None:
    made = packages.plastic()
    stub = made.package.stub
    assert stub is not None
    text = stub.read_text()
    assert old in text
    path = f"artifact_path = {made.folder.parent}"
    file = tmp_path / "plastic_aoti.i"
    file.write_text(text.replace("artifact_path = update", path).replace(old, new))
    mine = told(lambda: host.load(file))
    theirs = told(lambda: ingot.load(file))
    assert mine == theirs or (new == "type = ComposedModel" and "[no-stub]" in mine)


@needs_compiler
def test_packages_of_another_program_are_refused_in_the_same_words(
    host: Host, tmp_path: Path
) -> None:
    made, place, stub = packages.plastic(), tmp_path / "update", tmp_path / "update_aoti.i"
    assert made.package.stub is not None
    shutil.copytree(made.folder, place / "cpu")
    stub.write_text(made.package.stub.read_text())

    def check(*places: Path, code: str) -> None:
        for each in places:
            mine = told_or_done(lambda e=each: host.load(e))
            assert mine == told_or_done(lambda e=each: ingot.load(e)) and code in mine
            assert bool(mine) == bool(code)

    check(stub, place, code="")
    shutil.copytree(packages.decay().folder, place / "cuda")
    check(place / "cpu", code="")
    check(stub, place, code="differ in their models")
    (place / ".older").write_text("cuda")
    check(stub, place, code="")
    (place / ".older").write_text("cpu")
    check(stub, place, place / "cpu", code="is older than what stands beside it")
    shutil.rmtree(place / "cuda")
    (place / ".older").unlink()
    program = made.artifact().metadata.origin.program
    stub.write_text(stub.read_text().replace(program, "0" * 64))
    check(stub, code="than the stub was written for")


VALUES = (
    "0", "-1", "1.0", "1e3", "2.5", "1e-320", "1e999", "nan", "-inf", "banana", "3MPa", "2*mm",
    "'1 2'", "''", "+7", "4294967296", "point", "bacth", "BACKTRACKING", "NONE", "true", "'x'",
    "'update:newton'", "newton", "Newton", "NewtonWithLineSearch", "LU", "1" * 45, "0x10", "1e",
    ".5", "a" * 90, "1,5",
)  # fmt: skip


def spoil_stub(dice: random.Random, text: str) -> str:
    """A stub with another value, name or line; some do no harm."""
    lines = text.splitlines()
    fields = [i for i, line in enumerate(lines) if " = " in line and "artifact_path" not in line]
    at = dice.choice(fields)
    name, _, value = lines[at].partition(" = ")
    how = dice.choice(("value", "value", "value", "name", "remove", "add", "block"))
    margin = name[: len(name) - len(name.lstrip())]
    if how == "value":
        lines[at] = f"{name} = {dice.choice(VALUES)}"
    elif how == "name":
        letters = list(name.strip())
        letters[dice.randrange(len(letters))] = dice.choice("abcxyz_")
        lines[at] = f"{margin}{''.join(letters)} = {value}"
    elif how == "remove":
        del lines[at]
    elif how == "add":
        option = dice.choice(
            ("more", "check_negative_criterion", "max_linesearch_iterations", "linesearch_cutback")
        )
        if not any(line.strip().startswith(option) for line in lines):
            lines.insert(at, f"{margin}{option} = {dice.choice(VALUES)}")
    else:
        lines.insert(at, f"{margin}[inner{at}]\n{margin}[]")
    return "\n".join(lines) + "\n"


@needs_compiler
@pytest.mark.parametrize("count", [200, pytest.param(1500, marks=pytest.mark.exhaustive)])
def test_stubs_spoiled_at_random_are_refused_in_the_same_words(
    host: Host, tmp_path: Path, count: int
) -> None:
    dice, made, told_by = random.Random(count), packages.plastic(), set[str]()
    assert made.package.stub is not None
    path = f"artifact_path = {made.folder.parent}"
    text = made.package.stub.read_text().replace("artifact_path = update", path)
    file = tmp_path / "plastic_aoti.i"
    for i in range(count):
        file.write_text(spoil_stub(dice, spoil_stub(dice, text) if i % 2 else text))
        theirs = told_or_done(lambda: ingot.load(file))
        mine = told_or_done(lambda: host.load(file))
        if "[which-model]" in theirs:  # Python may mean another model of the file, C++ none
            assert "[no-stub]" in mine
            continue
        assert mine == theirs, f"{i}\n{file.read_text()}"
        told_by.add(re.sub(r"'[^']*'|[0-9]+", "", theirs.partition("\n")[0]))
    assert "" in told_by and len(told_by) > 8
