"""Programs of one point -> source -> machine code: written, compiled, kept and opened.

Here: the lines of a program as C++, the headers around them, the compilers (g++, NVRTC), the one
cache of all that is compiled, and what was compiled opened in this process or on a GPU.
Not here: what runs it on tensors (execute/), fusion of fields (fields/jit), packages (package/).
"""
