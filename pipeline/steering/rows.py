"""Output of squeue, sinfo and sprio as typed rows.

A line that cannot be read excludes its job or node: the request of one user must not prevent the ordering of all jobs.
If more than half of the lines cannot be read, the whole reading is refused, with one line as the reason.

Names that users choose (of a job, its command, comment or folder) are not read, so that they can have no effect. Other
text is compared and counted, and never part of a command: a job is named only by its number.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pipeline.errors import UserError

MOST_ROWS = 200_000  # of one command
NUMBER = re.compile(r"\d{1,10}", re.ASCII)
AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)", re.ASCII)
LENGTH = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,4}):)?(\d{1,6}):(\d{1,2})", re.ASCII)
NODES = re.compile(r"(\d{1,7}(?:\.\d{1,6})?[KM]?)(?:-\d{1,7}(?:\.\d{1,6})?[KM]?)?\+?", re.ASCII)
GPUS = re.compile(r"gpu(?::[^,:()]*)?:(\d{1,6})(?:\([^()]*\))?", re.ASCII)
FACTOR: dict[str, int] = {letter: 1024**power for power, letter in enumerate(("", "K", "M", "G", "T", "P"))}
NOTHING = ("", "N/A", "(null)", "None", "Unknown")
ENDLESS = ("UNLIMITED", "NOT_SET", "Partition_Limit", "INVALID")
# States in which a job waits, and in which it holds resources (including suspended, signaled and resized ones).
PENDING, HOLDING = "PD", ("R", "CG", "CF", "ST", "S", "SI", "RS", "SO")
MOST_ASKED, MOST_HAD = 1e12, 1e6  # of a resource: that of a job, that of a node; larger amounts are cut
HOLDS = ("JobHeldUser", "JobHeldAdmin")  # reasons of held jobs
NO_UNITS = {"cpu": 0.0, "memory": 0.0, "gpu": 0.0}
# Slurm uses nodes in these states, which it may have to power up, and none with these flags (+WORD of StateComplete, or
# sinfo's characters): no answer, powered down soon or right now, rebooting, reserved.
TAKING = re.compile(r"(idle|mix(ed)?|alloc(ated)?|comp(leting)?|planned|plnd|powered_down|pow(er|ering)?_up)(?![a-z_])")
REFUSING = re.compile(r"\+(drain|down|fail|inval|no|maint|res|power_d|powering_d|perf|reboot_i|block|fut|unk)|[*!%$^]")

SQUEUE = ("JobID", "ArrayJobID", "StateCompact", "Partition", "SubmitTime", "EligibleTime", "StartTime", "TimeLimit",
          "NumNodes", "tres-alloc", "Reservation", "UserName", "NodeList", "Reason", "ReqNodes", "Dependency",
          "ArrayTaskID", "RestartCnt")  # fmt: skip
SINFO = ("%N", "%R", "%a", "%p", "%T", "%c", "%m", "%G")
SPRIO = ("%i", "%S")
Found = TypeVar("Found")


class OddError(UserError):
    """Output of Slurm that cannot be read, so that no decision is based on it."""


class JobRow(NamedTuple):
    """A job of the queue; the waiting tasks of an array are one."""

    number: int
    array: int  # number of the array that it is a task of, or its own
    state: str = ""
    partitions: tuple[str, ...] = ()
    submitted: float = 0.0
    eligible: float | None = None  # None: not yet
    started: float | None = None
    limit_s: float | None = None  # None: no limit
    nodes: int = 1
    units: Mapping[str, float] = NO_UNITS  # of all its nodes together: cpu, memory in GiB, gpu
    reserved: bool = False  # it runs in a reservation
    user: str = ""
    places: str = ""  # a list of nodes
    hold: str = ""  # one of HOLDS; "": not held
    wanted: str = ""  # required nodes: a list
    depends: bool = False  # on other jobs
    several: bool = False  # it represents several tasks of an array
    restarts: int = 0  # how often it was requeued
    odd: str = ""  # the part of its line that cannot be read

    @property
    def arrived(self) -> float:
        """Time at which the job became eligible; if it is not yet, that of its submission."""
        return self.submitted if self.eligible is None else self.eligible


class NodeRow(NamedTuple):
    """A node, in one of its partitions."""

    name: str
    partition: str
    tier: int  # PriorityTier of the partition
    takes: bool  # whether jobs can start on it now
    units: Mapping[str, float]


class Reading(NamedTuple):
    """A cluster at one time."""

    now: float
    jobs: Sequence[JobRow]
    nodes: Sequence[NodeRow]
    factors: Mapping[int, int]  # SiteFactor of each job that waits and may start, by its number


def jobs_in(text: str) -> list[JobRow]:
    """Return the jobs that squeue printed; invalid lines get negative numbers. OddError if most lines are invalid."""
    found, odd = _read(text, "squeue", len(SQUEUE), _job)
    count, last = Counter(job.number for job in found.values()), {job.number: k for k, job in found.items()}
    for k, job in found.items():
        if count[job.number] > 1:
            odd[k] = f"squeue, line {last[job.number]}: job {job.number} is there twice"
    found |= {k: JobRow(-k, -k, odd=why) for k, why in odd.items()}
    jobs = [found[k] for k in sorted(found)]
    _check_mostly_read([job.odd for job in jobs if job.odd], len(jobs))
    return jobs


def nodes_in(text: str) -> list[NodeRow]:
    """Return the nodes that sinfo printed, once for each partition; raise an OddError if most lines are invalid."""

    def node(cells: Sequence[str], where: str) -> NodeRow:
        name, partition, there, tier, state, cpus, mib, gres = cells
        if len(gres) > 2000:
            raise OddError(f"{where}: expected generic resources, found {gres[:40]!r}")
        gpus = float(sum(int(count) for count in GPUS.findall(gres)))
        units = {"cpu": _amount(cpus, where), "memory": _amount(mib, where) / 1024, "gpu": gpus}
        units = {resource: min(amount, MOST_HAD) for resource, amount in units.items()}
        takes = there == "up" and takes_jobs(state)
        return NodeRow(_name(name, where), _name(partition, where), _whole(tier, where), takes, units)

    return _valid_rows(text, "sinfo", len(SINFO), node)


def takes_jobs(state: str) -> bool:
    """Return whether Slurm starts jobs on a node in a state.

    >>> [takes_jobs(state) for state in ("idle~", "MIXED+CLOUD+POWERING_UP", "idle*", "IDLE+DRAIN", "idle%")]
    [True, True, False, False, False]
    """
    return bool(TAKING.match(state.lower())) and not REFUSING.search(state.lower())


def factors_in(text: str) -> dict[int, int]:
    """Return the SiteFactor of each job that sprio printed; raise an OddError if most lines are invalid."""

    def factor(cells: Sequence[str], where: str) -> tuple[int, int]:
        number, value = cells
        return _whole(number, where), (-1 if value.startswith("-") else 1) * _whole(value.removeprefix("-"), where)

    return dict(_valid_rows(text, "sprio", len(SPRIO), factor))


def _read(
    text: str, program: str, wanted: int, parse: Callable[[Sequence[str], str], Found]
) -> tuple[dict[int, Found], dict[int, str]]:
    """Return the content of the lines that can be read, and the errors of the others, by line number."""
    rows = text.split("\n")
    if len(rows) > MOST_ROWS:
        raise OddError(f"{program}: more than {MOST_ROWS} lines")
    found, odd = dict[int, Found](), dict[int, str]()
    for k, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        cells, where = [cell.strip() for cell in row.removesuffix("|").split("|")], f"{program}, line {k}"
        try:
            if len(cells) != wanted:
                raise OddError(f"{where}: expected {wanted} fields, found {len(cells)}")
            found[k] = parse(cells, where)
        except OddError as error:
            odd[k] = str(error)
    return found, odd


def _valid_rows(text: str, program: str, wanted: int, parse: Callable[[Sequence[str], str], Found]) -> list[Found]:
    found, odd = _read(text, program, wanted, parse)
    _check_mostly_read([*odd.values()], len(found) + len(odd))
    return [*found.values()]


def _check_mostly_read(errors: Sequence[str], lines: int) -> None:
    if 2 * len(errors) > lines:
        raise OddError(errors[0])


def _job(cells: Sequence[str], where: str) -> JobRow:
    (number, array, state, partitions, submitted, eligible, started, limit, nodes, units, reservation, user,
     places, reason, wanted, dependency, tasks, restarts) = cells  # fmt: skip
    odd: list[str] = []

    def read(parse: Callable[[str, str], Found], text: str, otherwise: Found) -> Found:
        try:
            return parse(text, where)
        except OddError as error:
            odd.append(str(error))
            return otherwise

    return JobRow(
        number=_whole(number, where),
        array=_whole(array, where),
        state=_name(state, where),
        partitions=tuple(_name(one, where) for one in partitions.split(",")),
        submitted=float(read(_whole, submitted, 0)),
        eligible=read(_moment, eligible, None),
        started=read(_moment, started, None),
        limit_s=read(_length, limit, None),
        nodes=read(_count, nodes, 1),
        units=read(_units, units, dict(NO_UNITS)),
        reserved=reservation not in NOTHING,
        user=user,
        places=places if places not in NOTHING else "",
        hold=reason if reason in HOLDS else "",
        wanted=wanted if wanted not in NOTHING else "",
        depends=dependency not in NOTHING,
        several=not set(tasks).isdisjoint(",-"),
        restarts=read(_whole, restarts, 0),
        odd="".join(odd[:1]),
    )


def _matched(pattern: re.Pattern[str], text: str, where: str, what: str) -> re.Match[str]:
    if (match := pattern.fullmatch(text)) is None:
        raise OddError(f"{where}: expected {what}, found {text[:40]!r}")
    return match


def _whole(text: str, where: str) -> int:
    return int(_matched(NUMBER, text, where, "a whole number")[0])


def _name(text: str, where: str) -> str:
    if not 0 < len(text) <= 200:
        raise OddError(f"{where}: expected a name, found {text[:40]!r}")
    return text


def _amount(text: str, where: str) -> float:
    match = _matched(AMOUNT, text.removesuffix("+"), where, "an amount")
    return float(match[1]) * FACTOR[match[2]]


def _count(text: str, where: str) -> int:
    """Return the minimum number of nodes of '2', '2-4' or '1K'."""
    return max(1, int(_amount(_matched(NODES, text, where, "a number of nodes")[1], where)))


def _moment(text: str, where: str) -> float | None:
    return None if text in NOTHING else float(_whole(text, where))


def _length(text: str, where: str) -> float | None:
    """Return the seconds of '4:00' or '1-02:03:04'; None: no limit."""
    if text in ENDLESS:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in _matched(LENGTH, text, where, "a time limit").groups())
    return float(86_400 * days + 3600 * hours + 60 * minutes + seconds)


def _units(text: str, where: str) -> dict[str, float]:
    """Return the amounts of 'cpu=4,mem=400M,node=1,gres/gpu=2'; memory in GiB."""
    found = dict(NO_UNITS)
    for part in text.split(",") if text not in NOTHING else ():
        name, equals, amount = part.partition("=")
        if not equals:
            raise OddError(f"{where}: expected amounts as cpu=4,mem=400M, found {text[:60]!r}")
        if name == "mem":
            with_unit = amount if amount[-1:] in FACTOR and amount[-1:] else f"{amount}M"
            found["memory"] = _amount(with_unit, where) / 1024**3
        elif name in ("cpu", "gres/gpu"):
            found["cpu" if name == "cpu" else "gpu"] = _amount(amount, where)
    return {resource: min(amount, MOST_ASKED) for resource, amount in found.items()}
