"""A small input file that can be run, judged and broken."""

from pathlib import Path

import pytest

TEXT = """
factor = 2
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.arange(4.0))'
  []
  [values]
    type = Python
    expr = 'Scalar(${factor} * torch.arange(4.0).reshape(4, 1) * torch.ones(5))'
  []
  [rates]
    type = Python
    expr = 'Scalar(torch.tensor([0.0, 2.0, 2.0, 2.0]))'
  []
[]
[Models]
  [rate]
    type = ScalarVariableRate
    variable = 'y'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'rate'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'y'
    prescribed_Scalar_values = 'values'
  []
  [verification]
    type = Verification
    driver = 'driver'
    Scalar_names = 'output.y_rate'
    Scalar_values = 'rates'
  []
[]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    path = Path("model.i")
    path.write_text(TEXT)
    return path
