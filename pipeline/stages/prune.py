"""`prune`: remove the outputs of rows deleted from params.yaml. Not a DVC stage, because it changes dvc.lock."""

from pipeline.core.storage import leftovers
from pipeline.progress import remark, say
from pipeline.tracking.digests import measured


def run() -> dict[str, list[str]]:
    """Remove the stages of deleted rows from dvc.lock, and their outputs unless they changed after the stage ran.

    Return the stages, and the outputs that were removed and left.
    DVC's cache keeps the removed outputs: if the row is added again, `dvc repro` restores them.
    """
    stages = leftovers.forgotten()
    outs = {path: md5 for made in stages.values() for path, md5 in made.items()}
    there = [path for path in outs if path.exists()]
    changed = [path for path in there if measured(path) != outs[path]]
    removed = [path for path in there if path not in changed]
    for path in removed:
        leftovers.remove(path)
    if stages:
        leftovers.forget(set(stages))
        rows = ", ".join(dict.fromkeys(name.partition("@")[2] for name in stages))
        count = f"{_count(len(stages), 'stage')} of dvc.lock and {_count(len(removed), 'output')}"
        remark(f"prune: removed {count} of rows that params.yaml does not have ({rows}); DVC's cache keeps them")
    for path in changed:
        say(f"prune: {path} is left: it was changed since its stage ran")
    if not stages:
        remark("prune: nothing to remove")
    return {"stages": [*stages], "removed": [*map(str, removed)], "left": [*map(str, changed)]}


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
