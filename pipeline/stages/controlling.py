"""What `compare` draws and tells of scenarios of user groups alone: shares over time, fairness, calibration."""

import pandas as pd

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.evaluation import group_plots
from pipeline.evaluation.comparing import OF_GROUPS
from pipeline.evaluation.group_metrics import group_fairness, group_summary
from pipeline.evaluation.plots import png
from pipeline.schemas import GROUP_FAIRNESS, OFF_POLICY, empty


def controlling(params: Params, run: tracking.StageRun) -> None:
    """Write the tables and figures that only scenarios of user groups have."""
    fairness = [_fairness(params, name, run) for name in params.group_scenarios]
    off_policy = [storage.read_also(params, name, "off_policy") for name in params.group_scenarios]
    for name, frames, schema in (
        ("group_fairness.csv", fairness, GROUP_FAIRNESS),
        ("off_policy.csv", off_policy, OFF_POLICY),
    ):
        frame = pd.concat(frames, ignore_index=True) if frames else empty(schema)
        storage.write_table(storage.REPORTS / name, frame, schema)


def _fairness(params: Params, name: str, run: tracking.StageRun) -> pd.DataFrame:
    agents = [agent for agent, row in params.agents.items() if row.scenario == name]
    intervals = storage.read_also(params, name, "intervals")
    heaviest = intervals[(intervals["load"] == intervals["load"].max()) & (intervals["jobset"] == 0)]
    drawn = {
        f"shares_{name}": group_plots.shares_over_time(
            heaviest, f"Share of each group over time, scenario {name}", [*agents, *OF_GROUPS]
        ),
        f"delay_{name}": group_plots.delay_by_load(
            group_summary(storage.read_jobset_results(params, name), name),
            f"Mean waiting time on test jobsets, scenario {name}",
            agents,
        ),
    }
    for agent in agents:
        mine = intervals[intervals["policy"] == agent]
        drawn[f"calibration_{agent}"] = group_plots.calibration(mine, f"{agent}: what was expected and what came")
    for title, figure in drawn.items():
        run.figure(storage.write_figure(title, png(figure)))
    return group_fairness(storage.read_also(params, name, "groups"), name)
