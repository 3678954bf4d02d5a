"""Fail if dvc.lock does not match the code and the parameters; missing data is ignored, so CI needs no data."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NO_MATTER = ("deleted", "not in cache")  # states of files whose content is elsewhere


def stale(changes: list[Any]) -> Iterator[str]:
    """Yield what changed since dvc.lock was written, from one stage's part of `dvc status --json`."""
    for change in changes:
        if isinstance(change, str):
            yield change
            continue
        for found in change.values():
            for path, state in found.items():
                if isinstance(state, dict):
                    yield from (f"{path}: {key} {what}" for key, what in state.items())
                elif state not in NO_MATTER and not empty(Path(path)):
                    yield f"{path} {state}"


def empty(folder: Path) -> bool:
    """Return whether a folder holds nothing but .gitkeep: then its content is elsewhere, too."""
    return folder.is_dir() and {found.name for found in folder.iterdir()} <= {".gitkeep"}


def main() -> None:
    """Print what is stale, and exit with 1 if anything is."""
    status = subprocess.run([sys.executable, "-m", "dvc", "status", "--json"], check=True, stdout=subprocess.PIPE)
    found = {name: list(stale(changes)) for name, changes in json.loads(status.stdout).items()}
    said = [f"  {name}: {', '.join(what)}" for name, what in found.items() if what]
    if said:
        sys.exit("\n".join(["dvc.lock is stale: run 'dvc repro', then commit dvc.lock and reports/", *said]))


if __name__ == "__main__":
    main()
