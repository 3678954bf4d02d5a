"""Lines that Slurm's commands print, as in version 22.05, with which this was tried."""

from hypothesis import strategies as st

SUBMIT = "1795446088"


def squeue(**fields: object) -> str:
    """A line of squeue."""
    cells = {
        "JobID": 2,
        "ArrayJobID": fields.get("JobID", 2),
        "StateCompact": "PD",
        "Partition": "work",
        "SubmitTime": SUBMIT,
        "EligibleTime": SUBMIT,
        "StartTime": "N/A",
        "TimeLimit": "3:00",
        "NumNodes": 1,
        "tres": "cpu=4,mem=400M,node=1,billing=4",
        "Reservation": "(null)",
        "UserName": "root",
        "NodeList": "",
        "Reason": "Priority",
        "ReqNodes": "",
        "Dependency": "(null)",
        "ArrayTaskID": "N/A",
        "RestartCnt": 0,
    }
    return "".join(f"{cell}|" for cell in (cells | fields).values())


def sinfo(name: str, partition: str = "work", tier: int = 1, state: str = "idle", gres: str = "(null)") -> str:
    """A line of sinfo."""
    return f"{name}|{partition}|up|{tier}|{state}|4|1024|{gres}"


# Cells as Slurm prints them, almost so, and nothing like them.
CELL = st.one_of(
    st.sampled_from(["", "N/A", "(null)", "1", "2", "3", "0", "-1", "99999999999", "1e9", "\u0661", "1\x00"]),
    st.sampled_from(
        ["PD", "R", "CG", "XX", "work", "a,b", "idle", "mixed", "drained*", "up", "$(reboot)", "\u2028", "<b>"]
    ),
    st.sampled_from(["3:00", "1-02:03:04", "UNLIMITED", "INVALID", "1795446088", "2026-11-23T14:48:32", "nan"]),
    st.sampled_from(["cpu=4,mem=400M,node=1", "cpu=x", "mem=", "cpu=1,gres/gpu=2", "gpu:a100:2(S:0-1)", "4K", "0.5"]),
    st.sampled_from(["n1", "n[1-3]", "n[1", "n[3-1]", "n[1-999999]", "1-2"]),
    st.text(max_size=8),
)


def table(first: str) -> "st.SearchStrategy[str]":
    """Lines like the given one; in every sixth, one or two cells are replaced."""
    cells = first.removesuffix("|").split("|")
    odd = st.dictionaries(st.integers(0, len(cells) - 1), CELL, min_size=1, max_size=2)
    one = odd.map(lambda new: "|".join(new.get(k, cell) for k, cell in enumerate(cells)))
    return st.integers(0, 5).flatmap(lambda k: one if k == 5 else st.just(first))


def several(*lines: "st.SearchStrategy[str]") -> "st.SearchStrategy[str]":
    """One line of each, and some more; every tenth result is arbitrary text."""
    told = st.tuples(*lines, st.lists(st.one_of(*lines), max_size=1)).map(lambda all: "\n".join([*all[:-1], *all[-1]]))
    return st.integers(0, 9).flatmap(lambda k: st.text() if k == 9 else told)


RUNS = squeue(JobID=3, StateCompact="R", StartTime=SUBMIT, NodeList="n1")
TABLES = st.tuples(
    several(table(squeue()), table(squeue(JobID=4, ArrayJobID=2, TimeLimit="9:00")), table(RUNS)),
    several(table(sinfo("n1")), table(sinfo("n2", "other"))),
    several(table("2|0"), st.sampled_from(["4|-7", "4|0", "4|60"])),
)
