"""sacctmgr's output on drained, down and reserved nodes, and lists of nodes."""

from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.logs.slurm import MOST_NODES, Outage, expand_hostlist, read_outages
from pipeline.errors import UserError

EVENTS = (
    "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    "c||2026-01-01T00:00:00|2026-01-02T00:00:00||Cluster processor count|\n"
    'c|n1|2026-01-01T00:00:00|2026-01-01T01:00:00|DRAIN|disk "sda"|root(0)\n'
    "c|n2|2026-01-01T00:00:30|Unknown|DOWN*|Not responding|slurm(64030)\n"
)
RESERVATIONS = (
    "Name|TimeStart|TimeEnd|NodeName|Flags\n"  # Slurm's name for NodeNames (src/sacctmgr/common.c)
    "spring|2026-01-01T02:00:00|2026-01-01T03:00:00|n[1-2]|MAINT,SPEC_NODES\n"
    "course|2026-01-01T02:00:00|2026-01-01T03:00:00|n3|SPEC_NODES\n"
)
YEAR = 1_767_225_600.0  # 2026-01-01T00:00:00 UTC


def read(folder: Path, text: str) -> tuple[list[Outage], int]:
    (folder / "out.txt").write_text(text)
    return read_outages(folder / "out.txt")


def test_events_of_nodes_are_outages_that_nobody_knew_before(tmp_path: Path) -> None:
    found = [Outage("n1", YEAR, YEAR + 3600, False), Outage("n2", YEAR + 30, inf, False)]
    assert read(tmp_path, EVENTS) == (found, 0)


def test_blank_lines_zones_and_lists_of_any_length_are_read(tmp_path: Path) -> None:
    names = ",".join(f"node{k:05}" for k in range(18_000))
    zoned = EVENTS.replace("2026-01-01T00:00:30", "2026-01-01T02:00:30+02:00").replace("|n1|", f"|{names}|")
    found, _ = read(tmp_path, f"{zoned}\n\n")
    assert (len(found), found[-1].begin) == (18_001, YEAR + 30)


def test_reservations_for_maintenance_are_announced_and_others_are_counted(tmp_path: Path) -> None:
    found = [Outage(node, YEAR + 7200, YEAR + 10800, True) for node in ("n1", "n2")]
    assert read(tmp_path, RESERVATIONS) == (found, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column TimeStart: expected the output of 'sacctmgr"),
        ("JobID|State\n1|FAILED\n", "no column TimeStart: expected the output of 'sacctmgr"),
        (RESERVATIONS.replace("|Flags", "|Other"), "no column Flags: expected the output of 'sacctmgr"),
        (EVENTS.replace("|State", "|Other"), "no column Flags: expected the output of 'sacctmgr"),
        (EVENTS.replace("|slurm(64030)", ""), "line 4: expected 7 columns with bars between them"),
        (
            EVENTS.replace("2026-01-01T00:00:30", "01/01/26"),
            "line 4: TimeStart: expected a time as 2026-01-31T",
        ),
        (EVENTS.replace("|n2|", "|n[2|"), "line 4: expected a list of nodes, found 'n[2'"),
        (EVENTS.replace("Unknown", "2025-01-01T00:00:00"), "line 4: expected TimeStart before TimeEnd, found '2026-"),
        (EVENTS.replace("2026-01-01T00:00:30", "Unknown"), "line 4: expected TimeStart before TimeEnd, found 'Unkno"),
    ],
)
def test_another_text_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["n[1", "n1]", "n[3-1]", "n[a]", "n[1-99999]", "n1,,n2", ",", "n[1-200]x[1-200]", "n[]"]
)
def test_what_is_no_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"^(expected a list of nodes, found '|a list of more than 20000 nodes)"):
        expand_hostlist(text)


def test_no_node_is_an_empty_list() -> None:
    assert expand_hostlist("") == []


@given(text=st.text(alphabet="n[]0123456789-,x", max_size=14))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        found = expand_hostlist(text)
    except UserError:
        return
    assert len(found) <= MOST_NODES
    assert all(name and not set(name) & set("[],") for name in found)
