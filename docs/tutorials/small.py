"""A temporary copy of the repository with a small problem, so that tutorials take seconds and change no file of yours.

Commands in the copy run the repository's own package, whose compiled code is kept.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("pipeline", "dvc.yaml", ".dvc/config", ".dvcignore", ".gitignore")
SCENARIO = {"loads": [70, 130], "jobsets": {"train": 4, "validation": 10, "test": 50}}
AGENT = {"loads": [70, 130], "updates": 10, "jobsets": 4, "episodes": 8, "validate_every": 5}
SEARCH = {"population": 4, "rounds": 1, "elite": 2}  # of the heuristic `linear`
YOURS = ("MLFLOW_TRACKING_URI", "PIPELINE_TRACKING")  # runs of a tutorial do not belong into your store
ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",  # the package of the repository, not its copy
    "DVC_NO_ANALYTICS": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    **{f"GIT_{who}_{what}": "tutorial" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def enter_copy() -> TemporaryDirectory[str]:
    """Make the copy, commit it, and continue in it; it is deleted with the returned object."""
    place = TemporaryDirectory(prefix="tutorial-", ignore_cleanup_errors=True)
    folder = Path(place.name)
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    with (folder / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML().dump(_small(YAML().load(ROOT / "params.yaml")), stream)
    (folder / "champions.yaml").write_text("# No champion yet.\n", encoding="utf-8")
    if not shutil.which("dvc"):  # the environment is not activated
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ |= ENVIRONMENT
    for name in YOURS:
        os.environ.pop(name, None)
    os.chdir(folder)
    for words in (["init", "--initial-branch", "main"], ["add", "--all"], ["commit", "-m", "A small problem"]):
        subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL)
    return place


def _small(rows: dict) -> dict:  # type: ignore[type-arg]
    """Return parameters of one scenario and one agent."""
    rows["scenarios"] = {"online": rows["scenarios"]["online"]}
    rows["scenarios"]["online"].update(SCENARIO)
    rows["agents"] = {"deeprm": rows["agents"]["deeprm"]}
    rows["agents"]["deeprm"]["finetune"].update(AGENT)
    rows["heuristics"]["pool"]["linear"] = SEARCH
    rows["hindsight"]["scenarios"] = []
    rows["gate"]["fewer"] = {}
    rows["transfers"] = {}
    rows["threads"] = 1
    return rows
