"""compare_xml: two XML files, element by element.

In: the paths of an XML file and its reference. Out: Compared.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from ingot.fields.compare.difference import Compared, Finding, Limits, joined, words_differ

__all__ = ["compare_xml"]

Element = ElementTree.Element


def compare_xml(found: Path, expected: Path, limits: Limits) -> Compared:
    """Compare structure, attributes and texts; numbers in them within the limits."""
    roots: list[Element] = []
    for file in (found, expected):
        try:
            roots.append(ElementTree.parse(file).getroot())
        except ElementTree.ParseError as error:
            return joined(1, [Finding(f"'{file.name}'", f"is not XML: {error}")])
    ours, theirs = roots
    return joined(
        sum(1 for _ in theirs.iter()), walk(ours, theirs, f"/{plain(theirs.tag)}", limits)
    )


def walk(ours: Element, theirs: Element, path: str, limits: Limits) -> Iterator[Finding | None]:
    """What is wrong with an element and all that it holds."""
    if ours.tag != theirs.tag:
        yield Finding(path, f"is <{plain(ours.tag)}> instead of <{plain(theirs.tag)}>")
        return
    for name in sorted(set(ours.attrib) | set(theirs.attrib)):
        mine, other = ours.get(name), theirs.get(name)
        part = f"{path}@{plain(name)}"
        if mine is None or other is None:
            yield Finding(part, "is missing" if mine is None else "is not in the reference")
        else:
            yield words_differ(part, mine, other, limits)
    yield words_differ(path, ours.text or "", theirs.text or "", limits)
    if len(ours) != len(theirs):
        yield Finding(path, f"has {len(ours)} elements instead of {len(theirs)}")
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False), 1):
        yield from walk(mine, other, f"{path}/{plain(other.tag)}[{number}]", limits)


def plain(tag: str) -> str:
    """A tag without its namespace."""
    return tag.rpartition("}")[2]
