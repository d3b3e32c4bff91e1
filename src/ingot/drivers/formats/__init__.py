"""How a Result is written to a file and read back: one file of this folder for a family of formats.

`choice` has the table of all of them by ending.
"""
