"""Verdicts on the claims of DeepRM's figures when its network may reserve and its heuristics may not.

    python docs/results/paper-scale/reserving.py FOLDER

FOLDER is where the agents and heuristics of docs/params/deeprm_paper.diff were run. Writes reserving_claims.csv
into this folder: the findings of the stage `papers` in scenario `reserving`.
"""

import os
import sys
from pathlib import Path

from pipeline.core.config import load_params
from pipeline.papers.figures import figures, table
from pipeline.papers.roles import roles_of
from pipeline.stages.papers import evidence

HERE = Path(__file__).resolve().parent
SCENARIO = "reserving"


def main(folder: str) -> None:
    """Write reserving_claims.csv from a finished run."""
    os.chdir(folder)
    params = load_params()
    (roles,) = (roles for roles in roles_of(params) if roles.scenario == SCENARIO)
    found = table(figures([evidence(params, roles)]))
    shown = found["figure"].str.startswith(("loads", "objectives", "learning_reserving_70", "withheld"))
    claims = found[shown & found["found"].str.contains("reserving_")]  # headlines.py has the claims on rules
    claims[["figure", "claim", "part", "verdict", "found"]].to_csv(HERE / "reserving_claims.csv", index=False)


if __name__ == "__main__":
    main(sys.argv[1])
