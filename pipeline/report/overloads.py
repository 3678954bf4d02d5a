"""What to use where more jobs come than a cluster can finish: judged by how the backlog grows, and what is finished."""

from collections.abc import Collection, Iterator, Mapping

import pandas as pd

from pipeline.comparing.words import listed
from pipeline.report.answers import COMMAND, Answer


def overloads(streams: pd.DataFrame, agents: Collection[str], words: Mapping[str, str]) -> Iterator[Answer]:
    """Return the answer of every overload of STREAM_SUMMARY; slowdown is not asked: it grows with the stream's length.

    Args:
        streams: STREAM_SUMMARY.
        agents: learned policies.
        words: of policies that are no models: what --policy calls them.
    """
    for scenario, rows in streams[streams["overload"]].groupby("scenario", sort=False):
        order = rows.groupby("policy")["growth"].mean().sort_values(kind="stable")
        use, mine = str(order.index[0]), rows[rows["policy"] == order.index[0]].set_index("load")
        apart = rows["growth_low"] > rows["load"].map(mine["growth_high"])
        open_ = [str(name) for name in order.index[1:] if not apart[rows["policy"] == name].any()]
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
