"""How DeepRM3 learns: from short runs and from windows of endless streams."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.config.families import LinearRuleSearch
from pipeline.config.records import Frozen, Loads, Positive, Rate, Seed

Slots = Annotated[int, Field(gt=0, le=1000)]
Jobsets = Annotated[int, Field(ge=0, le=10_000)]


def _whole_vectors(units: int) -> int:
    if units % 8:
        raise ValueError(f"expected a multiple of 8, got {units}")
    return units


class Sets(Frozen):
    """A network that scores every waiting job by shared weights, for clusters and queues of any size."""

    name: Literal["sets"]
    hidden: Annotated[int, Field(gt=0, le=512), AfterValidator(_whole_vectors)]
    elapsed: bool  # is it told how long it has run? Short runs give away their end by that


class StreamWindows(Frozen):
    """Pieces of streams that do not end; state and return go beyond them."""

    loads: Loads
    slots: Annotated[tuple[Slots, ...], Field(min_length=1)]  # in turn
    windows: Positive  # of an update; in cloning: streams in all
    latest: Annotated[int, Field(ge=0, le=100_000)]  # step at which a window begins at the latest
    steps: Positive  # of a window
    beyond: Annotated[int, Field(ge=0, le=100_000)]  # steps behind it that count for its decisions
    # What is left behind these costs later, in steps of what a step costs on average; see `training.streaming`.
    left_job: Annotated[float, Field(ge=0)] = 0.0  # a waiting job
    left_work: Annotated[float, Field(ge=0)] = 0.0  # a step of the whole cluster's work
    left_by_load: tuple[Annotated[float, Field(ge=0)], ...] | None = None  # times this, in the order of `loads`
    examined: Annotated[int | None, Field(gt=0, le=1_000_000)] = None  # steps of validation streams; None: a window's

    @model_validator(mode="after")
    def _every_load_has_its_own(self) -> "StreamWindows":
        if self.left_by_load is not None and len(self.left_by_load) != len(self.loads):
            raise ValueError(
                f"left_by_load: expected {len(self.loads)} numbers, as `loads` has, got {len(self.left_by_load)}"
            )
        return self


class Mixture(Frozen):
    """Policy gradient on short runs and stream windows: how much of a recipe to run."""

    name: Literal["mixture"]
    recipe: str
    loads: Loads  # of short runs
    updates: Positive
    jobsets: Jobsets  # short runs of an update; 0: streams only
    episodes: Annotated[int, Field(ge=2)]  # of each jobset, and of each window
    streams: StreamWindows | None  # null: short runs only
    # What the jobs of each fresh jobset and window ask for: one of these, all equally often. null: the scenario's.
    demands: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    validate_every: Positive
    ageing: Annotated[float, Field(ge=0)] = 0.0  # of a job's score once trained, per log(1 + waited / duration)
    seed: Seed | None = None  # of what is drawn while playing; params.yaml's unless told. Jobsets do not depend on it

    @property
    def budget(self) -> int:
        """Updates."""
        return self.updates


class Imitate(Frozen):
    """Cloning of the best heuristic of each jobset."""

    name: Literal["imitate"]
    teachers: Annotated[tuple[str, ...], Field(min_length=1)]
    linear: LinearRuleSearch | None = None  # of the weights of teacher `linear`, on what it teaches; null: as they are
    loads: Loads
    jobsets: Positive  # short runs that are played by the teachers
    streams: StreamWindows | None
    epochs: Positive
    patience: Positive
    batch: Positive
    learning_rate: Rate
    entropy: Annotated[float, Field(ge=0)]
    seed: Seed | None = None  # of the initial weights and of the order of samples; params.yaml's unless told

    @property
    def budget(self) -> int:
        """Updates at most: one an epoch."""
        return self.epochs

    @property
    def first(self) -> str:
        """What happens before the first update."""
        searched = "" if self.linear is None else ", and weights of linear are searched for"
        return f"its teachers play{searched}"


class Transfer(Frozen):
    """An agent that is scored on a scenario which it was not trained on."""

    agent: str
    scenario: str
