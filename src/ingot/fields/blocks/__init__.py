"""What the blocks of an input file say: a block -> a frozen dataclass of options, or steps."""
