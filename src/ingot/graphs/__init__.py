"""Torch graphs: what Ingot needs of torch to trace, compile and run them.

Here: `capture.py`, a function or module as the graph that Dynamo traces; `tree.py`, nested values;
`sizes.py`, sizes that stay open; `torch_private/`, the one place for names that torch does not
promise and for its faults.
Not here: programs for one point (program/), and what is made of graphs (execute/, train/,
regions/, fields/jit/).
"""
