"""The reference page is the one that the declarations print."""

import json
from pathlib import Path

from ingot.fields.schema import page, schema

ROOT = Path(__file__).parents[2]


def test_the_schema_is_plain_data() -> None:
    told = json.loads(json.dumps(schema()))
    gradient = told["TensorComputes"]["FFTGradient"]["options"]
    assert gradient["direction"] == {"type": "X | Y | Z", "required": True, "doc": "the axis"}
    assert told["TensorSolver"]["SecantSolver"]["options"]["damping"]["default"] == 1.0
    assert told["TensorComputes"]["RandomTensor"]["outside_jit"] == "it draws random numbers"


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / "fields-reference.md").read_text()
    command = "open('docs/fields-reference.md', 'w').write(ingot.fields.schema.page())"
    assert written == page(), f"import ingot.fields.schema; {command}"
