"""The `ingot` command and its verbs: `ingot --help` lists them.

Here: reading arguments, printing results, exit codes. Not here: anything a Python user would want
too. torch is imported inside commands, so that help is instant.
"""

from ingot.cli.main import main

__all__ = ["main"]
