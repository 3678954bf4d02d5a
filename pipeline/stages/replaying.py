"""Champions as they were promoted: where their models are, and how they play jobsets that they have no results on."""

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from pipeline import storage
from pipeline.champions.lines import CHAMPIONS, Seat, digest_of_tuned, tuned_of
from pipeline.config import Params, known_names
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.simulation.results import slowdown_column
from pipeline.stages.policy import known as external_policy
from pipeline.storage import Chosen
from pipeline.tracking.digests import digest, measured
from pipeline.tracking.stored_outputs import StoredOutputs

STANDING = "{policy} (champion)"  # a champion whose model or numbers are others now


@contextmanager
def workplace(links: Mapping[Path, Path]) -> Iterator[None]:
    """Work in a new folder that holds links, and is removed with all that was written there.

    Args:
        links: what is found at each relative path.
    """
    there = {place: target.resolve() for place, target in links.items()}
    with TemporaryDirectory() as folder:
        for place, target in there.items():
            link = Path(folder) / place
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        with chdir(folder):
            yield


@contextmanager
def model_of(params: Params, scenario: str, seat: Seat) -> Iterator[Mapping[Path, Path]]:
    """Find the model of a champion, and say where a workplace must have it; a heuristic has none.

    Raises:
        UserError: it is gone, or the agent is no longer one of the scenario.
    """
    if seat.policy not in params.agents:
        files = storage.policy_folder(seat.policy)
        if seat.policy in params.policies and measured(files) != seat.digest:
            remedy = f"bring them back, or 'python -m pipeline rollback {scenario}'"
            raise UserError(f"{CHAMPIONS}: {scenario}: {files} is not as it was promoted, md5 {seat.digest}: {remedy}")
        yield {files: files} if seat.policy in params.policies else {}
        return
    if seat.policy not in params.agents_of(scenario):
        raise UserError(f"{CHAMPIONS}: {scenario}: '{seat.policy}' is not an agent of this scenario any more")
    path = storage.model_folder(seat.policy, "policy")
    with TemporaryDirectory() as scratch:
        found = StoredOutputs(Path(scratch)).find(path.as_posix(), seat.digest)
        if found is None:
            remedy = f"'dvc fetch --all-commits', or 'python -m pipeline rollback {scenario}'"
            where = f"{CHAMPIONS}: {scenario}: {path} with md5 {seat.digest}"
            raise UserError(f"{where} is neither here nor in DVC's cache: {remedy}")
        # What is stored as pretrained is read beside it, and not played.
        yield {path: found, storage.model_folder(seat.policy, "pretrained"): found}


def play(params: Params, scenario: str, seats: Mapping[str, Seat], knobs: Mapping[str, float]) -> pd.DataFrame:
    """Return the results of champions, or of other policies, on the test jobsets of the working directory.

    Args:
        params: all of params.yaml.
        scenario: whose jobsets they are.
        seats: who plays, under which name.
        knobs: what validation chose; a seat's own numbers come first.

    Raises:
        UserError: a policy is neither an agent nor a heuristic of the scenario.
    """
    problem, found = problem_of(params, scenario), []
    for name, seat in seats.items():
        learned, made = seat.policy in params.agents, seat.policy in params.policies
        here = problem.scoring(params, scenario, seat.policy if learned else None)
        known = problem.learning.policies(params, seat.policy) if learned else here.heuristics({**knobs, **seat.tuned})
        known = {seat.policy: external_policy(params, seat.policy, here.scale)} if made else known
        if seat.policy not in known:
            where = f"{CHAMPIONS}: {scenario}: unknown policy '{seat.policy}'"
            raise UserError(f"{where}; {known_names([*known, *params.agents_of(scenario)], seat.policy)}")
        done = here.score({name: known[seat.policy]}, jobsets=here.read("test"))
        found.append(done[name].jobsets)
    return pd.concat(found, ignore_index=True)


def replayed(params: Params, scenario: str, name: str, seat: Seat, knobs: Mapping[str, float]) -> pd.DataFrame:
    """Return a champion's results on the scenario's test jobsets, under a name, whatever model its agent has now."""
    jobsets = storage.jobsets_folder(scenario)
    with model_of(params, scenario, seat) as model, workplace({jobsets: jobsets, **model}):
        return play(params, scenario, {name: seat}, knobs)


def with_standing(
    params: Params, scenario: str, champion: Seat, chosen: Chosen, results: pd.DataFrame
) -> tuple[pd.DataFrame, str]:
    """Return results with those of a champion among them, and its name there; it plays again if it is another now."""
    there = champion.policy in params.agents_of(scenario) or champion.policy in chosen.validation
    if there and seat_of(params, champion.policy, chosen).digest == champion.digest:
        return results, champion.policy
    name = STANDING.format(policy=champion.policy)
    old = replayed(params, scenario, name, champion, chosen.knobs)
    return pd.concat([results, old], ignore_index=True), name


def seat_of(params: Params, policy: str, chosen: Chosen) -> Seat:
    """Return a policy as it is now."""
    if policy in params.policies:
        return Seat(policy=policy, digest=measured(storage.policy_folder(policy)), verdict="")
    if policy in params.agents:
        return Seat(policy=policy, digest=digest(storage.model_folder(policy, "policy")), verdict="")
    tuned = tuned_of(policy, chosen.knobs, chosen.validation)
    return Seat(policy=policy, digest=digest_of_tuned(policy, tuned), tuned=tuned, verdict="")


def measures(params: Params, scenario: str, results: pd.DataFrame) -> tuple[str, str]:
    """Return the columns that decide: waiting time and its tail where all agents are trained for it, else slowdown."""
    goals = {params.judged[name].objective for name in params.agents_of(scenario)}
    columns: Mapping[bool, tuple[str, str]] = {
        True: ("mean_wait", "p99_wait"),
        False: (slowdown_column(results), "p99_slowdown"),
    }
    return columns[goals == {"delay"}]
