"""The language server, spoken to over its pipes; answers at any place of half a text."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("pygls", reason="ingot lsp needs pygls: install ingot[editor]")

from ingot.cli.editor.answers import complete, define, describe
from ingot.cli.editor.outlined import outline_text
from ingot.cli.editor.problems import find_problems

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
FILES = sorted(CASES.glob("**/*.i"))
WAIT = 120  # seconds for an answer: a machine may be busy, and torch takes its time to load

STEEL = """\
E = 200e3
[Models]
  [steel]
    type = J2Plasticity
    E = ${E}
    nu = 0.3
    yield_stress = 250
  []
[]
[Drivers]
  [test]
    type = UniaxialTest
    model = steel
    strain = 0.01
  []
[]
"""


class Editor:
    """A client of the protocol: requests by number, and what is published by document."""

    def __init__(self, folder: Path, *flags: str) -> None:
        command = [sys.executable, "-c", "from ingot.cli.main import main; main()", "lsp", *flags]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, cwd=folder,
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        )  # fmt: skip
        self.answers: Queue[dict[str, Any]] = Queue()
        self.published: Queue[dict[str, Any]] = Queue()
        self.number, self.version = 0, 0
        Thread(target=self.listen, daemon=True).start()
        self.folder = folder
        self.request("initialize", processId=None, rootUri=folder.as_uri(), capabilities={})
        self.notify("initialized")

    def listen(self) -> None:
        assert self.child.stdout is not None
        while header := self.child.stdout.readline():
            length = int(header.split(b":")[1])
            while self.child.stdout.readline().strip():
                pass
            message = json.loads(self.child.stdout.read(length))
            if "id" in message:
                self.answers.put(message)
            elif message["method"] == "textDocument/publishDiagnostics":
                self.published.put(message["params"])

    def send(self, **message: Any) -> None:
        assert self.child.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.child.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def request(self, method: str, **params: Any) -> Any:
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        answer = self.answers.get(timeout=WAIT)
        assert answer["id"] == self.number
        assert "error" not in answer, answer
        return answer["result"]

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> None:
        document = {"uri": self.uri(name), "languageId": "hit", "version": 1, "text": text}
        self.notify("textDocument/didOpen", textDocument=document)

    def change(self, name: str, text: str) -> None:
        self.version += 1
        document = {"uri": self.uri(name), "version": 1 + self.version}
        changes = [{"text": text}]
        self.notify("textDocument/didChange", textDocument=document, contentChanges=changes)

    def problems(self) -> list[dict[str, Any]]:
        return self.published.get(timeout=WAIT)["diagnostics"]

    def ask(self, what: str, name: str, line: int, column: int) -> Any:
        place = {"line": line, "character": column}
        document = {"uri": self.uri(name)}
        return self.request(f"textDocument/{what}", textDocument=document, position=place)


PRESET = """[Preset]
  section = Models
  doc = 'our steel'
[]
[Models]
  [{{ name }}]
    type = IsotropicElasticity
    E = 1
    nu = 0
  []
[]
"""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("edited")
    (folder / "OurSteel.i").write_text(PRESET)
    client = Editor(folder, "--load", "OurSteel.i")
    yield client
    client.request("shutdown")
    client.send(method="exit")
    assert client.child.wait(WAIT) == 0


def test_an_editor_is_served(editor: Editor) -> None:
    editor.open("model.i", STEEL)
    assert editor.problems() == []
    editor.change("model.i", STEEL.replace("yield_stress", "yeild_stress"))
    wrong = {each["code"]: each for each in editor.problems()}
    assert wrong.keys() == {"missing-option", "unknown-option"}
    assert wrong["unknown-option"]["range"]["start"] == {"line": 6, "character": 4}
    assert wrong["unknown-option"]["range"]["end"] == {"line": 6, "character": 16}
    assert "did you mean 'yield_stress'?" in wrong["unknown-option"]["message"]
    hover = editor.ask("hover", "model.i", 3, 14)
    assert "von Mises" in hover["contents"]["value"]
    assert "above -1 and below 0.5" in editor.ask("hover", "model.i", 5, 5)["contents"]["value"]
    definition = editor.ask("definition", "model.i", 12, 13)
    assert definition["uri"] == editor.uri("model.i")
    assert definition["range"]["start"] == {"line": 2, "character": 2}
    symbols = editor.request(
        "textDocument/documentSymbol", textDocument={"uri": editor.uri("model.i")}
    )
    assert [(s["name"], [c["name"] for c in s["children"]]) for s in symbols] == [
        ("Models", ["steel"]), ("Drivers", ["test"]),
    ]  # fmt: skip


def test_a_text_that_does_not_parse_is_completed(editor: Editor) -> None:
    editor.open("half.i", "[Models]\n  [µ]\n    type = YieldFunction\n    yield")
    assert [each["code"] for each in editor.problems()] == ["parse-error"]
    offers = editor.ask("completion", "half.i", 3, 9)["items"]
    (yielding,) = (each for each in offers if each["label"] == "yield_stress")
    assert yielding["detail"] == "required"
    assert yielding["textEdit"]["range"]["start"] == {"line": 3, "character": 4}


def test_places_count_as_editors_do_and_presets_of_load_are_known(editor: Editor) -> None:
    editor.open("ours.i", "[Models]\n[a]\ntype = OurSteel\n[]\n[b]\nx = '\U0001d6fc' y = 1\n[]\n[]")
    (problem,) = editor.problems()
    assert problem["code"] == "missing-option"
    text = "[Models]\n[a]\ntype = YieldFunction\neffective_stress = '\U0001d6fc' yield = 1\n[]\n[]"
    editor.change("ours.i", text)
    wrong = {each["code"]: each for each in editor.problems()}
    # the letter is two of UTF-16, in which the protocol counts
    assert wrong["unknown-option"]["range"]["start"] == {"line": 3, "character": 24}


def test_definitions_are_found_in_included_files(editor: Editor) -> None:
    (editor.folder / "steel.i").write_text(STEEL.partition("[Drivers]")[0])
    text = (
        "!include steel.i\n[Drivers]\n[test]\ntype = UniaxialTest\nmodel = steel\nstrain = ${E}\n"
    )
    editor.open("main.i", text)
    editor.problems()
    for line, column, there in ((4, 9, 2), (5, 11, 0), (0, 11, 0)):
        found = editor.ask("definition", "main.i", line, column)
        assert found["uri"] == editor.uri("steel.i")
        assert found["range"]["start"]["line"] == there


def complete_at(text: str) -> dict[str, str]:
    offset = text.index("|")
    offers = complete(text.replace("|", "", 1), Path("x.i"), offset, lambda _: None)
    return {each.label: each.detail for each in offers}


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("[|", {"Models", "Tensors", "Domain"}),
        ("|", {"[Models]"}),
        ("[Models]\n[a]\ntype = |", {"YieldFunction", "J2Plasticity", "ComposedModel"}),
        ("[Models]\n[a]\ntype = LinearIsotropicElasticity\nrate_form = |", {"true", "false"}),
        ("[Models]\n[a]\n|", {"type"}),
        ("[Models]\n[a]\n[]\n[b]\ntype = ComposedModel\nmodels = '|", {"a"}),
        ("[Solvers]\n[lu]\n[]\n[n]\ntype = Newton\nlinear_solver = |\n[]", {"lu"}),
        ("[Models]\n[a]\ntype = YieldFunction\n[]\n[]\n[Drivers]\n[d]\ntype = TransientDriver\n"
         "prescribed_Scalar_names = '|'\n", {"effective_stress"}),
        ("[Tensors]\n[t]\n[]\n[]\n[Drivers]\n[d]\ntype = TransientDriver\nprescribed_time = |",
         {"t"}),
        ("a = 1\n[Models]\n[m]\nE = ${|}\n", {"a", "Models/m/E", "units"}),
        ("[TensorComputes]\n[|", {"Initialize", "Solve"}),
        ("[TensorComputes]\n[Solve]\n[x]\ntype = |", {"ParsedCompute"}),
        ("[Domain]\n|", {"dim", "nx"}),
        ("[Executioner]\n[|", {"TimeStepper"}),
    ],
)  # fmt: skip
def test_what_may_be_typed_is_offered(text: str, offered: set[str]) -> None:
    found = complete_at(text)
    assert offered <= found.keys()


def test_python_of_a_file_is_not_run_and_what_is_refused_is_no_error(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    text = f"""
[Tensors]
  [x]
    type = Python
    expr = '''__import__("pathlib").Path("{mark}").touch()'''
  []
[]
[Models]
  [m]
    type = YieldFunction
    yield_stress = x
  []
[]
"""
    found = find_problems(text, tmp_path / "m.i")
    assert not mark.exists()
    assert [(each.problem.code, each.severity) for each in found] == [
        ("untrusted-code", "information")
    ]


def halves(text: str, seed: int, count: int) -> Iterator[tuple[str, int]]:
    """Texts that end anywhere, or lack some letters, and where somebody types in them."""
    rng = random.Random(seed)
    for _ in range(count):
        start = rng.randrange(len(text) + 1)
        end = len(text) if rng.random() < 0.5 else min(len(text), start + rng.randrange(40))
        yield text[:start] + text[end:], start


def answer_all(text: str, file: Path, offset: int) -> None:
    """Every question of an editor; none may fail."""
    read = lambda path: path.read_text() if path.is_file() else None  # noqa: E731
    complete(text, file, offset, read)
    describe(text, file, offset, read)
    define(text, file, offset, read)
    outline_text(text, file)


@pytest.mark.skipif(not FILES, reason="the published cases are not here")
def test_half_a_file_is_answered() -> None:
    for file in FILES[::25]:
        for text, offset in halves(file.read_text(), 0, 3):
            answer_all(text, file, offset)


@pytest.mark.exhaustive
@pytest.mark.skipif(not FILES, reason="the published cases are not here")
@pytest.mark.parametrize("part", range(8))
def test_any_half_of_any_file_is_answered(part: int) -> None:
    for file in FILES[part::8]:
        for text, offset in halves(file.read_text(), part, 12):
            answer_all(text, file, offset)
            find_problems(text, file)


@pytest.mark.exhaustive
@pytest.mark.skipif(not FILES, reason="the published cases are not here")
def test_the_server_survives_half_files(editor: Editor) -> None:
    editor.open("torn.i", "")
    for file in FILES[::5]:
        for text, offset in halves(file.read_text(), 1, 3):
            editor.change("torn.i", text)
            line = text.count("\n", 0, offset)
            column = offset - text.rfind("\n", 0, offset) - 1
            for what in ("completion", "hover", "definition"):
                editor.ask(what, "torn.i", line, column)
    assert editor.child.poll() is None
