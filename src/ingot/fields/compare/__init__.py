"""What runs wrote against what they should have: MOOSE test specs, and a comparison per file type.

Here: reading specs, running them with a given runner, CSV, HDF5, XML and Exodus differences.
Not here: how an input runs; which files `ingot test` looks at.
"""

from ingot.fields.compare.check import Runner, Skipped, chains, check_all
from ingot.fields.compare.csvdiff import compare_csv
from ingot.fields.compare.difference import Compared, Finding, Limits
from ingot.fields.compare.exodiff import compare_exodus
from ingot.fields.compare.exodus import Exodus, append_exodus, grid, read_exodus, write_exodus
from ingot.fields.compare.hdf5diff import compare_hdf5
from ingot.fields.compare.spec import Spec, read_specs
from ingot.fields.compare.xmldiff import compare_xml

__all__ = [
    "Compared",
    "Exodus",
    "Finding",
    "Limits",
    "Runner",
    "Skipped",
    "Spec",
    "append_exodus",
    "chains",
    "check_all",
    "compare_csv",
    "compare_exodus",
    "compare_hdf5",
    "compare_xml",
    "grid",
    "read_exodus",
    "read_specs",
    "write_exodus",
]
