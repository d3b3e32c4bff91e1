"""`ingot lsp`: a language server for input files, which editors start."""

import os
import sys

from ingot.extras import require_extra

__all__ = ["lsp"]


def lsp() -> None:
    """Serve an editor: problems as one types, completion, hover, go to definition.

    Speaks the Language Server Protocol over standard input and output; docs/editor.md shows how VS
    Code and Neovim start it. Python of a file is evaluated within bounds, as by --untrusted, and
    nothing is compiled. Needs the extra `editor`.

    Example: ingot lsp
    """
    require_extra("pygls", "language servers")
    from ingot.cli.editor.server import make_server

    # what anything prints goes to stderr: stdout belongs to the protocol
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    make_server().start_io(sys.stdin.buffer, answers)
