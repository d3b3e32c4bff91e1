"""The flags of compiling are the fields of the target."""

from dataclasses import fields

from ingot.cli.flags import Flags, target_of
from ingot.package.target import Target

OF_COMPILE = {"output_dir", "jobs", "stub", "baseline"}
"""Fields that say where and how a package is written, not what its model is."""


def test_every_field_of_the_target_is_a_flag() -> None:
    assert {f.name for f in fields(Target)} - OF_COMPILE == {f.name for f in fields(Flags)}


def test_defaults_are_those_of_the_target() -> None:
    assert target_of(Flags()) == Target()
    assert target_of(Flags(dtype="float32"), jobs=5) == Target(dtype="float32", jobs=5)
