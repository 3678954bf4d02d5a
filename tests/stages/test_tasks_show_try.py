"""`try`: the first command of a new user, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

from builders import REPOSITORY

from pipeline.core import storage
from pipeline.core.config import PoolCard, load_params
from pipeline.stages.tasks import AGENT, TRIAL

SAID = re.compile(r"deeprm3 serves 60 jobs with a mean slowdown of ([\d.]+), SJF .* with ([\d.]+): (\d+) % lower\.")


def test_it_shows_a_gain_where_nothing_was_run_and_compiles_nothing(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled"
    named = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NUMBA_CACHE_DIR": str(compiled)}
    words = [sys.executable, "-m", "pipeline", "try"]
    done = subprocess.run(words, check=False, cwd=tmp_path, env=named, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    first, *_, last = done.stdout.splitlines()
    said = SAID.fullmatch(first)
    assert said, first
    agent, sjf, percent = map(float, said.groups())
    assert percent == round(100 * (1 - agent / sjf))
    assert percent >= 10
    assert (tmp_path / "try.png").read_bytes().startswith(b"\x89PNG")
    assert str(TRIAL / AGENT) in last
    assert [place.name for place in tmp_path.iterdir()] == ["try.png"]


def test_its_agent_has_the_network_of_the_one_in_params_yaml() -> None:
    row = load_params(REPOSITORY / "params.yaml").agents[AGENT]
    card = storage.read_model(TRIAL / AGENT, PoolCard).card
    assert card.network == row.network, (
        f"`dvc repro finetune@{AGENT}`, then copy models/{AGENT}/policy to {TRIAL / AGENT}"
    )
