"""Quotas from the tables that `sacctmgr --parsable2` prints."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from pipeline.accounting.quotas import read_quotas
from pipeline.core.config.evaluation import Quota
from pipeline.errors import UserError

# Output of Slurm 22.05.
QOS = """\
Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|GrpTRESMins|\
GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|\
MaxTRESPA|MaxJobsPA|MaxSubmitPA|MinTRES
normal|0|00:00:00|||cluster|||1.000000|||||||||||||||||
long|50|00:00:00|||cluster|NoReserve||1.000000|cpu=512,mem=2T,node=9|||40|||||||cpu=64|3|||||
short|10|00:00:00|||cluster|||1.000000|||||||||||||||6||
"""
FEW = "Name|Priority|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA\n"
ASSOCIATIONS = "Account|User|ParentName|GrpJobs|GrpTRES|MaxJobs\n"
NUMBERS = {"root": 1, "physics": 2, "theory": 3, "bio": 4, "ann": 5, "bob": 6}


def numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: NUMBERS[name] for name in names}


def read(tmp_path: Path, text: str) -> tuple[list[Quota], dict[str, int], list[str]]:
    (tmp_path / "said.txt").write_text(text)
    found, priorities, _, lines = read_quotas(tmp_path / "said.txt", numbers)
    return found, priorities, [line.removeprefix(f"{tmp_path}/said.txt: ") for line in lines]


def test_a_qos_has_quotas_of_all_of_each_user_and_of_each_account(tmp_path: Path) -> None:
    found, priorities, lines = read(tmp_path, QOS)
    assert found == [
        Quota(qos="long", cpus=512, jobs=40),
        Quota(qos="long", each="user", cpus=64, jobs=3),
        Quota(qos="short", each="account", jobs=6),
    ]
    assert priorities == {"normal": 0, "long": 50, "short": 10}
    assert lines == [f"1 limits not replayed: {what}" for what in ("Flags", "GrpTRES of mem", "GrpTRES of node")]


def test_a_quota_of_an_account_holds_for_those_below_and_its_most_jobs_are_those_of_each_user(tmp_path: Path) -> None:
    rows = (
        "root||||cpu=900|9\nroot|root||||9\nphysics||root|20|cpu=100|9\nphysics|ann||||4\nphysics|bob|||cpu=7|9\n"
        "theory||physics|0|cpu=30,gres/gpu=2|2\nbio||root|||\n"
    )
    found, priorities, lines = read(tmp_path, ASSOCIATIONS + rows)
    assert found == [
        Quota(cpus=900),
        Quota(accounts=("2", "3"), cpus=100, jobs=20),
        Quota(each="association", accounts=("2",), users=(5,), jobs=4),
        Quota(accounts=("2",), users=(6,), cpus=7),
        Quota(accounts=("3",), cpus=30),
        Quota(each="association", accounts=("1", "2"), jobs=9),
        Quota(each="association", accounts=("3",), jobs=2),
    ]
    assert priorities == {}
    assert lines == [
        "1 limits not replayed: GrpJobs of 0, which blocks all jobs",
        "1 limits not replayed: GrpTRES of gres/gpu",
    ]


def test_limits_of_root_need_no_key_and_hold_for_all_accounts(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("\ufeff" + ASSOCIATIONS + "root|||5||\nbio||root|||\n")
    found, _, users, lines = read_quotas(tmp_path / "said.txt", lambda names: pytest.fail("the key is not needed"))
    assert (found, users, lines) == ([Quota(jobs=5)], 0, [])


def test_a_qos_may_replace_that_of_the_partition(tmp_path: Path) -> None:
    found, _, lines = read(tmp_path, QOS.replace("NoReserve", "OverPartQOS"))
    assert [one.over_partition for one in found] == [True, True, False]
    assert "1 limits not replayed: Flags" not in lines
    assert "1 limits not replayed: Flags" in read(tmp_path, QOS.replace("NoReserve", "NoReserve,OverPartQOS"))[2]


def test_associations_of_users_are_counted(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(ASSOCIATIONS + "root|||||\nbio||root|||\nbio|ann||||\nbio|bob||||\n")
    assert read_quotas(tmp_path / "said.txt", numbers).users == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column Account: expected the output of 'sacctmgr --parsable2 show qos' or "),
        ("Name|Priority|GrpTRES\n", "no column GrpJobs"),
        (FEW + "long|5|cpu=4\n", "line 2: expected 8 columns with bars between them"),
        (FEW + "long|5|cpu=many|||||\n", "line 2: GrpTRES: expected a whole number, found 'many'"),
        (FEW + "long|high||||||\n", "line 2: Priority: expected a whole number, found 'high'"),
        (ASSOCIATIONS + "root|||||\nbio||root|||\nroot|||||\n", "expected associations of one cluster, found several"),
    ],
)
def test_other_texts_are_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=r"^.*said\.txt.*$") as error:
        read(tmp_path, text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
