"""`ingot completion`: what a shell completes the command line by."""

from typing import Literal

__all__ = ["completion"]


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script by which a shell completes commands, flags and choices.

    Example: ingot completion bash > ~/.local/share/bash-completion/completions/ingot

    Parameters
    ----------
    shell
        The shell that it is for.
    """
    from ingot.cli.main import app

    print(app.generate_completion(prog_name="ingot", shell=shell))
