"""The peer's side of the draws, run by its own interpreter: `python answers.py QUESTIONS ANSWERS`.

In: a file of models, inputs and directions. Out: a file of values, slopes along one direction for
each input, and values a small step ahead of and behind each point. Imports nothing of ours.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import neml2  # pyright: ignore[reportMissingImports]  # in the peer's environment only
import torch
from torch import Tensor

Values = dict[str, Tensor]


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What the peer says of one model at all points; what it cannot say is told as an error."""
    try:
        model = neml2.load_string(question["text"]).get_model(question["model"])
    except Exception as error:  # whatever the peer raises is its answer
        return {"error": f"{type(error).__name__}: {error}"}
    inputs, along = question["inputs"], question["along"]
    steps = (question["step"], -question["step"], question["step"] / 4, -question["step"] / 4)

    def values(at: Values) -> Values:
        return unwrap(model.call_by_name(wrap(model, at, question["axes"])))

    def slopes(at: Values, name: str, direction: Tensor) -> Values:
        tangent = wrap(model, {name: direction}, question["axes"])
        return unwrap(model.jvp(wrap(model, at, question["axes"]), tangent)[1])

    found: dict[str, Any] = {"slopes": {}, "moved": {}, "errors": {}}
    batch = 0 if question["whole"] else question["batch"]
    try:
        found["values"] = by_point(values, inputs, batch)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    for name, direction in along.items():
        moved = [{**inputs, name: inputs[name] + step * direction} for step in steps]
        found["moved"][name] = [by_point(values, at, batch) for at in moved]
        try:

            def along_one(at: Values, name: str = name) -> Values:
                rest = {n: x for n, x in at.items() if n != "along"}
                return slopes(rest, name, at["along"])

            found["slopes"][name] = by_point(along_one, {**inputs, "along": direction}, batch)
        except Exception as error:
            found["errors"][name] = f"{type(error).__name__}: {error}"
    return found


def by_point(call: Callable[[Values], Values], inputs: Values, batch: int) -> Values:
    """A call for all points, or point by point where the peer cannot take them at once."""
    if batch == 0:
        return call(inputs)
    try:
        found = call(inputs)
        if all(x.shape[:1] == (batch,) for x in found.values()):
            return found
    except Exception:  # batches of variables without an axis beside such with one
        pass
    points = [call({n: x[i] for n, x in inputs.items()}) for i in range(batch)]
    return {n: torch.stack([p[n] for p in points]) for n in points[0]}


def wrap(model: Any, values: Values, axes: Mapping[str, int]) -> dict[str, Any]:
    """Tensors as the kinds that the model reads."""
    return {
        name: model.input_spec[name](x, sub_batch_ndim=axes.get(name, 0))
        for name, x in values.items()
    }


def unwrap(values: Mapping[str, Any]) -> Values:
    return {name: value.data.detach().clone() for name, value in values.items()}


def main(questions: str, answers: str) -> None:
    """Answer all questions of a file."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.save([answer(each) for each in torch.load(questions)], answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
