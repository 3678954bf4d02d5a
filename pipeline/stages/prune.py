"""`prune`: remove the outputs of rows that params.yaml no longer has. It shortens dvc.lock, so it is no DVC stage."""

from pipeline.core.storage import leftovers
from pipeline.progress import say
from pipeline.tracking.digests import measured


def run() -> None:
    """Remove the outputs of such rows and their stages in dvc.lock, except outputs that were changed since.

    DVC's cache keeps the removed outputs: if the row returns, `dvc repro` restores them.
    """
    stages = leftovers.forgotten()
    outs = {path: md5 for made in stages.values() for path, md5 in made.items()}
    there = [path for path in outs if path.exists()]
    changed = [path for path in there if measured(path) != outs[path]]
    for path in there:
        if path not in changed:
            leftovers.remove(path)
    if stages:
        leftovers.forget(set(stages))
        rows = ", ".join(dict.fromkeys(name.partition("@")[2] for name in stages))
        count = f"{_count(len(stages), 'stage')} of dvc.lock and {_count(len(there) - len(changed), 'output')}"
        say(f"prune: removed {count} of rows that params.yaml does not have ({rows}); DVC's cache keeps them")
    for path in changed:
        say(f"prune: {path} is left: it was changed since its stage ran")
    if not stages:
        say("prune: nothing to remove")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
