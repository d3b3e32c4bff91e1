"""XML: elements, attributes and texts must be those of the reference."""

from pathlib import Path

import pytest

from ingot.fields.compare import Limits, compare_xml

TEXT = """<?xml version="1.0"?>
<Xdmf xmlns:xi="http://www.w3.org/2003/XInclude" Version="2.2">
  <Grid Name="T0"><Time Value="0.001" /><xi:include xpointer="x" />
    <Item Dimensions="51 51">-50 2.0</Item><Item>c.h5:/c.0</Item>
  </Grid>
</Xdmf>
"""


def findings(folder: Path, text: str) -> list[str]:
    (folder / "gold.xmf").write_text(TEXT)
    (folder / "out.xmf").write_text(text)
    found = compare_xml(folder / "out.xmf", folder / "gold.xmf", Limits())
    assert found.parts == 6 or "not XML" in str(found)
    return [str(finding) for finding in found.findings]


def test_same_structure_and_numbers_pass(tmp_path: Path) -> None:
    other = TEXT.replace("0.001", "1e-3").replace("-50 2.0", "\n -50.00001\t2 ")
    assert not findings(tmp_path, TEXT)
    assert not findings(tmp_path, other)
    assert not findings(tmp_path, TEXT.replace('<Time Value="0.001" />', "<Time Value='0.001'/>"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("-50", "-51", "/Xdmf/Grid[1]/Item[3]: a number is -51 instead of -50, off by 1"),
        ("0.001", "0.002", "/Xdmf/Grid[1]/Time[1]@Value: a number is 0.002 instead of 0.001"),
        ("c.h5:/c.0", "c.h5:/c.1", "/Xdmf/Grid[1]/Item[4]: has 'c.h5:/c.1' instead of 'c.h5:/c.0'"),
        ("T0", "T1", "/Xdmf/Grid[1]@Name: has 'T1' instead of 'T0'"),
        ("51 51", "51 51 51", "@Dimensions: is '51 51 51' instead of '51 51'"),
        ('Value="0.001"', "", "/Xdmf/Grid[1]/Time[1]@Value: is missing"),
        ("<Time", '<Time Unit="s"', "/Xdmf/Grid[1]/Time[1]@Unit: is not in the reference"),
        ("<Item>c.h5:/c.0</Item>", "", "/Xdmf/Grid[1]: has 3 elements instead of 4"),
        ("<Item>c.h5:/c.0</Item>", "<Data>c.h5:/c.0</Data>", "is <Data> instead of <Item>"),
        ("</Xdmf>", "", "'out.xmf': is not XML"),
    ],
)
def test_spoiled_file_fails(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TEXT
    assert any(says in finding for finding in findings(tmp_path, TEXT.replace(old, new)))


def test_published_files_equal_themselves_and_no_other(marlin: Path) -> None:
    golds = sorted(marlin.rglob("gold/*.xmf"))
    assert golds
    for gold in golds:
        assert not compare_xml(gold, gold, Limits()).findings
    first, second = golds[:2]
    assert compare_xml(first, second, Limits()).findings
