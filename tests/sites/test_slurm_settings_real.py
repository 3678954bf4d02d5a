"""A real slurmctld orders waiting jobs as Python does, job by job, until the rule is disabled or rolled back."""

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from slurm_factors import Submission, expected_order, site_factor

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm, slurm, why_not
from pipeline.sites.slurm_config import parse_config
from pipeline.sites.slurm_settings import ExpectedWaits, SlurmOrder, SlurmSettings, plan_settings, settings_files

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
ORDER = SlurmOrder(28_800.0, 0.9, 0.3, 0.2, {"long": 0.4}, {"root": 400.0, "nobody": 9000.0}, 1800.0)
WAITS = ExpectedWaits(3600.0, 7200.0, 86_400.0)
# The site: two partitions, its own priority weight, and its own rule, which sets a comment on each job.
SITE = """PriorityWeightPartition=100
JobSubmitPlugins=lua
PartitionName=long Nodes=n[1-4] MaxTime=300 DefaultTime=30 State=UP
"""
RULE = """
function slurm_job_submit(desc, parts, uid) desc.comment = "of the site" return slurm.SUCCESS end
function slurm_job_modify(desc, rec, parts, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""


class Installed(NamedTuple):
    """A cluster with the files, and the settings from which they are made."""

    slurm: LoopbackSlurm
    settings: SlurmSettings
    files: dict[str, str]

    def table(self, program: str, *options: str) -> list[list[str]]:
        """Return the words of each output line."""
        return [line.split() for line in self.slurm.ask(program, "--noheader", *options).splitlines()]

    def factors(self, *shown: int) -> dict[int, int]:
        """Return the site factor of each job that may start, once sprio lists the given jobs."""

        def rows() -> dict[int, int]:
            return {int(job): int(factor) for job, factor in self.table("sprio", "-o", "%i %S")}

        self.slurm.until(lambda: rows().keys() >= set(shown), f"that sprio shows {shown}")
        return rows()

    def priorities(self) -> dict[int, int]:
        """Return the priority of each waiting job."""
        rows = self.slurm.jobs().values()
        return {int(row["JobId"]): int(row["Priority"]) for row in rows if row["JobState"] == "PENDING"}

    def mode(self, word: str) -> None:
        """Set the mode with the command in the instructions."""
        (command,) = re.findall(rf"echo {word} > \S+", self.files["instructions.txt"])
        self.sh(command)

    def sh(self, script: str) -> None:
        subprocess.run(["sh", "-c", script], env=self.slurm.environment, check=True, capture_output=True, cwd="/tmp")

    def busy(self) -> str:
        """Empty the cluster, and let one job take all of it."""
        self.slurm.ask("scancel", "--user=root")
        self.slurm.ask("scancel", "--user=nobody")
        self.slurm.until(lambda: not self.slurm.states(), "no jobs")
        job = self.slurm.submit("sleep 600", "--time=10", "--nodes=4", "--exclusive")
        self.slurm.until(lambda: self.slurm.states()[job] == "R", "a job that runs")
        return job


def restart(cluster: LoopbackSlurm) -> None:
    (words,) = cluster.kill("slurmctld")
    cluster.begin(*words)
    cluster.until(lambda: cluster.ask("sinfo", "-hN", "-p", "work", "-o", "%t").split() == ["idle"] * 4, "idle nodes")


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    with slurm(Cluster(nodes=4, cpus=4)) as cluster:
        conf = cluster.folder / "slurm.conf"
        (cluster.folder / "job_submit.lua").write_text(RULE)
        conf.write_text(conf.read_text() + SITE)
        restart(cluster)
        config = parse_config(*(cluster.ask("scontrol", "show", name) for name in ("config", "partition", "node")))
        settings = plan_settings(ORDER, config, 2 * 86_400.0, scale=1000.0)
        files = settings_files(settings, WAITS, WAITS) | {"job_order.mode": "enforce\n"}
        (cluster.folder / "job_submit.lua").rename(cluster.folder / "job_submit_site.lua")
        for name, text in files.items():
            (cluster.folder / name).write_text(text)
        lines = files["slurm.conf.lines"]
        kept = [line for line in conf.read_text().splitlines() if not line.startswith(("PriorityType", "JobSubmit"))]
        conf.write_text("\n".join([*kept, lines]))
        restart(cluster)
        yield Installed(cluster, settings, files)


def submitted(site: Installed, seed: int, count: int, before: str) -> dict[int, Submission]:
    """Submit jobs of all kinds, and return them as Python records."""
    rng, found = random.Random(seed), {}
    for k in range(count):
        limit = rng.choice([None, None, 1, 2, 5, 30, 60, 119, 120, 240])
        nodes, tasks, per_task = rng.choice([1, 1, 2, 4]), rng.choice([1, 1, 3, 6]), rng.choice([1, 1, 2])
        partitions = rng.choice([(), ("work",), ("long",), ("work", "long")])
        user = rng.choice(["root", "root", "nobody"])
        tasks = min(max(nodes, tasks), 4 * nodes // per_task)
        options = [f"--nodes={nodes}", f"--ntasks={tasks}", f"--cpus-per-task={per_task}", f"--uid={user}", "--mem=1"]
        options += [f"--time={limit}"] * bool(limit) + [f"--partition={','.join(partitions)}"] * bool(partitions)
        options += ["--array=0-3"] * (k % 10 == 3) + [f"--dependency=afterok:{before}"] * (k % 10 == 7)
        options += ["--exclusive"] * (k % 10 == 9)
        job = int(site.slurm.submit("true", *options))
        found[job] = Submission(job, 60.0 * limit if limit else None, tasks * per_task, partitions, user)
    return found


def change(site: Installed, jobs: dict[int, Submission]) -> None:
    """Change the requests of waiting jobs."""
    rows = site.slurm.jobs()
    for k, (job, one) in enumerate(sorted(jobs.items())):
        if k % 6 == 0:
            site.slurm.ask("scontrol", "update", f"jobid={job}", "TimeLimit=17")
            jobs[job] = one._replace(limit_s=17 * 60.0)
        elif k % 6 == 1 and k % 4:
            site.slurm.ask("scontrol", "update", f"jobid={job}", "Partition=long", "TimeLimit=90")
            jobs[job] = one._replace(partitions=("long",), limit_s=90 * 60.0)
        elif k % 12 == 2:
            cpus = 4 * int(rows[str(job)]["NumNodes"].split("-")[0])  # all CPUs of its nodes
            site.slurm.ask("scontrol", "update", f"jobid={job}", f"NumCPUs={cpus}")
            jobs[job] = one._replace(cpus=cpus)
        elif k % 12 == 8:
            site.slurm.ask("scontrol", "update", f"jobid={job}", "Comment=changed", "Name=other")


def test_a_hundred_jobs_are_ordered_as_in_python_and_rolled_back(installed: Installed) -> None:
    site, settings = installed, installed.settings
    before = site.busy()
    jobs = submitted(site, 1, 100, before)
    change(site, jobs)
    array = next(job for k, job in enumerate(jobs) if k == 3)
    site.slurm.ask("scontrol", "update", f"jobid={array}_2", "TimeLimit=3")  # one task, which becomes a separate job
    rows = site.slurm.jobs().values()
    (task,) = (
        int(row["JobId"]) for row in rows if (row.get("ArrayJobId"), row.get("ArrayTaskId")) == (str(array), "2")
    )
    jobs[task] = jobs[array]._replace(number=task, limit_s=180.0)

    expected = {job: site_factor(settings, one) for job, one in jobs.items()}
    assert len(set(expected.values())) > 50
    assert site.priorities() == {job: factor + 100 for job, factor in expected.items()}
    factors = site.factors()
    assert factors == {job: expected[job] for job in factors}
    assert len(factors) > 80  # sprio omits jobs with a dependency, and sometimes one more
    queue = [int(job) for (job,) in site.table("squeue", "-t", "PD", "--array", "--sort=-p,i", "-o", "%A")]
    assert list(dict.fromkeys(queue)) == expected_order(settings, list(jobs.values()))
    assert {row["Comment"] for row in site.slurm.jobs().values() if int(row["JobId"]) in jobs} == {"of", "changed"}

    site.sh(f"sh {site.slurm.folder}/rollback.sh")
    assert set(site.priorities().values()) == {100}
    assert set(site.factors().values()) == {0}
    site.mode("enforce")
    (again,) = re.findall(r"^ +(squeue .* nice=.*)$", site.files["instructions.txt"], re.MULTILINE)
    site.sh(again)
    expected[task] = expected[array]  # slurmctld runs the rule once for an array, and sets the result for all tasks
    assert site.priorities() == {job: factor + 100 for job, factor in expected.items()}


def test_off_stops_it_for_new_and_changed_jobs(installed: Installed) -> None:
    site = installed
    site.busy()
    first = int(site.slurm.submit("true", "--time=60"))
    set_before = site.factors(first)[first]
    site.mode("off")
    try:
        second = int(site.slurm.submit("true", "--time=60"))
        site.slurm.ask("scontrol", "update", f"jobid={first}", "TimeLimit=30")
        assert site.factors(first, second) == {first: set_before, second: 0}
    finally:
        site.mode("enforce")
    site.slurm.ask("scontrol", "update", f"jobid={second}", "TimeLimit=60")
    assert site.factors(second)[second] == set_before


def test_users_change_their_limits_but_no_factor_and_an_operator_may(installed: Installed) -> None:
    site = installed
    site.busy()
    job = int(site.slurm.submit("true", "--time=60", "--uid=nobody"))
    before, words = site.factors(job)[job], ["scontrol", "update", f"jobid={job}"]

    def as_user(*options: str) -> int:
        return subprocess.run([*words, *options], env=site.slurm.environment, user="nobody", cwd="/tmp",
                              capture_output=True, check=False).returncode  # fmt: skip

    assert as_user("TimeLimit=30") == 0
    assert site.factors(job)[job] - before == pytest.approx(0.9 * 1000 * 0.693147, abs=1)
    assert as_user("SiteFactor=99999") != 0
    site.slurm.ask(*words, "SiteFactor=77")
    assert site.factors(job)[job] == 77


def test_jobs_start_in_this_order(installed: Installed) -> None:
    site = installed
    blocker = site.busy()
    whole = ("--nodes=4", "--exclusive")
    limits = [40, 3, 25, 9, 14]
    numbers = [int(site.slurm.submit("sleep 2", f"--time={k}", *whole)) for k in limits]  # starts are in whole seconds
    jobs = [Submission(number, 60.0 * k, 4, (), "root") for number, k in zip(numbers, limits, strict=True)]
    site.slurm.ask("scancel", blocker)
    site.slurm.until(lambda: not site.slurm.states(), "all jobs end")
    rows = site.slurm.jobs(SLURM_TIME_FORMAT="%s")
    begun = sorted(jobs, key=lambda job: int(rows[str(job.number)]["StartTime"]))
    assert [job.number for job in begun] == expected_order(site.settings, jobs)


def test_observe_logs_what_it_would_set_and_advise_tells_the_user(installed: Installed) -> None:
    site, folder = installed, installed.slurm.folder
    site.busy()
    try:
        for mode, said in (("observe", ""), ("advise", "half the time limit would count as much as 5.0 hours")):
            site.mode(mode)
            words = ["sbatch", "--time=60", "--wrap=true", "--output=/dev/null"]
            done = subprocess.run(words, env=site.slurm.environment, capture_output=True, text=True, check=True)
            assert said in done.stderr
            assert bool(said) == bool(done.stderr)
        assert set(site.factors().values()) == {0}
        log = Path(folder / "slurmctld.log").read_text()
        factor = site_factor(site.settings, Submission(1, 3600.0, 1, (), "root"))
        assert f"job order (observe): user=root partition=work minutes=60 cpus=1 site_factor={factor}" in log
    finally:
        site.mode("enforce")
