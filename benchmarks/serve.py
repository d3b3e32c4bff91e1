"""A side of the benchmark in an interpreter of its own: JSON commands in, JSON answers out."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def serve(answer: Answer) -> None:
    """Answer line by line until the commands end; a failure is an answer too."""
    # What is called may print; only answers go to the real stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # the orchestrator decides what it means
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answers, flush=True)
