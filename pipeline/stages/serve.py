"""`serve` and `steer slurm`: a named policy, or the scenario's champion, decides for a live cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from fastapi import APIRouter

from pipeline.champions.lines import CHAMPIONS, champions_in, digest_of_tuned
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.storage.files import OWNER, write
from pipeline.errors import UserError
from pipeline.external.loading import is_external
from pipeline.lookahead.planner import PREFIX
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.serving.app import application
from pipeline.serving.gateway import PolicyGateway
from pipeline.serving.guard import MOST_TOKEN, bound, server_of, token_for
from pipeline.serving.records import Metrics, ServedPolicy
from pipeline.stages.replaying import model_of
from pipeline.steering import session
from pipeline.steering.rows import OddError
from pipeline.steering.settings import Mode, Settings
from pipeline.steering.slurm import Slurm
from pipeline.steering.states import misfits
from pipeline.tracking.digests import measured

CHAMPION, IN_CLUSTER = "champion", "cluster"
VERDICT, LONGEST_VERDICT = "verdict.txt", 10_000  # in the folder of a controller; characters


def run(
    params: Params,
    scenario: str,
    policy: str,
    limit_ms: float,
    host: str = "127.0.0.1",
    port: int = 8765,
    token_file: Path | None = None,
    kubernetes: str | None = None,
    steering: Path | None = None,
    defaults: Mapping[str, float] = {},
) -> None:
    """Answer requests until a signal arrives.

    `token_file` has the token that callers must send, `defaults` the fields that states may lack.
    """
    text = None if token_file is None else storage.read_text(token_file, MOST_TOKEN)
    if token_file and token_file.is_file() and token_file.stat().st_mode & 0o077:
        say(f"serve: {token_file}: other users of this machine may read it; chmod 600 {token_file}")
    live = problem_of(params, scenario).live
    token, fallback = token_for(host, text, str(token_file)), live.fallback
    if kubernetes and not live.places:
        raise UserError(f"--kubernetes: policies of scenario '{scenario}' do not place jobs on machines")
    with looking(params, scenario, policy) as look, bound(host, port) as where:
        named, found = look(), Metrics()
        gateway = PolicyGateway(params, scenario, look, heuristic(fallback), limit_ms / 1000, found, defaults)
        gateway.wait()
        address = f"http://{host}:{where.getsockname()[1]}/v1/{gateway.live.door}"
        say(f"serve: {scenario}: {named.policy} ({named.digest[:8]}), else {fallback}; POST {address}")
        with _extender(gateway, kubernetes) as more:
            server_of(application(gateway, found, token, more, partial(read_verdict, steering))).run(sockets=[where])


def read_verdict(steering: Path | None) -> tuple[str, ...]:
    """Return the lines of the verdict of a controller in mode shadow, if there is any."""
    if steering is None or not (steering / VERDICT).is_file():
        return ()
    try:
        return tuple(storage.read_text(steering / VERDICT)[:LONGEST_VERDICT].splitlines())
    except UserError as error:
        return (str(error),)


@contextmanager
def _extender(gateway: PolicyGateway, kubernetes: str | None) -> Iterator[Sequence[APIRouter]]:
    """Yield the routes for Kubernetes' scheduler, if requested, while pods and nodes are watched."""
    if kubernetes is None:
        yield ()
        return
    from pipeline.kubernetes.api import Address, Api
    from pipeline.kubernetes.extender import Extender, router_of
    from pipeline.kubernetes.view import View

    with View(Api(Address.found(None if kubernetes == IN_CLUSTER else kubernetes))) as view:
        yield [router_of(Extender(view, gateway.answer))]


@contextmanager
def looking(params: Params, scenario: str, policy: str) -> Iterator[Callable[[], ServedPolicy]]:
    """Yield a function that returns the active policy; the models that it has found are kept until the end."""
    if policy.startswith(PREFIX) and not problem_of(params, scenario).live.plans:
        raise UserError(f"{policy}: policies with look-ahead are not served in scenarios of this problem yet")
    with ExitStack() as kept:
        known: dict[str, ServedPolicy] = {}

        def champion() -> ServedPolicy:
            line = champions_in(storage.read_text(CHAMPIONS)).get(scenario)
            if line is None:
                raise UserError(
                    f"{CHAMPIONS}: scenario '{scenario}' has no champion: 'python -m pipeline promote {scenario}', "
                    "or name a policy by --policy"
                )
            if line.digest not in known:
                # Model files must be those that were promoted.
                places = list(kept.enter_context(model_of(params, scenario, line.ref)).values())
                if line.policy in params.policies:
                    known[line.digest] = ServedPolicy(line.policy, params.policy(line.policy).policy, line.digest)
                else:
                    place = str(places[0].resolve()) if places else line.policy
                    known[line.digest] = ServedPolicy(line.policy, place, line.digest, line.ref.tuned)
            return known[line.digest]

        yield champion if policy == CHAMPION else lambda: by_name(policy, scenario)


def by_name(policy: str, scenario: str) -> ServedPolicy:
    """Return a heuristic, tuned for the scenario, or the present model of a folder or file."""
    if Path(policy).is_dir():
        return ServedPolicy(policy, str(Path(policy).resolve()), measured(Path(policy)))
    if is_external(policy):
        return ServedPolicy(policy, policy, measured(storage.source_of(policy)))
    tuned = storage.results_folder("heuristics", scenario) / "chosen.json"
    return heuristic(policy, storage.read_chosen(scenario).knobs if tuned.exists() else {})


def heuristic(policy: str, tuned: dict[str, float] | None = None) -> ServedPolicy:
    """Return a heuristic with its tuning."""
    return ServedPolicy(policy, policy, digest_of_tuned(policy, tuned or {}), tuned or {})


def steer(params: Params, scenario: str, policy: str, limit_ms: float, settings: Settings) -> None:
    """Steer until a signal arrives."""
    live = problem_of(params, scenario).live
    if not live.places:
        raise UserError(f"scenario '{scenario}': its policies do not place jobs on machines, as Slurm does")
    with looking(params, scenario, policy) as look:
        named = look()
        if settings.mode is Mode.SHADOW:
            from pipeline.steering.replay import check_replayable, verdicts  # needs the simulator, unlike other modes

            check_replayable(named.place)
        if Path(named.place).is_dir():
            with suppress(OddError, UserError):  # `steer` reports an unreadable cluster
                for line in misfits(params, scenario, Slurm().read().nodes):
                    say(f"steer: {line}")
        session.steer(params, scenario, look, heuristic(live.fallback), limit_ms / 1000, settings)
    if settings.mode is Mode.SHADOW:
        lines = list[str]()
        for line in verdicts(settings.folder, named.place, params.seed):
            say(f"shadow: {line}")
            lines.append(f"{line}\n")
        write(settings.folder / VERDICT, "".join(lines).encode(), OWNER)
