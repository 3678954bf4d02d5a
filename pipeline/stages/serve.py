"""`serve`: a service that decides for a live cluster, by a policy that is named or by the scenario's champion."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipeline import storage
from pipeline.champions.lines import CHAMPIONS, Seat, champions_in, digest_of_tuned
from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.problems.asking import live_of
from pipeline.progress import say
from pipeline.serving.app import application
from pipeline.serving.desk import Desk
from pipeline.serving.listening import bound, server_of, token_for
from pipeline.serving.measured import Measured
from pipeline.serving.named import Named
from pipeline.stages.replaying import model_of
from pipeline.tracking.digests import measured

CHAMPION = "champion"
BEGIN_S = 120.0  # in which the policy must answer for the first time


def run(
    params: Params, scenario: str, policy: str, host: str, port: int, token_file: Path | None, limit_ms: float
) -> None:
    """Decide for whoever asks, until a signal comes.

    Raises:
        UserError: there is no such policy, the address is taken, or there is no token beyond loopback.
    """
    text = None if token_file is None else storage.read_text(token_file)
    token, fallback = token_for(host, text, str(token_file)), live_of(params, scenario).fallback
    with looking(params, scenario, policy) as look, bound(host, port) as where:
        named, found = look(), Measured()
        desk = Desk(params, scenario, look, heuristic(fallback), limit_ms / 1000, found)
        if not desk.wait(BEGIN_S):
            desk.close()
            raise UserError(f"{named.policy}: {desk.why or 'its process did not begin'}")
        address = f"http://{host}:{where.getsockname()[1]}/v1/{desk.live.door}"
        say(f"serve: {scenario}: {named.policy} ({named.digest[:8]}), else {fallback}; POST {address}")
        server_of(application(desk, found, token)).run(sockets=[where])


@contextmanager
def looking(params: Params, scenario: str, policy: str) -> Iterator[Callable[[], Named]]:
    """Yield what says who decides now; models that it found stay where they are until the end."""
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
                known[line.digest] = seated(kept, params, scenario, line.seat)
            return known[line.digest]

        yield champion if policy == CHAMPION else lambda: by_name(policy, scenario)


def seated(kept: ExitStack, params: Params, scenario: str, seat: Seat) -> Named:
    """Return a champion, with its model as it was promoted."""
    places = list(kept.enter_context(model_of(params, scenario, seat)).values())
    return Named(seat.policy, str(places[0].resolve()) if places else seat.policy, seat.digest, seat.tuned)


def by_name(policy: str, scenario: str) -> Named:
    """Return a heuristic, as it was tuned for the scenario, or a model's folder as it is now."""
    if Path(policy).is_dir():
        return Named(policy, str(Path(policy).resolve()), measured(Path(policy)))
    tuned = storage.results_folder("heuristics", scenario) / "chosen.json"
    return heuristic(policy, storage.read_chosen(scenario).knobs if tuned.exists() else {})


def heuristic(policy: str, tuned: dict[str, float] | None = None) -> Named:
    """Return a heuristic, with the numbers it is tuned by."""
    return Named(policy, policy, digest_of_tuned(policy, tuned or {}), tuned or {})
