"""How Sphinx builds the site: Markdown, one quiet theme, formulas as MathML, nothing from afar."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
from generated import write_pages  # noqa: E402 - a page of this folder, not of a package

(release,) = re.findall(r'__version__ = "(.+)"', (ROOT / "src/ingot/__init__.py").read_text())

project = "Ingot"
author = "Ingot contributors"
version = release
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = f"Ingot {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False


def visit_math(translator: Any, node: nodes.Element) -> None:
    """A formula inside a line, which browsers draw themselves: no script is fetched."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    """A formula on its own."""
    translator.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer of formulas, and write the pages that follow from the code."""
    app.connect("builder-inited", lambda _: write_pages())
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
