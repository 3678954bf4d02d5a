"""A Slurm cluster on loopback whose clock is fast, so that a day takes minutes: slurmctld, slurmd and jobs' steps.

Munge, MariaDB, SlurmDBD, Slurm's commands and the jobs themselves have the real clock. A job that is to run for an hour
therefore sleeps for an hour divided by the speed.

Only the limits of Slurm's own computing time and of messages are raised, because computers do not become faster. The
intervals in which Slurm schedules are its defaults, in seconds of the fast clock.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.slurm.accounting import add_cluster, start_accounting
from benchmarks.slurm.clock import FastClock, fast_clock
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import STARTED_S, LoopbackSlurm, own_ports, slurm
from pipeline.errors import UserError

INTERVALS = "batch_sched_delay=3,sched_interval=60,bf_interval=30,bf_max_job_test=500,bf_window=1440"  # the defaults
COMPUTING = "max_sched_time=600,bf_max_time=3600,bf_yield_interval=10000000,bf_yield_sleep=1,bf_continue"
SITE = Cluster(nodes=120, cpus=2, mib=2_000, parameters=f"{INTERVALS},{COMPUTING}")
CLUSTER = "loop"  # ClusterName of slurm.conf
ANSWERED_S, MOST_S = 5.0, 65_000  # real time for answers; the longest time that Slurm's timeouts can have
THREADS = 10  # of munged, since all nodes start at the same time
KEPT_S = 90 * 86_400  # of the fast clock; slurmctld keeps jobs for that long after their end
FOLDER, LINES = "/etc/slurm", "slurm.conf.lines"  # in the files of `advise --slurm` without --config


@contextmanager
def accelerated(
    cluster: Cluster, speed: float, settings: Path | None, more: Mapping[str, str] = {}
) -> Iterator[tuple[LoopbackSlurm, FastClock]]:
    """Start a Slurm cluster with a fast clock; it starts jobs in order of arrival, with backfill.

    Args:
        cluster: its settings.
        speed: seconds of its clock in a real one.
        settings: a folder that `advise --slurm` wrote, to be put into effect.
        more: further settings of slurm.conf.

    Raises:
        UserError: it cannot run here, or does not start.
    """
    with own_ports(2) as ports, fast_clock(speed) as clock, slurm(cluster) as found:
        servers = [*found.kill("slurmctld"), *found.kill("slurmd")]
        for words in found.kill("munged"):
            found.begin(*words, f"--num-threads={THREADS}")
        for path in (found.folder / "state").iterdir():
            path.unlink()
        wait = str(int(min(ANSWERED_S * speed, MOST_S)))
        changes = {
            "AuthInfo": f"socket={found.folder}/munge.sock,cred_expire={wait}",
            **dict.fromkeys(("MessageTimeout", "TCPTimeout", "BatchStartTimeout"), wait),
            "SlurmdTimeout": "0",
            "MinJobAge": str(KEPT_S),
            "KillWait": "30",
            "PriorityType": "priority/basic",
            **start_accounting(found, ports),
            **(installed(settings, found.folder) if settings else {}),
            **more,
        }
        conf = found.folder / "slurm.conf"
        conf.write_text(changed(conf.read_text(), changes))
        add_cluster(found, CLUSTER)
        for words in servers:
            found.begin("env", *(f"{name}={value}" for name, value in clock.environment.items()), *words)
        found.until(lambda: _idle(found) == cluster.nodes, f"{cluster.nodes} idle nodes", STARTED_S)
        yield found, clock


def installed(settings: Path, folder: Path) -> dict[str, str]:
    """Copy the files of `advise --slurm` as its instructions say, in mode `enforce`; return its lines of slurm.conf."""
    for path in settings.glob("job_*.lua"):
        (folder / path.name).write_text(path.read_text().replace(FOLDER, str(folder)))
    (folder / "job_order.mode").write_text("enforce\n")
    lines = (settings / LINES).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def changed(conf: str, changes: Mapping[str, str]) -> str:
    r"""Return a slurm.conf in which some settings are replaced or added.

    >>> changed("A=1\nB=2\n", {"B": "3", "C": "4"})
    'A=1\nB=3\nC=4\n'
    """
    kept = [line for line in conf.splitlines() if line.partition("=")[0] not in changes]
    return "".join(f"{line}\n" for line in [*kept, *(f"{name}={value}" for name, value in changes.items())])


def _idle(slurm: LoopbackSlurm) -> int:
    """Return the number of idle nodes; 0 while slurmctld does not answer."""
    with suppress(UserError):
        return len({row for row in slurm.ask("sinfo", "-hN", "-o", "%N %t").splitlines() if row.endswith(" idle")})
    return 0
