"""What is generated, and how it is kept and opened.

Here: the one cache of all that is compiled, and bytes opened as a library of this process alone.
Not here: what writes sources (execute/, fields/jit), where packages lie (package/).
"""
