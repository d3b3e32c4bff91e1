"""`ingot inspect`: what a package or a stub holds, and whether its source has changed since."""

import json as jsonlib
from pathlib import Path

__all__ = ["inspect"]


def inspect(
    place: Path, /, *, json: bool = False, verify: bool = False, source: Path | None = None
) -> None:
    """Tell what a package or its stub reads, gives and was made of.

    Example: ingot inspect aoti/model --json

    Parameters
    ----------
    place
        A package's folder, or a stub.
    json
        Print the metadata as JSON.
    verify
        Also check every file against its digest, and load it.
    source
        Also tell whether this file is still the one that was compiled.
    """
    from ingot.package.metadata import encoded
    from ingot.runtime import load
    from ingot.runtime.load import metadata_of

    stubbed = place.suffix == ".i"
    meta = load(place).metadata if stubbed or verify else metadata_of(place, "cpu")[0]
    if json:
        print(jsonlib.dumps(jsonlib.loads(encoded(meta))))
        return
    print(f"{meta.name}: {meta.dtype} on {meta.device}, from {meta.origin.file}")
    for title, variables in (("given", meta.inputs), ("gives", meta.outputs)):
        for v in variables:
            print(f"  {title}  {v.name}: {v.kind}" + (f" {v.sub_batch}" if v.sub_batch else ""))
    for p in meta.parameters:
        print(f"  param  {p.variable.name}: {p.variable.kind} {p.value.shape}")
    for b in meta.derivatives:
        free = " (the same for all points)" if b.batch_independent else ""
        print(f"  slope  {b.output}:{b.input}{free}")
    for s in meta.segments:
        print(f"  {s.kind}  {s.name}".rstrip())
    if source is not None:
        from ingot.hit import read

        same = read(source, meta.origin.overrides).digest == meta.origin.digest
        print(f"{source} is {'' if same else 'NOT '}what was compiled")
    if verify:
        print(f"all {len(meta.digests)} files are as they were compiled")
