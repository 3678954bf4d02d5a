"""`site`: what it writes into params.yaml, and what it refuses before writing."""

from pathlib import Path
from typing import Any

import pytest
from builders import REPOSITORY
from commands import Command
from ruamel.yaml import YAML
from swf_lines import line

from pipeline.core.config import Backfilling, MachinesLog, Partition, check_params, load_params
from pipeline.core.config.evaluation import Qos, Quota
from pipeline.core.storage import link_log
from pipeline.sites.evidence import SiteLog

DAY_S = 86_400
LIMITS, NONE = 3_600, -1


def log(
    path: Path, days: int, gap: int = 2_160, limit: int = LIMITS, size: int = 4, run: int = 900, processors: int = 8
) -> Path:
    """Write a log; by default, jobs of 15 minutes on 4 of 8 processors, one every 36 minutes."""
    count = days * DAY_S // gap
    rows = [line(k + 1, submit=k * gap, run=run, allocated=size, estimate=limit) for k in range(count)]
    path.write_text(f"; MaxProcs: {processors}\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CTC-SP2", "got 'CTC-SP2'; 'ctc_sp2' would be one"),
        ("2nd", "got '2nd'; 'site_2nd' would be one"),
        ("", "got ''; 'site' would be one"),
        ("a/b", "got 'a/b'; 'a_b' would be one"),
        ("true", "got 'true'; 'site_true' would be one"),
        ("a" * 61, f"got '{'a' * 60}'; '{'a' * 60}' would be one"),
        ("online", "params.yaml has scenario 'online'"),
        ("deeprm3", "params.yaml has policy 'deeprm3'"),
        ("deepk8s", "params.yaml has policy 'deepk8s_ppo'"),
    ],
)
def test_a_name_that_params_yaml_cannot_hold_is_refused_and_nothing_is_written(
    place: Path, command: Command, name: str, said: str
) -> None:
    before = (place / "params.yaml").read_bytes()
    done = command("site", str(log(place / "ours.swf", 60)), "--name", name)
    assert done.code == 2
    assert done.err.startswith("error: --name")
    assert said in done.err
    assert "\n" not in done.err.strip()
    assert (place / "params.yaml").read_bytes() == before


def test_what_would_not_be_valid_afterwards_is_not_written(place: Path, command: Command) -> None:
    text = (place / "params.yaml").read_text().replace("algorithm: ppo", "algorithm: evolution", 1)
    text = text.replace("recipes:\n", "recipes:\n  # one of another algorithm\n", 1)
    raw: Any = YAML(typ="safe").load(text)
    raw["recipes"]["ppo"] = raw["recipes"]["dagger"]
    raw["agents"].pop("deepk8s_ppo")
    raw.pop("plans", None)
    with (place / "params.yaml").open("w") as stream:
        YAML().dump(raw, stream)
    before = (place / "params.yaml").read_bytes()
    done = command("site", str(log(place / "ours.swf", 60)), "--name", "mine", "--agent")
    assert (done.code, (place / "params.yaml").read_bytes()) == (2, before)
    assert "agents.mine_ppo.finetune.recipe: 'ppo' is one of dagger, not of ppo" in done.err


def test_a_longer_log_of_the_same_name_changes_what_follows_from_it_and_no_edit_of_the_user(
    place: Path, command: Command
) -> None:
    """Half of 8 processors for 900 s of every 2,160 s are 21 %; of every 1,080 s they are 42 %."""
    params = place / "params.yaml"
    assert command("site", str(log(place / "ours.swf", 60)), "--name", "mine", "--agent").code == 0
    text = params.read_text()
    for old, new in (
        ("    slots: 64\n", "    slots: 32   # narrow windows\n"),
        ("    pause: 16\n    time_limit: 1000000\n", "    pause: 8\n    time_limit: 1000000\n"),
        ("    today: fcfs\n", "    # since May\n    today: sjf\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    params.write_text(text)
    done = command("site", str(log(place / "longer.swf", 120, gap=1_080)), "--name", "mine")
    assert done.err == ""  # quiet; the answer is on stdout
    assert [row for row in done.out.splitlines() if row.startswith("params.yaml: ")] == [
        "params.yaml: changed scenarios.mine.workload.path: longer.swf, before ours.swf",
        "params.yaml: changed scenarios.mine.loads: [42], before [21]",
        "params.yaml: changed scenarios.mine.jobsets.test: 15, before 20",
        "params.yaml: changed agents.mine_ppo.finetune.loads: [42], before [21]",
        "params.yaml: added gate.fewer.mine: 15",
    ]
    wanted = text.replace("path: ours.swf", "path: longer.swf").replace("[21]", "[42]")
    wanted = wanted.replace("overload: 10}", "overload: 10, mine: 15}")
    ours = wanted.index("  mine:\n")
    assert params.read_text() == wanted[:ours] + wanted[ours:].replace("test: 20}", "test: 15}", 1)
    again = command("site", "longer.swf", "--name", "mine").out
    assert "params.yaml: its rows are those of this log" in again


def test_the_gate_asks_a_site_for_as_many_windows_as_its_log_has_independent_ones(
    place: Path, command: Command
) -> None:
    """Of 120 days with 9,600 jobs, the last 48 days less a gap are tested: 15 blocks of three days, 19 windows."""
    done = command("site", str(log(place / "ours.swf", 120, gap=1_080)), "--name", "mine", "--agent")
    assert done.code == 0
    assert "no agent can pass" not in done.err
    found = load_params()
    assert found.scenario("mine").jobsets.test == found.rules.needed("mine") == 15
    assert found.rules.needed("online") == 100


def test_a_log_with_too_few_windows_for_the_gate_says_so_at_once(place: Path, command: Command) -> None:
    """Of 60 days the last 24 are tested: 8 blocks, or 4 windows of 200 jobs out of 960."""
    done = command("site", str(log(place / "ours.swf", 60)), "--name", "mine", "--agent")
    assert "gate: mine: no agent can pass: 4 windows of the test period are independent, too few" in done.err
    assert "gate: mine: no candidate can pass: 100 independent jobsets a load are needed" in command("check").err


def test_an_agent_is_added_on_request_and_stays(place: Path, command: Command) -> None:
    assert command("site", str(log(place / "ours.swf", 60)), "--name", "mine").code == 0
    assert load_params().sites["mine"].today == "fcfs"
    assert "mine_ppo" not in load_params().agents
    assert "no agent can pass" not in command("site", "ours.swf", "--name", "mine").err
    done = command("site", "ours.swf", "--name", "mine", "--agent")
    assert "params.yaml: added agents.mine_ppo" in done.out
    assert "params.yaml: its rows are those of this log" in command("site", "ours.swf", "--name", "mine").out
    assert load_params().agents["mine_ppo"].scenario == "mine"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"run": 9_000}, "load: 208% of 8 cpu, from the first arrival to the last end"),  # 4 of 8, 9,000 s per 2,160 s
        ({"size": 9}, "fit on no machine"),
    ],
)
def test_a_log_that_its_machines_cannot_have_run_stops_unless_the_user_is_sure(
    place: Path, command: Command, wrong: dict[str, int], said: str
) -> None:
    path, before = log(place / "ours.swf", 60, **{"limit": 90_000, **wrong}), (place / "params.yaml").read_bytes()
    done = command("site", str(path), "--name", "mine")
    assert done.code == 2
    assert said in done.err.splitlines()[-1]
    assert (place / "params.yaml").read_bytes() == before
    if "run" in wrong:
        assert command("site", str(path), "--name", "mine", "--yes").code == 0
        assert load_params().machines_scenario("mine").workload.accept == ("load", "size")  # type: ignore[union-attr]


def test_many_jobs_that_fit_on_no_machine_stop_a_site(place: Path, command: Command) -> None:
    """Every tenth job requests 9 processors; --machines names 8."""
    rows = [
        line(k + 1, submit=k * 2_160, run=900, allocated=9 if k % 10 == 0 else 4, estimate=LIMITS) for k in range(2_400)
    ]
    (place / "ours.swf").write_text("; MaxProcs: 16\n" + "\n".join(rows) + "\n")
    done = command("site", "ours.swf", "--name", "mine", "--machines", "1 cpu=8")
    assert done.code == 2
    assert "misfits: 10% of the jobs, with 20% of the work, fit on none of the machines" in done.err.splitlines()[-1]


CONFIG = """PriorityType = priority/multifactor
PriorityWeightAge = 1000
PriorityWeightFairShare = 20000
PriorityWeightQOS = 50
SchedulerParameters = bf_max_job_test=200,bf_interval=20,bf_resolution=600
"""


def test_the_configuration_of_a_slurm_gives_the_present_order(place: Path, command: Command) -> None:
    (place / "config.txt").write_text(CONFIG)
    words = ("site", str(log(place / "ours.swf", 60)), "--name", "ours", "--config")
    done = command(*words, "config.txt")
    assert done.code == 0
    assert "not modelled: PriorityWeightQOS=50: a term of the priority, not replayed" in done.out + done.err
    found = load_params().sites["ours"]
    assert found.today == "multifactor"
    assert found.slurm is not None
    assert (found.slurm.age, found.slurm.fair_share, found.slurm.half_life_days) == (1000, 20_000, 7)
    assert (found.backfill.reservations, found.backfill.tested, found.backfill.interval_s) == (200, 200, 20)
    assert "not modelled: SchedulerParameters=bf_resolution=600: not replayed" in done.out + done.err
    (place / "config.txt").write_text(CONFIG.replace("multifactor", "basic"))
    done = command(*words, "config.txt")
    assert (done.code, "only the order of submission is replayed, 'today: fcfs'" in done.out + done.err) == (0, True)
    assert load_params().sites["ours"] == found  # a cluster that orders by submission does not change the order
    (place / "config.txt").write_text(CONFIG.replace("bf_max_job_test=200,bf_interval=20,", ""))
    assert command(*words, "config.txt").code == 0
    assert load_params().sites["ours"].backfill == Backfilling()  # Slurm's defaults are back
    (place / "nodes.txt").write_text("NodeName=n1\n")
    (place / "many.txt").write_text(CONFIG.replace("=200", "=many"))
    for wrong in ("nodes.txt", "gone.txt", "many.txt"):
        done = command(*words, wrong)
        assert (done.code, done.err.count("\n"), done.err.partition(wrong)[0]) == (2, 1, "error: ")


def test_partitions_of_a_slurm_give_tiers_and_the_weight_of_their_factors(place: Path, command: Command) -> None:
    (place / "config.txt").write_text(CONFIG + "PriorityWeightPartition = 700\n")
    (place / "parts.txt").write_text(
        "PartitionName=work\n   PriorityJobFactor=1 PriorityTier=1\n\n"
        "PartitionName=gpu-long\n   PriorityJobFactor=4 PriorityTier=2\n"
    )
    words = ("site", str(log(place / "ours.swf", 60)), "--name", "ours")
    done = command(*words, "--partitions", "parts.txt")
    assert (done.code, "not modelled" in done.out + done.err) == (0, False)
    found = load_params().sites["ours"]
    assert found.partitions == {"work": Partition(), "gpu-long": Partition(tier=2, factor=4)}
    assert (found.today, found.slurm) == ("fcfs", None)
    done = command(*words, "--partitions", "parts.txt", "--config", "config.txt")
    assert (done.code, "PriorityWeightPartition" in done.out + done.err) == (0, False)
    assert load_params().sites["ours"].slurm.partition == 700  # type: ignore[union-attr]
    done = command(*words, "--config", "config.txt")
    assert "not modelled: PriorityWeightPartition=700: a term of the priority, not replayed" in done.out + done.err
    (place / "parts.txt").write_text("PartitionName=work PriorityTier=two\n")
    done = command(*words, "--partitions", "parts.txt")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("error: parts.txt: scontrol show partition, work: PriorityTier: expected a whole number")


def test_quotas_of_a_partitions_qos_are_replayed_if_they_are_known(place: Path, command: Command) -> None:
    rows = [f"{10**9 + 2_160 * k},0,900,3600,1,1,4,1,0,{'cpu' if k % 3 else 'big'}" for k in range(2_400)]
    head = "submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition"
    (place / "log.csv").write_text("\n".join([head, *rows]) + "\n")
    (place / "parts.txt").write_text("PartitionName=cpu\n   QoS=N/A\n\nPartitionName=big\n   QoS=heavy\n")
    (place / "qos.txt").write_text(
        "Name|Priority|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA\nheavy|0|cpu=4|||||\n"
    )
    words = ("site", "log.csv", "--name", "ours", "--machines", "1 cpu=8,memory=64", "--partitions", "parts.txt")
    done = command(*words)
    assert "not modelled: QoS=heavy: quotas of partitions, not replayed: 'site --quotas'" in done.out + done.err
    done = command(*words, "--quotas", "qos.txt")
    assert (done.code, "not modelled" in done.out + done.err) == (0, False)
    assert "1 of 1 quotas of QOS and accounts apply to the log" in done.out + done.err
    assert load_params().sites["ours"].partitions == {"cpu": Partition(), "big": Partition(qos="heavy")}
    link_log(load_params())
    queue = SiteLog(load_params(), "ours").periods["train"].queue
    assert (queue.counted[:4].tolist(), queue.most.tolist()) == ([[0], [-1], [-1], [0]], [4])
    before = (place / "params.yaml").read_bytes()
    (place / "qos.txt").write_text((place / "qos.txt").read_text() + "long|0|cpu=2|||||\n")
    done = command(*words, "--quotas", "qos.txt")
    assert (done.code, "the log does not name the QOS of its jobs" in done.err) == (2, True)
    assert (place / "params.yaml").read_bytes() == before
    (place / "parts.txt").write_text("PartitionName=cpu\n   QoS=heavy\n\nPartitionName=big\n   QoS=N/A\n")
    assert command(*words).code == 0
    assert load_params().sites["ours"].partitions == {"cpu": Partition(qos="heavy"), "big": Partition()}


def test_quotas_and_priorities_of_qos_are_read_and_replayed(place: Path, command: Command) -> None:
    rows = [f"{10**9 + 2_160 * k},0,900,3600,1,1,4,1,0,cpu,{7 + k % 2},{'long' if k % 3 else ''}" for k in range(2_400)]
    head = "submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition"
    (place / "log.csv").write_text("\n".join([f"{head},account,qos", *rows]) + "\n")
    (place / "qos.txt").write_text(
        "Name|Priority|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA\nnormal|0||||||\nlong|40|cpu=4|||2||\n"
    )
    (place / "config.txt").write_text(CONFIG)
    words = ("site", "log.csv", "--name", "ours", "--machines", "1 cpu=8,memory=64")
    done = command(*words, "--quotas", "qos.txt", "--config", "config.txt")
    assert (done.code, "2 of 2 quotas of QOS and accounts apply to the log" in done.out + done.err) == (0, True)
    assert "PriorityWeightQOS" not in done.out + done.err
    site = load_params().sites["ours"]
    assert site.quotas == (Quota(qos="long", cpus=4), Quota(qos="long", each="user", jobs=2))
    assert site.qos == (Qos(name="normal", priority=0), Qos(name="long", priority=40))
    assert site.slurm is not None
    assert site.slurm.qos == 50
    enforced = "AccountingStorageEnforce=none: this cluster enforces no quotas, but they are replayed"
    assert enforced in done.out + done.err
    (place / "qos.txt").write_text((place / "qos.txt").read_text().replace("long", "other"))
    done = command(*words, "--quotas", "qos.txt")
    assert (done.code, done.err.splitlines()[-1].startswith("error: ")) == (2, True)
    assert "--quotas: none applies to the log: expected its QOS, and the key with which it was imported" in done.err
    link_log(load_params())
    queue = SiteLog(load_params(), "ours").periods["train"].queue
    assert queue.counted[:3].tolist() == [[-1, -1], [0, 1], [0, 1]]
    assert (queue.most.tolist(), queue.of_jobs.tolist(), queue.qos[:3].tolist()) == ([4, 2], [False, True], [0, 1, 1])
    associations = "Account|User|ParentName|GrpJobs|GrpTRES|MaxJobs\nroot|||||9\nbio||root||cpu=3|9\n"
    (place / "accounts.txt").write_text(associations)
    done = command(*words, "--quotas", "accounts.txt")
    assert (done.code, done.err) == (2, "error: users.key: cannot be read (No such file or directory)\n")
    (place / "accounts.txt").write_text(associations.replace("cpu=3", "").replace("9", "") + "bio|ann||||\n" * 3)
    (place / "qos.txt").write_text((place / "qos.txt").read_text().replace("other", "long"))
    for more in (("--quotas", "accounts.txt", "--quotas", "qos.txt"), ()):  # known users are kept
        assert command(*words, *more, "--config", "config.txt").code == 0
        assert load_params().sites["ours"].slurm == site.slurm.model_copy(update={"users": 3})
    before = (place / "params.yaml").read_bytes()
    (place / "log.csv").write_text("\n".join([head, *(row.rpartition(",")[0].rpartition(",")[0] for row in rows)]))
    done = command(*words)
    assert (done.code, "does not name the QOS of its jobs" in done.err) == (2, True)
    assert (place / "params.yaml").read_bytes() == before


def test_a_site_keeps_its_file_of_nodes_until_its_log_has_none(place: Path, command: Command) -> None:
    rows = [f"{10**9 + 2_160 * k},0,900,3600,1,1,4,1,{k % 2},{'gpu' if k % 2 else 'cpu'}" for k in range(60 * 40)]
    (place / "log.csv").write_text(
        "\n".join(["submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition", *rows]) + "\n"
    )
    (place / "nodes.txt").write_text(
        "NodeName=n1 CPUTot=8 RealMemory=8192 Gres=gpu:2 Partitions=gpu\n"
        "NodeName=n2 CPUTot=8 RealMemory=8192 Gres=(null) Partitions=cpu\n"
    )
    (place / "events.txt").write_text(
        "NodeName|TimeStart|TimeEnd|State\n"
        "n2|2001-09-09T01:46:41|2001-09-09T02:46:40|DRAIN\n"
        "n2|2001-10-01T00:00:00|Unknown|DOWN\n"
    )
    words = ("site", "log.csv", "--name", "ours")
    done = command(*words, "--nodes", "nodes.txt", "--outages", "events.txt")
    assert (done.code, "2 outages of 1 nodes, 0 of them announced" in done.out + done.err) == (0, True)
    found = load_params().machines_scenario("ours")
    assert isinstance(found.workload, MachinesLog)
    assert (found.workload.nodes, found.workload.outages) == ("nodes.txt", ("events.txt",))
    link_log(load_params())
    out = SiteLog(load_params(), "ours").periods["train"].queue.outages
    assert (out.machine.tolist(), out.begin[0], out.announced.tolist()) == ([1, 1], 1.0, [False, False])
    again = command(*words)
    assert "its rows are those of this log" in again.out + again.err
    assert load_params().machines_scenario("ours") == found
    other = ("site", str(log(place / "ours.swf", 60)), "--name", "ours")
    assert "the log has no resource 'memory'" in command(*other).err
    assert command(*other, "--machines", "1 cpu=8").code == 0
    later = load_params().machines_scenario("ours")
    assert isinstance(later.workload, MachinesLog)
    assert (later.workload.format, later.workload.nodes, later.workload.outages) == ("swf", None, ())


def test_outages_of_other_nodes_are_refused_before_the_log_is_described(place: Path, command: Command) -> None:
    before = (place / "params.yaml").read_bytes()
    (place / "events.txt").write_text("NodeName|TimeStart|TimeEnd|State\nn2|2001-09-09T01:46:41|Unknown|DRAIN\n")
    done = command("site", str(log(place / "ours.swf", 60)), "--name", "mine", "--outages", "events.txt", "--json")
    assert (done.code, done.out, (place / "params.yaml").read_bytes()) == (2, "", before)
    assert done.err.startswith("error: events.txt: expected outages of a log with a file of nodes (--nodes), found ")
    assert done.err.count("\n") == 1


def test_a_log_without_limits_needs_confirmation_and_is_said_to_assume_perfect_knowledge(
    place: Path, command: Command
) -> None:
    words = ("site", str(log(place / "ours.swf", 60, limit=NONE)), "--name", "mine")
    refused = command(*words)
    assert refused.code == 2
    assert "estimates: the log has no limits of run times" in refused.err.splitlines()[-1]
    assert "mine" not in load_params().sites
    done = command(*words, "--yes")
    assert done.code == 0
    assert load_params().machines_scenario("mine").policies_know == "durations"
    again = command(*words)
    assert (again.code, "its rows are those of this log" in again.out) == (0, True)
    assert "warning: the log has no run-time limits (estimates)" in done.err
    assert command("site", str(log(place / "theirs.swf", 60)), "--name", "theirs").err.count("warning") == 0


def test_numbers_of_the_gate_for_a_scenario_that_is_not_there_are_refused() -> None:
    raw: Any = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    raw["gate"]["fewer"]["onlin"] = 50
    with pytest.raises(Exception, match=r"^params\.yaml: gate\.fewer\.onlin: unknown 'onlin'; .*did you mean 'online'"):
        check_params(raw, "params.yaml")


@pytest.mark.parametrize("name", ["none.csv", "none.swf"])
def test_a_missing_log_is_said_to_be_missing(command: Command, name: str) -> None:
    done = command("site", name)
    assert (done.code, done.err) == (2, f"error: {name}: cannot be read (No such file or directory)\n")
