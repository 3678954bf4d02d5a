"""Promoted champions: where their models are, and how they play jobsets without stored results."""

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from pipeline.champions.lines import CHAMPIONS, PolicyRef, digest_of_tuned, tuned_of
from pipeline.core import storage
from pipeline.core.config import Params, known_names
from pipeline.core.storage import Chosen
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.simulation.results import slowdown_column
from pipeline.stages.policy import external_policy
from pipeline.tracking.digests import StoredOutputs, digest, measured


@contextmanager
def workplace(links: Mapping[Path, Path]) -> Iterator[None]:
    """Work in a temporary folder with links to some targets, by relative path."""
    there = {place: target.resolve() for place, target in links.items()}
    with TemporaryDirectory() as folder:
        for place, target in there.items():
            link = Path(folder) / place
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        with chdir(folder):
            yield


@contextmanager
def model_of(params: Params, scenario: str, seat: PolicyRef) -> Iterator[Mapping[Path, Path]]:
    """Find a champion's model, and yield the links that a workplace needs; a heuristic has none."""
    where = f"{CHAMPIONS}: {scenario}:"
    if seat.policy not in params.agents:
        files = storage.policy_folder(seat.policy)
        if seat.policy in params.policies and measured(files) != seat.digest:
            remedy = f"restore it, or 'python -m pipeline rollback {scenario}'"
            raise UserError(f"{where} {files} has changed since it was promoted, md5 {seat.digest}: {remedy}")
        yield {files: files} if seat.policy in params.policies else {}
        return
    if seat.policy not in params.agents_of(scenario):
        raise UserError(f"{where} '{seat.policy}' is not an agent of this scenario any more")
    path = storage.model_folder(seat.policy, "policy")
    with TemporaryDirectory() as scratch:
        found = StoredOutputs(Path(scratch)).find(path.as_posix(), seat.digest)
        if found is None:
            remedy = f"'dvc fetch --all-commits', or 'python -m pipeline rollback {scenario}'"
            raise UserError(f"{where} {path} with md5 {seat.digest} is neither here nor in DVC's cache: {remedy}")
        # The pretrained model is read as well, but does not play.
        yield {path: found, storage.model_folder(seat.policy, "pretrained"): found}


def play(params: Params, scenario: str, seats: Mapping[str, PolicyRef], knobs: Mapping[str, float]) -> pd.DataFrame:
    """Return the results of policies on the test jobsets of the working directory; UserError for an unknown policy.

    `seats` has the policies by their names in the results, `knobs` the knobs that validation chose; a policy's own
    knobs take precedence.
    """
    problem, found = problem_of(params, scenario), []
    for name, seat in seats.items():
        learned = seat.policy in params.agents
        here = problem.scoring(params, scenario, seat.policy if learned else None)
        known = problem.learning.policies(params, seat.policy) if learned else here.heuristics({**knobs, **seat.tuned})
        if seat.policy in params.policies:
            known = {seat.policy: external_policy(params, seat.policy, here.scale)}
        if seat.policy not in known:
            where = f"{CHAMPIONS}: {scenario}: unknown policy '{seat.policy}'"
            raise UserError(f"{where}; {known_names([*known, *params.agents_of(scenario)], seat.policy)}")
        done = here.score({name: known[seat.policy]}, jobsets=here.read("test"))
        found.append(done[name].jobsets)
    return pd.concat(found, ignore_index=True)


def with_champion(
    params: Params, scenario: str, champion: PolicyRef, chosen: Chosen, results: pd.DataFrame
) -> tuple[pd.DataFrame, str]:
    """Return results that include a champion's, and its name there; it plays again if its model or knobs changed."""
    there = champion.policy in params.agents_of(scenario) or champion.policy in chosen.validation
    if there and seat_of(params, champion.policy, chosen).digest == champion.digest:
        return results, champion.policy
    name, jobsets = f"{champion.policy} (champion)", storage.jobsets_folder(scenario)
    with model_of(params, scenario, champion) as model, workplace({jobsets: jobsets, **model}):
        replayed = play(params, scenario, {name: champion}, chosen.knobs)
    return pd.concat([results, replayed], ignore_index=True), name


def seat_of(params: Params, policy: str, chosen: Chosen) -> PolicyRef:
    """Return a policy in its present state."""
    if policy in params.policies:
        return PolicyRef(policy=policy, digest=measured(storage.policy_folder(policy)), verdict="")
    if policy in params.agents:
        return PolicyRef(policy=policy, digest=digest(storage.model_folder(policy, "policy")), verdict="")
    tuned = tuned_of(policy, chosen.knobs, chosen.validation)
    return PolicyRef(policy=policy, digest=digest_of_tuned(policy, tuned), tuned=tuned, verdict="")


def measures(params: Params, scenario: str, results: pd.DataFrame) -> tuple[str, str]:
    """Return the deciding columns: waiting time and its tail if all agents are trained for it, else slowdown."""
    if {params.judged[name].objective for name in params.agents_of(scenario)} == {"delay"}:
        return "mean_wait", "p99_wait"
    return slowdown_column(results), "p99_slowdown"
