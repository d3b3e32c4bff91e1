"""Files without an end are refused where they stand, and long ones that are plain are read."""

import os
import time
from pathlib import Path

import pytest

from ingot.errors import IngotError
from ingot.hit import NUMBER, read, read_text


def refused(text: str, *overrides: str) -> str:
    with pytest.raises(IngotError) as raised:
        read_text(text, overrides=overrides)
    told = str(raised.value)
    assert "-->" in told
    assert "^" in told
    return told


@pytest.mark.parametrize("depth", [102, 500, 30_000])
@pytest.mark.parametrize("text", ["[a]\n{}x = 1\n[]\n{}", "[a]\n{}", "[a/b]\n{}x = 1\n[]\n{}"])
def test_blocks_nest_so_deep_and_no_deeper(text: str, depth: int) -> None:
    opened, closed = text.split("{}", 1)
    whole = opened * depth + closed.replace("{}", "").replace("[]\n", "[]\n" * depth)
    assert "blocks are nested deeper than 100" in refused(whole)


def test_blocks_that_nest_less_are_read() -> None:
    assert read_text("[a]\n" * 100 + "x = 1\n" + "[]\n" * 100).blocks[0].name == "a"


@pytest.mark.parametrize("depth", [101, 500, 5000])
def test_path_of_a_field_is_bounded(depth: int) -> None:
    assert "nested deeper" in refused("a/" * depth + "x = 1")
    assert "nested deeper" in refused("y = 1", "a/" * depth + "x:=1")


@pytest.mark.parametrize("count", [2, 1000, 20_000])
def test_long_sums_and_products_have_their_value(count: int) -> None:
    tree = read_text(
        f"a = ${{fparse {'+'.join(['1'] * count)}}}\n"
        f"b = ${{fparse {'*'.join(['1', '1'] * count)}}}\n"
        f"c = ${{fparse {'x := 1; ' * 10} {' - '.join(['x'] * count)}}}\n"
    )
    assert [field.text for field in tree.fields] == [str(count), "1", str(2 - count)]


DEEP = [
    "(" * 500 + "1" + ")" * 500,
    "-" * 500 + "1",
    "^".join(["1"] * 500),
    "sin(" * 500 + "1" + ")" * 500,
]


@pytest.mark.parametrize("text", DEEP, ids=["parentheses", "signs", "powers", "calls"])
def test_deep_expressions_are_refused(text: str) -> None:
    assert "is nested deeper than 40" in refused(f"x = ${{fparse {text}}}")


def test_expressions_nest_as_deep_as_anyone_writes_them() -> None:
    assert read_text(f"x = ${{fparse {'(' * 30}1{')' * 30}}}").fields[0].text == "1"


@pytest.mark.parametrize("text", ["9^9^9^9", "9^9^9", "exp(exp(exp(9)))", "1e999", "-1e308*10"])
def test_powers_without_an_end_have_no_value(text: str) -> None:
    assert "x = " in refused(f"x = ${{fparse {text}}}")


@pytest.mark.parametrize("quote", ["", "'"])
@pytest.mark.parametrize("depth", [3, 30, 39])
def test_nested_raw_is_joined(depth: int, quote: str) -> None:
    text = f"x = {quote}{'${raw ' * depth}a{'}' * depth}{quote}"
    assert read_text(text).fields[0].text == "a"


@pytest.mark.parametrize("depth", [41, 500, 5000])
def test_values_that_lead_on_and_on_are_refused(depth: int) -> None:
    chain = "".join(f"v{i} = ${{v{i + 1}}}\n" for i in range(depth))
    sums = "".join(f"v{i} = ${{fparse v{i + 1} + 1}}\n" for i in range(depth))
    for text in (
        f"x = '{'${raw ' * depth}a{'}' * depth}'",
        f"{chain}v{depth} = 1",
        f"{sums}v{depth} = 1",
    ):
        assert "values lead to values without an end" in refused(text)


def test_values_that_double_do_not_fill_the_memory() -> None:
    text = "".join(f"v{i} = '${{v{i + 1}}} ${{v{i + 1}}}'\n" for i in range(38)) + "v38 = abc"
    assert "grows beyond 10000000 letters" in refused(text)


@pytest.mark.parametrize(
    "unit", ["m^999", "km^99*km^99", "mm^-99*km^9", "1/ym^99", "Ym^20*Ym^20", "m^" + "9" * 5000]
)
def test_units_out_of_range_are_refused(unit: str) -> None:
    refused(f"x = ${{units 1 {unit} -> {unit}}}")


def test_number_that_is_too_large_in_its_unit_is_refused() -> None:
    assert "is too large" in refused("x = ${units 1e300 Ym -> ym}")


def test_integer_of_many_digits_is_refused() -> None:
    field = read_text(f"x = {'9' * 5000}").fields[0]
    with pytest.raises(IngotError, match=r"'x' should be an integer.*\.\.\."):
        field.integer()


def kinds(folder: Path) -> dict[str, str]:
    """Paths that lead to no input file, and what is told of each."""
    (folder / "sub").mkdir()
    (folder / "sub" / "model.i").write_text("a = 1")
    (folder / "empty").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "binary.i").write_bytes(bytes(range(256)) * 10)
    with (folder / "huge.i").open("wb") as stream:
        stream.truncate(1 << 40)
    (folder / "circle.i").symlink_to("circle.i")
    return {
        "sub": "is a folder, not a file*name a file in it, such as model.i", "empty": "is a folder",
        "pipe": "is a device or a pipe", "/dev/zero": "is a device or a pipe",
        "/dev/null": "is a device or a pipe", "binary.i": "is not text",
        "huge.i": "holds 1048576 MB",
        "circle.i": "cannot be opened", "x" * 300: "cannot be opened", "none.i": "there is no file",
    }  # fmt: skip


def test_what_is_no_input_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, words in kinds(tmp_path).items():
        with pytest.raises(IngotError) as raised:
            read(name)
        told = str(raised.value)
        assert all(word in told for word in words.split("*")), told
        with pytest.raises(IngotError) as raised:
            read_text(f"!include {name}\n")
        assert words.split("*")[0] in str(raised.value)


def test_empty_file_crlf_and_nul(tmp_path: Path) -> None:
    files = (b"", b"\n", b"# nothing", b"[a]\n x\r=\r1\n[]\n", b"[a]\r\n  x = 1\r\n[]\r\n")
    for number, text in enumerate(files):
        file = tmp_path / f"{number}.i"
        file.write_bytes(text)
        tree = read(file)
    assert tree.blocks[0].require("x").integer() == 1
    (tmp_path / "nul.i").write_bytes(b"x = a\0b")
    with pytest.raises(IngotError):
        read(tmp_path / "nul.i")


def test_digits_without_end_are_looked_at_once() -> None:
    """Tried at every length, these would take some ten seconds."""
    begun = time.process_time()
    assert NUMBER.fullmatch("9" * 100_000 + "x") is None
    assert time.process_time() - begun < 1.0


def test_a_reference_to_no_name_is_refused() -> None:
    for name in ("/", "//"):
        assert f"'{name}'" in refused(f"x = ${{{name}}}")


def test_of_hundreds_of_doubles_the_first_are_told() -> None:
    rows = "\n".join(f"u{i} = 1" for i in range(300))
    begun = time.process_time()
    told = refused(f"[A]\n{rows}\n{rows}\n[]\n" + "# more\n" * 20_000)
    assert 1 < told.count("error[duplicate-field]") <= 40
    assert time.process_time() - begun < 5.0
