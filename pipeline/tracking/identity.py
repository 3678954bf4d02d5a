"""Identity: the pipeline run of a stage, the stage itself, and the tags and params that identify them.

Stages are separate processes, and DVC gives them no id of their `dvc repro`. So the id is computed from the content of
the run: experiment name, code, params and log. All stages of one `dvc repro` have the same id, also after it is
resumed. A commit does not change the id; an edit begins a new run. A stage, too, has a key, made of its outputs and
params: `publish` computes it from dvc.lock to find the stages that are already recorded.
"""

import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.core.config import Params
from pipeline.core.config.git import CODE, git, refusal
from pipeline.core.config.parsing import parsed
from pipeline.core.types import Json
from pipeline.tracking.digests import md5_of, measured, working_tree

AGENT_STAGES = ("pretrain", "finetune", "evaluate")
TRANSFER = "transfer"  # the stage of an agent on another scenario
PLAN = "plan"  # the stage of a policy that looks ahead
POLICY, PASSED = "policy", "passed"  # the stages of an external policy; the second has no record
# Section of params.yaml whose rows a stage runs for; other stages run for scenarios.
SECTIONS = dict.fromkeys(AGENT_STAGES, "agents") | {TRANSFER: "transfers", PLAN: "plans", POLICY: "policies"}
OWN_SECTION = {name: name for name in ("heuristics", "hindsight", "gate")}
OWN_SECTION |= dict.fromkeys(("compare", "papers"), "evaluation")
SHARED = ("seed", "threads", "device", "workload")  # what every stage depends on
NO_GIT = "nogit"
LONGEST_PARAM = 6000
FROM_BEST = " from best "  # follows the policy, which comes first because legends are cut off
PIPELINE_STAGE = "pipeline"  # tag `stage` of a parent run
STAGE_KEY = "stage.key"
STAGE_RESULT = "stage.result"  # the key without params: unchanged if a param did not matter to the stage


class Identity(NamedTuple):
    """One pipeline run."""

    content: str
    experiment: str  # DVC's name of the experiment; "" in a plain `dvc repro`
    commit: str
    dirty: str  # true, false, or unknown without git

    @property
    def pipeline(self) -> str:
        """Return the id of the pipeline run."""
        return f"{self.experiment or 'repro'}-{self.content}"

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags that parent and children share."""
        return _non_empty(
            {
                "pipeline.id": self.pipeline,
                "pipeline.content": self.content,
                "pipeline.kind": "experiment" if self.experiment else "repro",
                "dvc.exp.name": self.experiment,
                "git.commit": self.commit,
                "git.dirty": self.dirty,
            }
        )


def identify() -> Identity:
    """Return the pipeline run of this process, from its working directory and DVC's environment."""
    head = git("rev-parse", os.environ.get("DVC_EXP_BASELINE_REV") or "HEAD")
    if head is None and (why := refusal()):
        sys.stderr.write(f"tracking: the run is recorded without its commit, because git refuses: {why}\n")
    commit = NO_GIT if head is None else head.decode().strip()
    status = None if head is None else git("status", "--porcelain", "--", *CODE)
    dirty = "unknown" if status is None else str(bool(status)).lower()
    return Identity(working_tree().content, os.environ.get("DVC_EXP_NAME", ""), commit, dirty)


def title_of(name: str, subject: str) -> str:
    """Return DVC's name of a stage, such as finetune@deeprm."""
    return f"{name}@{subject}" if subject else name


def stage_tags(name: str, subject: str) -> dict[str, str]:
    """Return the tags that identify the stage of a run."""
    return _non_empty({"stage": name, "subject": subject, "dvc.stage": title_of(name, subject)})


def output_tags(title: str, outs: Mapping[str, str], params: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of a stage's outputs: the md5 of each and of all, and the stage's key."""
    key, result = (md5_of(json.dumps([title, outs, more], sort_keys=True).encode()) for more in (params, {}))
    return {STAGE_KEY: key, STAGE_RESULT: result, **{f"dvc.out.{path}": md5 for path, md5 in outs.items()}}


def outputs(title: str) -> dict[str, str] | None:
    """Return the md5 of each output of a stage that has just ended, or None if one is missing."""
    paths = [Path(path) for path in declared(title)]
    if not paths or not all(path.exists() for path in paths):
        return None
    return {path.as_posix(): measured(path) for path in paths}


def declared(title: str) -> list[str]:
    """Return the outputs of a stage that dvc.yaml declares."""
    file = Path("dvc.yaml")
    name, _, subject = title.partition("@")
    text = file.read_text(encoding="utf-8") if file.exists() else "stages: {}"
    stage = parsed(text, str(file), of_dvc=True)["stages"].get(name, {})
    body = stage.get("do", stage)
    items = [item for kind in ("outs", "metrics", "plots") for item in body.get(kind, [])]
    names = [item if isinstance(item, str) else next(iter(item)) for item in items]
    return [name.replace("${key}", subject).replace("${item}", subject) for name in names]


def curve_name(name: str, scenario: str, loads: Collection[int]) -> str:
    """Return the metric of a curve, with its scenario, because scenarios have policies and loads in common.

    MLflow makes a section of charts from the text before a slash and shows sections first, so the name of a single
    point has no slash. Chart titles are cut off after about ten letters, so slowdown, the default, is left out.

    >>> curve_name("slowdown/sjf", "online", [10, 50]), curve_name("makespan/sjf", "online", [10, 50])
    ('online/sjf', 'online makespan/sjf')
    >>> curve_name("slowdown/sjf", "offline", [100])
    'sjf offline'
    """
    kind, _, policy = name.partition("/")
    heading = scenario if kind == "slowdown" else f"{scenario} {kind}"
    return f"{heading}/{policy}" if len(loads) > 1 else f"{policy} {heading}"


def from_best(metrics: Mapping[str, Json]) -> dict[str, float]:
    """Return every agent's distance in percent from the best heuristic, as in metrics.json, by metric name.

    >>> from_best({"online": {"net": {"percent_from_best": -2.5}, "sjf": {"slowdown": 3.0}, "unfinished_jobs": 0}})
    {'net from best online': -2.5}
    """
    return {
        f"{policy}{FROM_BEST}{scenario}": percent
        for scenario, rows in metrics.items()
        for policy, row in (rows.items() if isinstance(rows, Mapping) else ())
        if isinstance(row, Mapping) and isinstance(percent := row.get("percent_from_best"), float)
    }


def scenario_of(params: Params, name: str, subject: str) -> str:
    """Return the scenario of a stage."""
    return str(rows_of(params, name)[subject].scenario) if name in SECTIONS else subject


def rows_of(params: Params, name: str) -> Mapping[str, Any]:
    """Return the rows of params.yaml that have this stage, by name."""
    return dict(getattr(params, SECTIONS.get(name, "scenarios")))


def every_param(params: Params) -> dict[str, str]:
    """Return all of params.yaml, flattened, for the pipeline's run."""
    return dict(_leaves("", params.model_dump(mode="json")))


def stage_params(params: Params, name: str, subject: str) -> dict[str, str]:
    """Return the rows of params.yaml that concern a stage, and those that all stages share, flattened."""
    rows: dict[str, dict[str, object]] = params.model_dump(mode="json")
    about = {SECTIONS.get(name, "scenarios"): subject}
    if name in (*AGENT_STAGES, TRANSFER):
        about["agents"] = subject if name in AGENT_STAGES else params.transfer(subject).agent
        about["recipes"] = params.agent(about["agents"]).finetune.recipe
    if name in (TRANSFER, PLAN, POLICY):
        about["scenarios"] = scenario_of(params, name, subject)
    chosen: dict[str, object] = {key: rows[key] for key in SHARED}
    if name in OWN_SECTION:
        chosen[OWN_SECTION[name]] = rows[OWN_SECTION[name]]
    chosen |= {section: {key: rows[section][key]} for section, key in about.items() if key in rows[section]}
    return dict(_leaves("", chosen))


def _leaves(place: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{place}.{key}" if place else key, item)
    else:
        yield place, (value if isinstance(value, str) else json.dumps(value))[:LONGEST_PARAM]


def _non_empty(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if value}
