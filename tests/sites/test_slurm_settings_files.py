"""The files to install: Lua orders as Python does in each mode, and keeps the site's own rule in effect."""

import re
import subprocess
from pathlib import Path

import pytest
from lua import LIBRARIES, NONE, SLURM, run_lua
from slurm_factors import Submission, site_factor

from pipeline.errors import UserError
from pipeline.sites.slurm_config import SlurmConfig, SlurmPartition
from pipeline.sites.slurm_settings import (
    ExpectedWaits,
    SlurmOrder,
    formula,
    named_order,
    plan_settings,
    settings_files,
    users_table,
)

LEARNED = SlurmOrder(28_800.0, 0.83, 0.31, 0.4, {"long": 0.6, "gpu-a": -0.2}, {"ann": 321.5, "b.c": 1e5}, 1234.5)
PART_LIST = """local parts = {
  work = {default_time = slurm.NO_VAL, max_time = slurm.INFINITE, flag_default = 1},
  long = {default_time = 30, max_time = 120, flag_default = 0},
  ["gpu-a"] = {default_time = slurm.NO_VAL, max_time = 90, flag_default = 0}}
"""
PARTITIONS = (
    SlurmPartition("work", True, None, None, 1, 1, "n1", 8),
    SlurmPartition("long", False, 1800.0, 7200.0, 1, 1, "n1", 8),
    SlurmPartition("gpu-a", False, None, 5400.0, 1, 1, "n1", 8),
)
WAITS = ExpectedWaits(3600.0, 7200.0, 10_800.0), ExpectedWaits(1800.0, 9000.0, 7200.0)
needs_lua = pytest.mark.skipif(not LIBRARIES, reason=NONE)


def texts(
    folder: Path, order: SlurmOrder = LEARNED, mode: str = "enforce", only: tuple[str, ...] = ()
) -> dict[str, str]:
    """Write the files as a site would, and return their texts."""
    config = SlurmConfig({"SLURM_CONF": f"{folder}/slurm.conf"}, partitions=PARTITIONS)
    found = settings_files(plan_settings(order, config, 86_400), *WAITS) | {"job_order.mode": f"{mode}\n"}
    partitions = "".join(f'["{name}"] = true' for name in only)
    found["job_submit.lua"] = found["job_submit.lua"].replace("ONLY = {}", f"ONLY = {{{partitions}}}")
    for name, text in found.items():
        (folder / name).write_text(text)
    return found


def ran(folder: Path, code: str, library: str = "lua5.1") -> list[str]:
    """Load job_submit.lua as slurmctld does, run some code, and return its result and the messages."""
    load = f'assert(loadfile("{folder}/job_submit.lua"))()\n'
    return run_lua(f"{SLURM}{PART_LIST}{load}local function run()\n{code}\nend\nlocal found = tostring(run())\n"
                   'return found .. "\\n" .. table.concat(said, "\\n")', library).splitlines()  # fmt: skip


JOBS = [
    Submission(number, limit, cpus, partitions, user)
    for number, (limit, cpus, partitions, user) in enumerate(
        (limit, cpus, partitions, user)
        for limit in (None, 60.0, 420.0, 86_400.0, 365 * 86_400.0)
        for cpus in (1, 3, 96)
        for partitions in ((), ("work",), ("long",), ("work", "long"), ("gpu-a",))
        for user in ("ann", "b.c", "new")
    )
]


@needs_lua
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("order", [LEARNED, named_order("limit", 28_800), named_order("area", 14_400)])
def test_lua_and_python_agree_on_every_job(tmp_path: Path, order: SlurmOrder, library: str) -> None:
    texts(tmp_path, order)
    settings = plan_settings(order, SlurmConfig({}, partitions=PARTITIONS), 86_400)
    code = ["local found = {}"]
    for job in JOBS:
        fields = [f"min_cpus = {job.cpus}", f'user_name = "{job.user}"']
        fields += [f"time_limit = {job.limit_s / 60:.0f}"] if job.limit_s else []
        fields += [f'partition = "{",".join(job.partitions)}"'] * bool(job.partitions)
        code.append(f"do local d = job{{{', '.join(fields)}}} slurm_job_submit(d, parts, 0) "
                    'found[#found + 1] = string.format("%.0f", d.site_factor) end')  # fmt: skip
    found = ran(tmp_path, "\n".join([*code, 'return table.concat(found, " ")']), library)[0]
    assert list(map(int, found.split())) == [site_factor(settings, job) for job in JOBS]


SUBMIT = 'local d = job{time_limit = 60, user_name = "ann", partition = "long"} slurm_job_submit(d, parts, 0) '


@needs_lua
def test_observe_logs_and_sets_nothing_and_advise_tells_the_user(tmp_path: Path) -> None:
    texts(tmp_path, mode="observe")
    factor, *said = ran(tmp_path, SUBMIT + "return d.site_factor == slurm.NO_VAL")
    assert factor == "true"
    assert len(said) == 1
    assert re.fullmatch(r"job order \(observe\): user=ann partition=long minutes=60 cpus=1 site_factor=\d+", said[0])
    texts(tmp_path, mode="advise")
    factor, *said = ran(tmp_path, SUBMIT + "return d.site_factor == slurm.NO_VAL")
    assert factor == "true"
    assert said[1].startswith("user: Planned order of jobs: half the time limit would count as much as 4.6 hours")


@needs_lua
def test_the_priority_is_never_set(tmp_path: Path) -> None:
    text = texts(tmp_path)["job_submit.lua"]
    assert re.findall(r"desc\.(\w+) = ", text) == ["site_factor"]
    assert ran(tmp_path, SUBMIT + "return d.priority")[0] == "nil"


@needs_lua
def test_off_or_no_mode_leaves_the_rule_of_the_site(tmp_path: Path) -> None:
    texts(tmp_path)
    (tmp_path / "job_order.mode").write_text("off\n")
    assert ran(tmp_path, SUBMIT + "return d.site_factor == slurm.NO_VAL") == ["true"]
    (tmp_path / "job_order.mode").unlink()
    assert ran(tmp_path, SUBMIT + "return d.site_factor == slurm.NO_VAL") == ["true"]
    (tmp_path / "job_order.mode").write_text("enforce")
    assert ran(tmp_path, SUBMIT + "return d.site_factor == slurm.NO_VAL")[0] == "false"


@needs_lua
def test_the_rule_of_the_site_is_called_first_and_may_refuse(tmp_path: Path) -> None:
    texts(tmp_path)
    (tmp_path / "job_submit_site.lua").write_text("""
function slurm_job_submit(desc, parts, uid)
  if desc.time_limit == 60 then return 7 end
  if desc.time_limit == 61 then desc.site_factor = 5 end
  desc.comment = "seen"
  return slurm.SUCCESS
end
function slurm_job_modify(desc, rec, parts, uid) return 8 end
return slurm.SUCCESS
""")
    code = "local d = job{time_limit = %d} local result = slurm_job_submit(d, parts, 0) "
    shown = 'return table.concat({result, tostring(d.comment), d.site_factor}, " ")'
    assert ran(tmp_path, code % 60 + shown) == ["7 nil 4294967294"]
    assert ran(tmp_path, code % 61 + shown) == ["0 seen 5"]
    assert re.fullmatch(r"0 seen \d{4,5}", ran(tmp_path, code % 62 + shown)[0])
    assert ran(tmp_path, "return slurm_job_modify(change{}, {job_state = 0}, parts, 0)") == ["8"]


@needs_lua
def test_an_error_of_ours_refuses_no_job(tmp_path: Path) -> None:
    texts(tmp_path)
    found = ran(tmp_path, "return slurm_job_submit(job{min_cpus = {}}, parts, 0)")
    assert found[0] == "0"
    assert found[1].startswith("error: job order: ")
    assert "number expected" in found[1]


@needs_lua
def test_a_table_of_users_that_cannot_be_read_is_logged(tmp_path: Path) -> None:
    texts(tmp_path)
    (tmp_path / "job_order_users.lua").write_text("return {")
    factor, *said = ran(tmp_path, SUBMIT + "return d.site_factor == slurm.NO_VAL")
    assert factor == "false"
    assert said[0].startswith("error: job order: ")


RECORD = """local rec = {min_cpus = 2, min_nodes = 1, time_limit = 60, partition = "long", job_state = %s,
  site_factor = %s, submit_time = 0}
local d = change{%s, user_name = "ann"} slurm_job_modify(d, rec, parts, 0) return string.format("%%.0f", d.site_factor)
"""
NOT_SET = "4294967294"


@needs_lua
@pytest.mark.parametrize(
    ("state", "now", "changed", "job"),
    [
        (0, 5, "time_limit = 30", Submission(1, 1800, 2, ("long",), "ann", 15)),
        (0, 5, "min_cpus = 8", Submission(1, 3600, 8, ("long",), "ann", 15)),
        (0, 5, "min_nodes = 3", Submission(1, 3600, 3, ("long",), "ann", 15)),
        (0, 5, 'partition = "work"', Submission(1, 3600, 2, ("work",), "ann", 15)),
        (0, 0, "nice = 0", Submission(1, 3600, 2, ("long",), "ann", 15)),  # a job submitted before the installation
        (0, 5, "nice = 0", None),
        (1, 5, "time_limit = 30", None),  # a running job
        (1024 + 0, 5, "time_limit = 30", Submission(1, 1800, 2, ("long",), "ann", 15)),  # requeued: a flag, and waiting
    ],
)
def test_a_changed_job_gets_the_factor_of_its_new_request(
    tmp_path: Path, state: int, now: int, changed: str, job: Submission | None
) -> None:
    texts(tmp_path)
    settings = plan_settings(LEARNED, SlurmConfig({}, partitions=PARTITIONS), 86_400)
    found = ran(tmp_path, RECORD % (state, now, changed))[0]
    assert found == (NOT_SET if job is None else str(site_factor(settings, job)))


@needs_lua
def test_only_some_partitions_may_be_ordered(tmp_path: Path) -> None:
    texts(tmp_path, only=("long",))
    code = 'local d = job{partition = "%s"} slurm_job_submit(d, parts, 0) return d.site_factor == slurm.NO_VAL'
    assert [ran(tmp_path, code % name)[0] for name in ("long", "work", "work,long")] == ["false", "true", "true"]


def test_the_lines_keep_other_weights_and_say_what_a_doubling_costs() -> None:
    weights = {"Age": 100_000, "FairShare": 1_000_000, "QOS": 0}
    printed = {"PriorityWeightAge": "100000", "JobSubmitPlugins": "(null)", "PriorityMaxAge": "7-00:00:00"}
    config = SlurmConfig(printed, weights=weights, job_submit_plugins=("require_timelimit",))
    found = settings_files(plan_settings(named_order("limit", 28_800), config, 86_400), *WAITS)
    lines = found["slurm.conf.lines"].splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "JobSubmitPlugins=require_timelimit,lua",
        "PriorityType=priority/multifactor",
        "PriorityWeightAge=200000",
        "PriorityMaxAge=14-00:00:00",
    ]
    assert "# Kept: PriorityWeightFairShare=1000000." in lines
    assert any(
        "costs 3301 points, as much as 5.5 h of waiting, 0.33 % of PriorityWeightFairShare" in line for line in lines
    )
    assert any(line.startswith("# Jobs stop aging after PriorityMaxAge, 14 days") for line in lines)
    assert "   JobSubmitPlugins: no line\n   PriorityType=unknown\n   PriorityWeightAge=100000" in found["rollback.sh"]


def test_instructions_say_where_to_stop_and_name_all_modes() -> None:
    found = settings_files(plan_settings(LEARNED, SlurmConfig({}), 86_400), *WAITS)
    text = found["instructions.txt"]
    assert re.search(r"Stop .* 1\.1 +2\.8 +3\.3$", text, re.MULTILINE)  # 1.1 times the larger of 1 and 0.5, and so on
    assert [line.split()[0] for line in text.splitlines() if re.match("[a-z]", line)] == [
        "observe",
        "advise",
        "enforce",
    ]
    assert "job_order_users.lua" in text
    assert not [name for name, text in found.items() if "@{" in text]


def test_commands_of_the_instructions_compute_waits_and_run_times(tmp_path: Path) -> None:
    """Run the awk of both commands on sacct's output."""
    text = settings_files(plan_settings(LEARNED, SlurmConfig({}), 86_400), *WAITS)["instructions.txt"]
    (tmp_path / "sacct").write_text('#!/bin/sh\ncat "$ROWS"\n')
    (tmp_path / "sacct").chmod(0o755)
    rows = {"waits": "1000|4600\n1000|8200\nUnknown|5\n1000|37000\n", "users": "ann|2026-01-02|30\nann|2026-01-01|10\n"
            "ann|2026-01-03|50\nb|2026-01-01|7\n"}  # fmt: skip
    said = {}
    for name, begin in (("waits", "SLURM_TIME_FORMAT"), ("users", "sacct")):
        command = re.search(rf"^  {begin}.*?(?=> /etc|^$)", text, re.MULTILINE | re.DOTALL)
        assert command
        (tmp_path / name).write_text(rows[name])
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ROWS": str(tmp_path / name)}
        said[name] = subprocess.run(
            ["sh", "-c", command[0]], env=environment, capture_output=True, text=True, check=True
        )
    assert said["waits"].stdout == "3 jobs: mean 4.3 h, p99 2.0 h, longest 10.0 h\n"
    assert said["users"].stdout == 'return {\n["ann"] = 40,\n["b"] = 7,\n}\n'


def test_names_that_are_no_login_names_are_refused() -> None:
    with pytest.raises(UserError, match=r"found 'a\"\] = os'"):
        users_table({'a"] = os': 1.0})


def test_a_learned_order_is_described() -> None:
    assert formula(SlurmOrder(3600.0, 0.5, past=1.0, partitions={"a": 1.0})) == (
        "0.5 ln(limit) + ln(user's last run times) + a number per partition - wait / 1 h, the lowest first"
    )
