"""What to use where more jobs come than a cluster can finish: judged by how the backlog grows, and what is finished."""

from collections.abc import Collection, Iterator, Mapping

import pandas as pd

from pipeline.comparing.words import listed
from pipeline.report.answers import COMMAND, Answer


def overloads(streams: pd.DataFrame, agents: Collection[str], words: Mapping[str, str]) -> Iterator[Answer]:
    """Return the answer of every overload of STREAM_SUMMARY; `words`: what --policy calls what is no model."""
    for scenario, rows in streams[streams["overload"]].groupby("scenario", sort=False):
        order = rows.groupby("policy")["growth"].mean().sort_values(kind="stable")
        use, *others = map(str, order.index)
        mine = rows[rows["policy"] == use].set_index("load")
        apart = rows["growth_low"] > rows["load"].map(mine["growth_high"])
        open_ = [name for name in others if not apart[rows["policy"] == name].any()]
        each = [
            f"at {load} % {row['growth']:+.2f} ({row['growth_low']:+.2f} to {row['growth_high']:+.2f}) and "
            f"{row['finished']:.2f} ({row['finished_low']:.2f} to {row['finished_high']:.2f})"
            for load, row in mine.iterrows()
        ]
        why = f"least growth of the backlog. In 100 steps it grows, and jobs finish, by: {'; '.join(each)}."
        command = COMMAND.format(scenario=scenario, policy=words.get(use, f"models/{use}" if use in agents else use))
        near = f"growth not clearly apart from that of {use} at any load: {listed(open_)}." if open_ else ""
        n = int(mine["n"].iloc[0])
        yield Answer(str(scenario), "growth", False, use, why, command, [], [], 0.0, n, [], near, [])
