"""Registry: agents as MLflow's registered models; a version is one trained policy, with its card and its verdict.

A version is identified by the md5 of its policy, so registering it again adds nothing. Its number belongs to this
database: a rebuilt database counts in the order of publishing. A verdict is the distance of an agent from the best
heuristic of its scenario, by the tables of `compare`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from pipeline.champions.lines import CHAMPIONS, Champion, champions_in
from pipeline.comparing.comparing import BEST
from pipeline.comparing.statistics import ALL
from pipeline.core.config import Params
from pipeline.tracking.digests import md5_of, measured
from pipeline.tracking.identity import every_param
from pipeline.tracking.model import MD5, logged_model
from pipeline.tracking.store import Store

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.entities.model_registry import RegisteredModel

PREFIX = "scheduler-"
MOST_MODELS = 1000  # that MLflow returns at once
ALIAS = "champion"
LINKS = "mlflow.modelVersions"  # MLflow's tag of a logged model, from which its pages list the versions
PARAMS = "params.md5"  # tag of a version
SLOWDOWN, DELAY = "reports/comparison.csv", "reports/delay.csv"


class Verdict(NamedTuple):
    """An agent's mean over all loads of its scenario, relative to the best heuristic's; below 0 is better."""

    what: str  # slowdown or waiting time
    jobsets: int
    difference: float
    low: float  # of the paired interval
    high: float
    confidence: float

    @property
    def word(self) -> str:
        """Return on which side of 0 the whole interval is."""
        return "better" if self.high < 0 else "worse" if self.low > 0 else "not clearly apart"

    @property
    def short(self) -> str:
        """Return the verdict on half a line.

        >>> Verdict("slowdown", 2000, 0.021, 0.01, 0.032, 0.95).short
        'worse: +2.1 % (+1.0 to +3.2)'
        """
        return f"{self.word}: {100 * self.difference:+.1f} % ({100 * self.low:+.1f} to {100 * self.high:+.1f})"

    @property
    def tags(self) -> dict[str, str]:
        """Return searchable tags."""
        numbers = {"difference": self.difference, "low": self.low, "high": self.high, "confidence": self.confidence}
        words = {"what": self.what, "jobsets": str(self.jobsets), "word": self.word}
        named = {**words, **{name: f"{number:g}" for name, number in numbers.items()}}
        return {"verdict": self.short, **{f"verdict.{name}": word for name, word in named.items()}}


def verdicts(params: Params, slowdown: Path, delay: Path | None) -> dict[str, Verdict]:
    """Return the verdict on each agent that was compared; waiting time decides where all agents are trained for it.

    `slowdown` and `delay` are files of `compare`; other files raise ValueError or KeyError.
    """
    tables = {"slowdown": slowdown} | ({"waiting time": delay} if delay else {})
    found: dict[str, Verdict] = {}
    for what, path in tables.items():
        frame = pd.read_csv(path, dtype={"load": str})
        over_all = frame[(frame["load"] == ALL) & (frame["against"] == BEST)]
        for agent, row in params.agents.items():
            goals = {params.judged[name].objective for name in params.agents_of(row.scenario)}
            mine = over_all[(over_all["scenario"] == row.scenario) & (over_all["policy"] == agent)]
            if len(mine) and (what == "slowdown" or goals == {"delay"}):
                middle, low, high = (float(mine[f"difference{end}"].iloc[0]) for end in ("", "_low", "_high"))
                found[agent] = Verdict(what, int(mine["n"].iloc[0]), middle, low, high, params.evaluation.confidence)
    return found


class Version(NamedTuple):
    """A trained policy of an agent."""

    agent: str
    md5: str  # of the policy
    card: str
    tags: dict[str, str]

    @property
    def name(self) -> str:
        """Return the name of the registered model."""
        return f"{PREFIX}{self.agent}"


def versions(
    params: Params, policies: Mapping[str, str], pipeline: str, slowdown: Path | None, delay: Path | None
) -> list[Version]:
    """Return the versions of agents' policies, given by md5, with their verdicts by the files of `compare`, if any."""
    known: dict[str, Verdict] = {}
    if slowdown:
        with suppress(OSError, ValueError, KeyError):  # another format than that of today's `compare`
            known = verdicts(params, slowdown, delay)
    found = []
    for agent, md5 in policies.items():
        row, verdict = params.agent(agent), known.get(agent)
        compared = {**verdict.tags, "verdict.run": pipeline} if verdict else {}
        tags = {MD5: md5, "problem": row.problem, "scenario": row.scenario, "objective": row.objective, **compared}
        found.append(Version(agent, md5, _card(params, agent, verdict), tags))
    return found


def here(params: Params, pipeline: str) -> list[Version]:
    """Return the policies of the working directory, or none before `compare`; DVC keeps them current."""
    if not Path(SLOWDOWN).exists():
        return []
    folders = {agent: Path("models", agent, "policy") for agent in params.agents}
    policies = {agent: measured(folder) for agent, folder in folders.items() if folder.exists()}
    return versions(params, policies, pipeline, Path(SLOWDOWN), Path(DELAY) if Path(DELAY).exists() else None)


def bring_up_to_date(store: Store, versions: Iterable[Version]) -> list[str]:
    """Register logged policies; update cards, verdicts and the champions of champions.yaml; return the new versions."""
    client = store.client
    with store.exclusive("the registered models"):
        wanted = [(one, logged) for one in versions if (logged := logged_model(store, one.md5))]
        models = {model.name: model for model in _models(client)} if wanted else {}
        for last in {one.name: one for one, _ in wanted}.values():
            _show(client, models.get(last.name), last)
        added = [added for one, logged in wanted if (added := _register(client, logged, one))]
        _crown(client, champions_in(CHAMPIONS.read_text(encoding="utf-8")) if CHAMPIONS.exists() else {})
    return added


def _crown(client: "MlflowClient", lines: Mapping[str, Champion]) -> None:
    """Make aliases and tags of the registered models agree with champions.yaml.

    A version is tagged with the verdict of each scenario whose champion it is. The alias is on the champion of
    the agent's own scenario, otherwise of the first one; heuristics are not registered and have no alias.
    """
    for model in _models(client):
        agent = model.name.removeprefix(PREFIX)
        mine = {scenario: line for scenario, line in lines.items() if line.policy == agent}
        first = sorted(mine, key=lambda scenario: scenario != model.tags.get("scenario"))[:1]
        crowned = None
        for held in client.search_model_versions(f"name = '{model.name}'"):
            of = {scenario: line.verdict for scenario, line in mine.items() if line.digest == held.tags.get(MD5)}
            wanted = {f"{ALIAS}.{scenario}": verdict for scenario, verdict in of.items()}
            for key in [key for key in held.tags if key.startswith(f"{ALIAS}.") and key not in wanted]:
                client.delete_model_version_tag(held.name, held.version, key)
            _update(held.tags, wanted, partial(client.set_model_version_tag, held.name, held.version))
            crowned = held.version if set(first) & set(of) else crowned
        if crowned is not None and str(model.aliases.get(ALIAS)) != str(crowned):
            client.set_registered_model_alias(model.name, ALIAS, crowned)
        elif crowned is None and ALIAS in model.aliases:
            client.delete_registered_model_alias(model.name, ALIAS)


def _update(tags: Mapping[str, str], wanted: Mapping[str, str], set_tag: Callable[[str, str], None]) -> None:
    for key, value in wanted.items():
        if tags.get(key) != value:
            set_tag(key, value)


def _models(client: "MlflowClient") -> list["RegisteredModel"]:
    """Return the schedulers; a server may hold other models, too."""
    return list(client.search_registered_models(f"name LIKE '{PREFIX}%'", max_results=MOST_MODELS))


def _show(client: "MlflowClient", model: "RegisteredModel | None", one: Version) -> None:
    """Get or create a registered model with the card and the tags of one version."""
    shown = {key: value for key, value in one.tags.items() if key in ("scenario", "objective", "verdict")}
    if model is None:
        client.create_registered_model(one.name, tags=shown, description=one.card)
        return
    _update(model.tags, shown, partial(client.set_registered_model_tag, one.name))
    if model.description != one.card:
        client.update_registered_model(one.name, one.card)


def _register(client: "MlflowClient", logged: "LoggedModel", one: Version) -> str:
    """Get or create a version, update it, and return its name if it is new."""
    found = [held for held in client.search_model_versions(f"name = '{one.name}'") if held.tags.get(MD5) == one.md5]
    # Identified by its place: MLflow would look for `models:/<id>` in the default store of the process.
    place, run_id, model_id = logged.artifact_location, logged.source_run_id, logged.model_id
    held = next(iter(found), None) or client.create_model_version(
        one.name, place, run_id=run_id, tags=one.tags, description=one.card, model_id=model_id
    )
    links = json.loads(logged.tags.get(LINKS, "[]"))
    mine = {"name": held.name, "version": int(held.version)}
    if mine not in links:
        client.set_logged_model_tags(logged.model_id, {LINKS: json.dumps([*links, mine])})
    sources = {} if held.tags.get("git.dirty") == "false" and PARAMS in held.tags else _sources(client, logged)
    _update(held.tags, sources | one.tags, partial(client.set_model_version_tag, one.name, held.version))
    if held.description != one.card:
        client.update_model_version(one.name, held.version, one.card)
    return "" if found else f"{one.name} {held.version}"


def _sources(client: "MlflowClient", logged: "LoggedModel") -> dict[str, str]:
    """Return the commit of a model's run, and the md5 of its data and of the run's parameters."""
    run = client.get_run(str(logged.source_run_id))
    tags = client.get_run(run.data.tags["mlflow.parentRunId"]).data.tags  # `publish` adds the commit made later
    read = run.inputs.dataset_inputs if run.inputs else []
    data = {f"dvc.in.{one.dataset.name}": one.dataset.digest for one in read}
    data[PARAMS] = md5_of(json.dumps(run.data.params, sort_keys=True).encode())
    return data | {key: tags[key] for key in ("git.commit", "git.dirty") if key in tags}


def _card(params: Params, agent: str, verdict: Verdict | None) -> str:
    rows = every_param(params)
    row = {place.removeprefix(f"agents.{agent}."): value for place, value in rows.items()}
    said = "Not compared yet."
    if verdict:
        said = (
            f"Against the best heuristic, mean {verdict.what} over all loads on {verdict.jobsets} test jobsets, paired "
            f"{100 * verdict.confidence:g} % interval, below 0 is better: **{verdict.short}**."
        )
    return "\n\n".join(
        [
            f"Agent `{agent}` of problem `{row['problem']}`: scenario `{row['scenario']}`, for {row['objective']}.",
            f"Network `{row['network.name']}`; pretraining `{row['pretrain.name']}`; then `{row['finetune.name']}`, "
            f"recipe `{row['finetune.recipe']}`, {row['finetune.updates']} updates.",
            said,
            f"Play it: `python -m pipeline schedule jobs.csv --scenario {row['scenario']} --policy models/{agent} "
            f'--out schedule.csv`. Load a version: `mlflow.pyfunc.load_model("models:/{PREFIX}{agent}/<version>")`.',
        ]
    )
