"""`serve`: a service that decides for a live cluster, by a policy that is named or by the scenario's champion."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter

from pipeline import storage
from pipeline.champions.lines import CHAMPIONS, PolicyRef, champions_in, digest_of_tuned
from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.external.loading import is_external
from pipeline.lookahead.planner import PREFIX
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.serving.app import application
from pipeline.serving.desk import Desk
from pipeline.serving.listening import MOST_TOKEN, bound, server_of, token_for
from pipeline.serving.measured import Measured
from pipeline.serving.named import Named
from pipeline.stages.replaying import model_of
from pipeline.tracking.digests import measured

CHAMPION = "champion"
IN_CLUSTER = "cluster"
VERDICT, LONGEST_VERDICT = "verdict.txt", 10_000  # in the folder of a controller; characters of it
BEGIN_S = 120.0  # in which the policy must answer for the first time


@dataclass(frozen=True)
class Listening:
    """Where the service listens, and the token that it asks for."""

    host: str = "127.0.0.1"
    port: int = 8765
    token_file: Path | None = None


def run(
    params: Params,
    scenario: str,
    policy: str,
    at: Listening,
    limit_ms: float,
    kubernetes: str | None = None,
    steering: Path | None = None,
    defaults: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Decide for those who ask, until a signal comes; `defaults` are fields of states that lack them."""
    text = None if at.token_file is None else storage.read_text(at.token_file, MOST_TOKEN)
    if at.token_file and at.token_file.is_file() and at.token_file.stat().st_mode & 0o077:
        say(f"serve: {at.token_file}: other users of this machine may read it; chmod 600 {at.token_file}")
    live = problem_of(params, scenario).live
    token, fallback = token_for(at.host, text, str(at.token_file)), live.fallback
    if kubernetes and not live.places:
        raise UserError(f"--kubernetes: policies of scenario '{scenario}' do not place jobs on machines")
    with looking(params, scenario, policy) as look, bound(at.host, at.port) as where:
        named, found = look(), Measured()
        desk = Desk(params, scenario, look, heuristic(fallback), limit_ms / 1000, found, defaults)
        if not desk.wait(BEGIN_S):
            desk.close()
            raise UserError(f"{named.policy}: {desk.why or 'its process did not begin'}")
        address = f"http://{at.host}:{where.getsockname()[1]}/v1/{desk.live.door}"
        say(f"serve: {scenario}: {named.policy} ({named.digest[:8]}), else {fallback}; POST {address}")
        with extending(desk, kubernetes) as more:
            server_of(application(desk, found, token, more, said_in(steering))).run(sockets=[where])


def said_in(steering: Path | None) -> Callable[[], tuple[str, ...]]:
    """Return what reads the lines that a controller in mode shadow left in its folder; without one, none."""

    def lines() -> tuple[str, ...]:
        if steering is None or not (steering / VERDICT).is_file():
            return ()
        try:
            return tuple(storage.read_text(steering / VERDICT)[:LONGEST_VERDICT].splitlines())
        except UserError as error:
            return (str(error),)

    return lines


@contextmanager
def extending(desk: Desk, kubernetes: str | None) -> Iterator[Sequence[APIRouter]]:
    """Yield the doors for Kubernetes' scheduler, if there are to be any; pods and nodes are followed meanwhile."""
    if kubernetes is None:
        yield ()
        return
    from pipeline.kubernetes.api import Address, Api
    from pipeline.kubernetes.extender import Extender, doors
    from pipeline.kubernetes.view import View

    view = View(Api(Address.found(None if kubernetes == IN_CLUSTER else kubernetes)))
    view.begin()
    try:
        yield [doors(Extender(view, desk.answer))]
    finally:
        view.end()


@contextmanager
def looking(params: Params, scenario: str, policy: str) -> Iterator[Callable[[], Named]]:
    """Yield what says who decides now; models that it found stay where they are until the end.

    Raises:
        UserError: the policy looks ahead, which is not served for every problem.
    """
    if policy.startswith(PREFIX) and not problem_of(params, scenario).live.plans:
        raise UserError(f"{policy}: policies that look ahead are not served in scenarios of this problem, as yet")
    with ExitStack() as kept:
        known: dict[str, Named] = {}

        def champion() -> Named:
            line = champions_in(storage.read_text(CHAMPIONS)).get(scenario)
            if line is None:
                raise UserError(
                    f"{CHAMPIONS}: scenario '{scenario}' has no champion: 'python -m pipeline promote {scenario}', "
                    "or name a policy by --policy"
                )
            if line.digest not in known:
                known[line.digest] = seated(kept, params, scenario, line.ref)
            return known[line.digest]

        yield champion if policy == CHAMPION else lambda: by_name(policy, scenario)


def seated(kept: ExitStack, params: Params, scenario: str, seat: PolicyRef) -> Named:
    """Return a champion, with its model as it was promoted."""
    if seat.policy in params.policies:
        kept.enter_context(model_of(params, scenario, seat))  # refuses files that are not as they were promoted
        return Named(seat.policy, params.policy(seat.policy).policy, seat.digest)
    places = list(kept.enter_context(model_of(params, scenario, seat)).values())
    return Named(seat.policy, str(places[0].resolve()) if places else seat.policy, seat.digest, seat.tuned)


def by_name(policy: str, scenario: str) -> Named:
    """Return a heuristic, as it was tuned for the scenario, or a model's folder as it is now."""
    if Path(policy).is_dir():
        return Named(policy, str(Path(policy).resolve()), measured(Path(policy)))
    if is_external(policy):
        return Named(policy, policy, measured(storage.source_of(policy)))
    tuned = storage.results_folder("heuristics", scenario) / "chosen.json"
    return heuristic(policy, storage.read_chosen(scenario).knobs if tuned.exists() else {})


def heuristic(policy: str, tuned: dict[str, float] | None = None) -> Named:
    """Return a heuristic, with the numbers it is tuned by."""
    return Named(policy, policy, digest_of_tuned(policy, tuned or {}), tuned or {})
