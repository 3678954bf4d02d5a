"""Many machines in continuous time: the machines, the dispatch rule, the source of jobs."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from pipeline.core.config.records import Counts, Frozen, Instances, Loads, Many, Name, Periods, Positive, Rate, none_of

Whole = Annotated[int, Field(ge=0)]
JOB_COLUMNS = ("load", "jobset", "job", "arrival", "duration", "estimate", "nodes", "kinds")
FIXED_ESTIMATES = ("blocking", "easy", "easy_within")  # dispatch of published results: overruns revise no estimate
MOST_KINDS = 63  # bits of one number hold the kinds that a job may run on
Amount = Annotated[float, Field(ge=0, le=1e9)]
Choice = Annotated[tuple[Rate, ...], Field(min_length=1)]


class MachinePark(Frozen):
    """The machines of a scenario and its unit of time: all that later stages need of a log."""

    resources: Annotated[tuple[Name, ...], Field(min_length=1)]
    capacity: Annotated[tuple[tuple[Whole, ...], ...], Field(min_length=1)]  # [K][R]  thousandths
    kind: tuple[Whole, ...]  # [K]  place in kind_names
    kind_names: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: Rate  # of time, in that of the jobs

    @model_validator(mode="after")
    def _is_whole(self) -> "MachinePark":
        if len(self.kind) != len(self.capacity):
            raise ValueError(f"expected a kind for each of {len(self.capacity)} machines, got {len(self.kind)}")
        for k, row in enumerate(self.capacity):
            if len(row) != len(self.resources):
                raise ValueError(f"machine {k}: expected {len(self.resources)} amounts, got {len(row)}")
        if max(self.kind) >= len(self.kind_names):
            raise ValueError(f"expected kinds below {len(self.kind_names)}, got {max(self.kind)}")
        return self


class Group(Frozen):
    """Identical machines."""

    count: Annotated[int, Field(gt=0, le=100_000)]  # how many
    kind: str = ""  # a GPU model, for example; jobs may be limited to some kinds
    has: Annotated[
        dict[Name, Amount], Field(min_length=1), AfterValidator(none_of(JOB_COLUMNS))
    ]  # units, to thousandths


class Tasks(Frozen):
    """Generated jobs that resemble logs: many short and a few very long ones, with demands from a short list.

    Run times are log-normal, arrivals Poisson at the rate that makes the load.
    """

    name: Literal["tasks"]
    median: Rate  # run time, in time units
    spread: Annotated[float, Field(gt=0, le=5)]  # standard deviation of the logarithm of run times
    longest: Rate  # run times are cut here
    demand: dict[Name, Choice]  # possible amounts of each resource, all equally likely
    jobs: Many  # of a jobset
    # Jobs [first, after) of a jobset that are measured: its episode is over once these have started, while others still
    # arrive. Left out, all are measured, and it is over when all have finished.
    measured: Annotated[tuple[Whole, Whole] | None, Field(exclude_if=lambda value: value is None)] = None

    @model_validator(mode="after")
    def _measured_are_some(self) -> "Tasks":
        if self.measured is not None and not self.measured[0] < self.measured[1] < self.jobs:
            raise ValueError(
                f"measured: expected [first, after] with first < after < jobs {self.jobs}, got {list(self.measured)}"
            )
        return self


Spans = Annotated[tuple[tuple[Whole, Whole], ...], Field(min_length=1)]


class Parts(Frozen):
    """Disjoint parts of a log for every split, each [first job, the one after its last]."""

    train: Spans  # jobs to learn from
    validation: Spans  # jobs to choose by
    test: Spans  # jobs to report

    @model_validator(mode="after")
    def _share_no_job(self) -> "Parts":
        spans = sorted(span for spans in (self.train, self.validation, self.test) for span in spans)
        for (first, after), (begin, _) in zip(spans, [*spans[1:], (2**62, 0)], strict=True):
            if not first < after <= begin:
                raise ValueError(f"expected [first, after its last] without a job in common, got [{first}, {after}]")
        return self


class MachinesLog(Periods):
    """A log, cut into windows of consecutive jobs; `loads` of the scenario compress or stretch its arrivals."""

    name: Literal["log"]
    format: str  # a format of docs/logs.md
    path: str  # from the repository's root, or absolute
    nodes: str | None = None  # the file of machines that some formats have
    outages: tuple[str, ...] = ()  # files of drained, down and reserved nodes, which the advice for a site replays
    instances: Instances = "one"  # a job for each task, or for each of its instances
    per_node: bool = False  # swf only: is each processor a machine?
    longest_s: Rate | None = None  # run times are cut here, and counted
    first_s: Annotated[float, Field(ge=0)] = 0.0  # by the log's clock; jobs before it are left out, and counted
    window: Many = 100  # consecutive jobs of a jobset
    parts: Parts | None = None  # if given, jobsets are resampled from these; the shares are not used
    block: Positive = 64  # consecutive jobs that are resampled together


class Sampled(Frozen):
    """Machines drawn from the log's own file of machines."""

    sample: Annotated[int, Field(gt=0, le=100_000)]  # how many
    seed: Annotated[int, Field(ge=0)] = 0  # of the draw


def _kind_of_machines(value: Any) -> str:
    return "[sampled]" if isinstance(value, (dict, Sampled)) else "[groups]"  # brackets: messages leave it out


Groups = Annotated[tuple[Group, ...], Field(min_length=1)]
MachinesConfig = Annotated[
    Annotated[Groups, Tag("[groups]")] | Annotated[Sampled, Tag("[sampled]")], Discriminator(_kind_of_machines)
]


class MachinesScenario(Frozen):
    """Machines, their jobs, and the loads."""

    problem: Literal["machines"]
    machines: MachinesConfig  # groups of identical machines, or a sample of those in the log's own file
    slots: Annotated[int, Field(gt=0, le=10_000)]  # waiting jobs that a policy sees
    # What happens to a job that does not fit: docs/systems/deepk8s.md.
    dispatch: Literal["greedy", "blocking", "easy", "easy_within", "easy_dynamic", "easy_shortest"]
    # What policies know of a job's run time; predictions are learned from the log's training period.
    policies_know: Literal["durations", "estimates", "predictions"]
    pause: Rate  # longest time that void lets pass, in multiples of the unit of time
    time_limit: Rate  # end of an episode, in multiples of the unit of time; unfinished jobs are counted
    workload: Annotated[Tasks | MachinesLog, Field(discriminator="name")]  # the source of jobs
    loads: Loads  # percent of all machines, mean over resources
    jobsets: Counts  # how many of each load
    # Time without an arrival, in multiples of the unit of time, after which void is refused while nothing runs and a
    # job fits; left out: ten median run times.
    stall: Annotated[float | None, Field(ge=0, allow_inf_nan=False, exclude_if=lambda value: value is None)] = None

    @model_validator(mode="after")
    def _jobs_can_run(self) -> "MachinesScenario":
        groups = () if isinstance(self.machines, Sampled) else self.machines
        for group in groups:
            if tuple(group.has) != (names := tuple(groups[0].has)):
                raise ValueError(
                    f"machines: expected the same resources in one order, got {list(names)} and {list(group.has)}"
                )
        if len(kinds := {group.kind for group in groups}) > MOST_KINDS:
            raise ValueError(f"machines: expected at most {MOST_KINDS} kinds, got {len(kinds)}")
        if self.policies_know == "predictions" and self.dispatch in FIXED_ESTIMATES:
            raise ValueError(
                f"policies_know: dispatch {self.dispatch} revises no estimate when a job runs longer than predicted; "
                "for predictions expected dispatch greedy, easy_dynamic or easy_shortest"
            )
        tasks = self.workload
        if isinstance(tasks, MachinesLog):
            return self
        if not groups:
            raise ValueError("machines.sample needs a log that has a file of machines (workload.nodes)")
        if self.policies_know != "durations":
            raise ValueError(f"policies_know: only a log has {self.policies_know}; expected durations")
        if list(tasks.demand) != (resources := list(groups[0].has)):
            raise ValueError(f"workload.demand: expected the machines' resources {resources}, got {list(tasks.demand)}")
        most = {name: max(amounts) for name, amounts in tasks.demand.items()}
        if not any(all(group.has[name] >= amount for name, amount in most.items()) for group in groups):
            raise ValueError(f"workload.demand: no machine can hold {most}, which a job may ask for")
        return self
