"""`python -m ingot`: the command line, as `torchrun -m ingot run FILE` starts it."""

from ingot.cli import main

if __name__ == "__main__":
    main()
