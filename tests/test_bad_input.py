"""Table of mistakes that users may make: each produces one line, exit code 2, no traceback, and leaves no file.

Cases run in this process, from the command's arguments to its exit. Two also run as separate processes.
`tests/data/bad_inputs.md` is this table with its lines, and `docs/bad-inputs.md` has examples. To write them:

    PYTHONPATH=tests/support python tests/test_bad_input.py
"""

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numba
import pandas as pd
import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.cli import main
from pipeline.core import storage
from pipeline.core.config import load_params
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.nouns import Cluster

DOCUMENT = REPOSITORY / "docs" / "bad-inputs.md"
SNAPSHOT = REPOSITORY / "tests" / "data" / "bad_inputs.md"
EXAMPLES = 1  # rows of each group in the document
EXAMPLED = "These are examples; `tests/data/bad_inputs.md` has every tested mistake. Both files are written by"
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")  # variables that a command sets

HEAD = "jobset,job,arrival,duration,cpu,memory"
JOBS = f"{HEAD}\n0,a,0,3,6,2\n0,b,0,1,6,2\n0,c,1,2,4,8\n"
LINE = "{id} {submit} 0 {run} 1 -1 100 1 -1 -1 1 1 1 1 1 -1 -1 -1"
LOG = [LINE.format(id=k, submit=60 * k, run=600) for k in range(1, 41)]
MILLISECONDS = [LINE.format(id=k, submit=60_000 * k, run=1000 * k) for k in range(1, 41)]

SWINGING: dict[str, object] = {
    "name": "sinusoidal",
    "intervals": 20,
    "period": 10,
    "amplitude": 0.5,
    "run": {"short": 3.0, "medium": 15.0, "long": 60.0},
    "spread": 0.5,
    "demand": {"cpu": [1, 2]},
    "mixes": [{"short": 0.5, "medium": 0.3, "long": 0.2}],
}

Files = dict[str, bytes | None]  # by path; None is a folder


class Case(NamedTuple):
    """One mistake, and what its line must say."""

    what: str
    words: str  # of the command
    says: tuple[str, ...]
    files: Files | None = None


class Outcome(NamedTuple):
    code: int
    lines: tuple[str, ...]  # on stderr
    left: tuple[str, ...]  # files that were not there before


def text(*rows: str, head: str = HEAD) -> bytes:
    return "\n".join([head, *rows, ""]).encode()


def log(*rows: str) -> bytes:
    return "\n".join(["; MaxProcs: 4", *rows, ""]).encode()


def params(old: str, new: str) -> Files:
    """Return the repository's params.yaml with one passage changed."""
    whole = (REPOSITORY / "params.yaml").read_text()
    assert whole.count(old) >= 1, old
    return {"params.yaml": whole.replace(old, new, 1).encode()}


def groups(**rows: object) -> Files:
    """Return the repository's params.yaml with other rows for its scenario of user groups."""
    values = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    values["scenarios"]["shares"] |= rows
    return {"params.yaml": json.dumps(values).encode()}


def on_log(settings: str) -> Files:
    whole = (REPOSITORY / "params.yaml").read_text()
    synthetic = re.search(r"(?ms)^workload:\n.*?^$", whole)
    assert synthetic is not None
    return {"params.yaml": whole.replace(synthetic[0], f"workload: {{name: swf, {settings}}}\n").encode()}


def parquet(**columns: object) -> bytes:
    frame = pd.read_csv(io.StringIO(JOBS)).assign(**columns)
    return bytes(frame.to_parquet(index=False))


@cache
def model() -> Files:
    """Return a model directory with the initial weights."""
    known = load_params(REPOSITORY / "params.yaml")
    network = build(known.agent("deeprm").network, Cluster.of(known.pool_scenario("online")), seed=3)
    with tempfile.TemporaryDirectory() as folder:
        storage.write_model(Path(folder), storage.Model(card_of(known, "deeprm"), weights_of(network)))
        return {f"model/{path.name}": path.read_bytes() for path in Path(folder).iterdir()}


def damaged(name: str, content: bytes | None) -> Files:
    """Return a model directory with one file replaced or omitted."""
    files = {path: kept for path, kept in model().items() if not path.endswith(name)}
    return files if content is None else {**files, f"model/{name}": content}


def card(**changes: object) -> bytes:
    return json.dumps(json.loads(model()["model/policy.json"] or b"") | changes).encode()


GENERATE = "generate online"
PRETRAIN = "pretrain deeprm"
SJF = "schedule jobs.csv --scenario online --policy sjf --out out.csv"
ON_LOG = "schedule log.swf --scenario online --policy sjf --out out.csv"
BY_MODEL = "schedule jobs.csv --scenario online --policy model --out out.csv"


def of(name: str) -> str:
    return SJF.replace("jobs.csv", name, 1)


PARAMS = [
    Case("a misspelt key", GENERATE, ("params.yaml: sead: unknown key",), params("seed: 1 ", "sead: 1 ")),
    Case("a missing key", GENERATE, ("params.yaml: threads: missing key",), params("threads: 2", "#")),
    Case(
        "a GPU where there is none",
        PRETRAIN,
        ("params.yaml: device: 'cuda' asked for",),
        params("device: auto", "device: cuda"),
    ),
    Case(
        "predictions without a log",
        GENERATE,
        ("params.yaml: scenarios.machines: policies_know: only a log has predictions; expected durations",),
        params(
            "policies_know: durations           # what policies", "policies_know: predictions           # what policies"
        ),
    ),
    Case(
        "a misspelt key of an agent",
        GENERATE,
        ("agents.deeprm.finetune.update: unknown key",),
        params("updates: 2000", "update: 3000"),
    ),
    Case(
        "text for a number",
        GENERATE,
        ("params.yaml: agents.deeprm.finetune.updates", "integer", "got 'many'"),
        params("updates: 2000", "updates: many"),
    ),
    Case(
        "a fraction for a whole number",
        GENERATE,
        ("scenarios.online.horizon", "integer", "got 20.5"),
        params("horizon: 20 ", "horizon: 20.5 "),
    ),
    Case(
        "true for a number", GENERATE, ("params.yaml: seed: ", "integer", "got True"), params("seed: 1 ", "seed: true ")
    ),
    Case(
        "a number for a list",
        GENERATE,
        ("scenarios.online.loads: ", "got 130"),
        params("loads: [10, 30, 50, 70, 90, 110, 130, 150, 170, 190]", "loads: 130"),
    ),
    Case(
        "a number out of range",
        GENERATE,
        ("params.yaml: evaluation.confidence: ", "less than 1", "got 1.5"),
        params("confidence: 0.95", "confidence: 1.5"),
    ),
    Case(
        "a negative number",
        GENERATE,
        ("scenarios.online.jobsets.train", "greater than 0", "got -3"),
        params("train: 100", "train: -3"),
    ),
    Case(
        "a range with its ends swapped",
        GENERATE,
        ("params.yaml: workload.short: ", "low <= high", "[3, 1]"),
        params("short: [1, 3]", "short: [3, 1]"),
    ),
    Case(
        "not a number (.nan)",
        GENERATE,
        ("workload.short_share: ", "got "),
        params("short_share: 0.8", "short_share: .nan"),
    ),
    Case(
        "an infinite number (.inf)",
        GENERATE,
        ("workload.short_share: ", "got "),
        params("short_share: 0.8", "short_share: .inf"),
    ),
    Case(
        "a huge number",
        GENERATE,
        ("params.yaml: seed: ", "less than 9223372036854775808", "got 10000000000"),
        params("seed: 1 ", "seed: 100000000000000000000 "),
    ),
    Case(
        "too many jobsets",
        GENERATE,
        ("scenarios.online.jobsets.train: ", "got 10000000000"),
        params("train: 100", "train: 10000000000"),
    ),
    Case(
        "a huge cluster",
        GENERATE,
        ("scenarios.online.resources.cpu: ", "10000", "got 1000000000000"),
        params("{cpu: 10,", "{cpu: 1000000000000,"),
    ),
    Case(
        "a duplicate key",
        GENERATE,
        ("params.yaml:5: not YAML: found duplicate key ", '"seed"'),
        params("threads: 2", "seed: 2\nthreads: 2"),
    ),
    Case(
        "a tab instead of spaces",
        GENERATE,
        ("params.yaml:13: not YAML: found character '\\t'",),
        params("  short: [1, 3]", "\tshort: [1, 3]"),
    ),
    Case(
        "a bracket that is never closed",
        GENERATE,
        ("params.yaml:14: not YAML: expected ',' or ']'",),
        params("short: [1, 3]", "short: [1, 3"),
    ),
    Case("an empty file", GENERATE, ("params.yaml: ", "expected a mapping", "found nothing"), {"params.yaml": b""}),
    Case("only comments", GENERATE, ("params.yaml: ", "found nothing"), {"params.yaml": b"# nothing yet\n"}),
    Case(
        "a list",
        GENERATE,
        ("params.yaml: ", "expected a mapping", "found a list"),
        {"params.yaml": b"- seed: 1\n- threads: 2\n"},
    ),
    Case(
        "a single word", GENERATE, ("params.yaml: ", "expected a mapping", "found 'seed'"), {"params.yaml": b"seed\n"}
    ),
    Case(
        "params.yaml in UTF-16",
        GENERATE,
        ("params.yaml: expected UTF-8 text, found byte 0xff",),
        {"params.yaml": "seed: 1\n".encode("utf-16")},
    ),
    Case(
        "params.yaml in Latin-1",
        GENERATE,
        ("params.yaml: expected UTF-8 text, found byte 0xe9",),
        {"params.yaml": b"# \xe9\nseed: 1\n"},
    ),
    Case("params.yaml is a folder", GENERATE, ("params.yaml: cannot be read (Is a directory)",), {"params.yaml": None}),
    Case(
        "two documents",
        GENERATE,
        ("params.yaml:2: not YAML: but found another document",),
        {"params.yaml": b"seed: 1\n---\nseed: 2\n"},
    ),
    Case(
        "a name with capital letters",
        GENERATE,
        ("params.yaml: agents.DeepRM: ", "got 'DeepRM'"),
        params("  deeprm:\n", "  DeepRM:\n"),
    ),
    Case(
        "an agent of an unknown scenario",
        GENERATE,
        ("agents.deeprm.scenario: unknown 'onlin'", "did you mean 'online'"),
        params("scenario: online\n", "scenario: onlin\n"),
    ),
    Case(
        "an unknown recipe",
        GENERATE,
        ("agents.deeprm.finetune.recipe: unknown 'hers'", "ours, paper"),
        params("recipe: ours", "recipe: hers"),
    ),
    Case(
        "an unknown teacher",
        GENERATE,
        ("agents.deeprm2.pretrain.teacher: unknown 'sjff'", "did you mean 'sjf'"),
        params("teacher: sjf", "teacher: sjff"),
    ),
    Case(
        "an unknown network",
        GENERATE,
        ("agents.deeprm.network.name: unknown 'rnn'", "'mlp', 'cnn'"),
        params("{name: mlp,", "{name: rnn,"),
    ),
    Case(
        "an unknown objective",
        GENERATE,
        ("agents.deeprm.objective: ", "'slowdown'", "got 'speed'"),
        params("objective: slowdown ", "objective: speed "),
    ),
    Case(
        "an unknown workload",
        GENERATE,
        ("params.yaml: workload.name: unknown 'csv'", "'synthetic', 'swf'"),
        params("name: synthetic", "name: csv"),
    ),
    Case(
        "a load that Bernoulli arrivals cannot reach",
        GENERATE,
        ("params.yaml: scenarios.online.loads: 190 %", "largest reachable load is ", "poisson"),
        params("{name: poisson, steps: 50}", "{name: bernoulli, steps: 50}"),
    ),
    Case(
        "a job longer than the horizon",
        GENERATE,
        ("scenarios.online.horizon", "at least the longest job's 15", "got 12"),
        params("horizon: 20 ", "horizon: 12 "),
    ),
    Case(
        "a demand without a whole number of units",
        GENERATE,
        ("scenarios.online: demand 'code': no whole unit", "0.1-0.2 of 4"),
        params("{cpu: 10, memory: 10}", "{cpu: 4, memory: 10}"),
    ),
    Case(
        "a load that the scenario does not have",
        GENERATE,
        ("agents.deeprm.finetune.loads: 200 is not a load of scenario 'online'",),
        params("190]\n      updates: 2000", "190, 200]\n      updates: 2000"),
    ),
    Case(
        "more simultaneous jobs than slots and backlog",
        GENERATE,
        ("scenarios.offline: arrivals.jobs 31 exceed slots 30",),
        params("jobs: 30}", "jobs: 31}"),
    ),
    Case(
        "a misspelt queue in an order",
        "generate shares",
        ("scenarios.shares: orders: expected each of the queues ['short', 'medium', 'long'] once", "'medum'"),
        groups(queues=["short", "medium", "long"], orders=[["short", "medum", "long"]]),
    ),
    Case(
        "levels that do not start at 0",
        "generate shares",
        ("scenarios.shares.levels: expected 0 and then rising numbers, got [0.5, 1.0]",),
        groups(levels=[0.5, 1]),
    ),
    Case(
        "two levels with equal units",
        "generate shares",
        ("scenarios.shares.levels: expected more cpu at 0.2 than at 0.1, found 1 units at both",),
        groups(resources={"cpu": 16}, groups=4, levels=[0, 0.1, 0.2]),
    ),
    Case(
        "shares of a mix that do not sum to 1",
        "generate shares",
        ("scenarios.shares: workload.mixes: expected shares that sum to 1", "'long': 0.1"),
        groups(workload=SWINGING | {"mixes": [{"short": 0.5, "medium": 0.3, "long": 0.1}]}),
    ),
    Case(
        "a group's job that is larger than the cluster",
        "generate shares",
        ("scenarios.shares: workload.demand.cpu: the cluster has 16, got 32",),
        groups(resources={"cpu": 16}, workload=SWINGING | {"demand": {"cpu": [1, 32]}}),
    ),
    Case(
        "a controller for a cluster without user groups",
        "generate shares",
        ("agents.controller.problem: expected pool, as of scenario 'online', got 'groups'",),
        params("    scenario: shares\n", "    scenario: online\n"),
    ),
    Case(
        "a controller with the name of a rule",
        "generate shares",
        ("params.yaml: agents.fixed: 'fixed' is the name of another policy",),
        params("  controller:\n", "  fixed:\n"),
    ),
]

WORDS = [
    Case("an unknown command", "generates online", ("No such command 'generates'", "Did you mean 'generate'")),
    Case("an unknown command of a group", "evaluate agnt deeprm", ("No such command 'agnt'",)),
    Case("a farm without workers", "farm --workers 0", ("Invalid value for '--workers'",)),
    Case("a farm outside a repository", "farm", ("farm: expected dvc.yaml and .dvc here; run this at the",)),
    Case(
        "a sweep over a missing key",
        "farm --set agents.deeprm.finetune.learning_rate=0.001,0.003",
        ("farm: --set agents.deeprm.finetune.learning_rate: no such key; did you mean 'recipes.ours.learning_rate'",),
    ),
    Case(
        "a sweep over a missing agent",
        "farm --set agents.deprm.finetune.updates=10,20",
        ("farm: --set agents.deprm.finetune.updates: agents has no 'deprm'; there are: ", "did you mean 'deeprm'?"),
    ),
    Case(
        "a sweep with a value of the wrong type",
        "farm --set recipes.ours.learning_rate=0.001,fast",
        ("farm: learning_rate=fast: params.yaml: recipes.ours.learning_rate: ", "got 'fast'"),
    ),
    Case(
        "a sweep without values",
        "farm --set recipes.ours.learning_rate",
        ("farm: --set recipes.ours.learning_rate: expected KEY=VALUE,VALUE",),
    ),
    Case(
        "an empty range of seeds",
        "farm --agent deeprm --seeds 5..1",
        ("farm: --seeds 5..1: an empty range; the first is above the last: write 1..5",),
    ),
    Case("seeds without an agent", "farm --seeds 1..3", ("farm: --seeds: no key that is set belongs to an agent",)),
    Case(
        "an agent without seeds", "farm --agent deeprm", ("Invalid value for --agent: it names the agents of --seeds",)
    ),
    Case(
        "a sweep outside a repository",
        "farm --set recipes.ours.clip=1.0,2.0",
        ("farm: expected dvc.yaml and .dvc here; run this at the",),
    ),
    Case(
        "an unknown executor",
        "evaluate heuristics online",
        ("pipeline.toml: executor.backend: Input should be 'serial', 'processes', 'ray' or 'slurm', found 'dask'",),
        {"pipeline.toml": b'[executor]\nbackend = "dask"\n'},
    ),
    Case(
        "an invalid address",
        "evaluate heuristics online",
        ("pipeline.toml: executor: expected HOST:PORT of a Ray cluster, found 'head'",),
        {"pipeline.toml": b'[executor]\nbackend = "ray"\naddress = "head"\n'},
    ),
    Case("an unknown option", "generate online --fast", ("No such option: --fast",)),
    Case("a missing argument", "generate", ("Missing argument 'SCENARIO'",)),
    Case("a missing option", "schedule jobs.csv --scenario online --policy sjf", ("Missing option '--out'",)),
    Case("an extra argument", "generate online offline", ("unexpected extra argument", "offline")),
    Case("text for a number", f"{SJF} --slots many", ("'--slots'", "valid integer")),
    Case(
        "an unknown scenario",
        "generate onlin",
        ("unknown scenario 'onlin'", "offline, online", "did you mean 'online'"),
    ),
    Case("an unknown agent", "pretrain deeprn", ("unknown agent 'deeprn'", "deeprm, deeprm2", "did you mean 'deeprm'")),
    Case("an unknown agent to finetune", "finetune x", ("unknown agent 'x'", "there are: ", "deeprm")),
    Case("an unknown agent to evaluate", "evaluate agent x", ("unknown agent 'x'", "there are: ", "deeprm")),
    Case("a promotion before the gate has judged", "promote", ("reports/gate.json is missing: run 'dvc repro'",)),
    Case(
        "an invalid verdict",
        "promote",
        ("reports/gate.json: not what the gate writes", "run 'dvc repro gate' first"),
        {"reports/gate.json": b'{"online": 3}', "champions.yaml": b""},
    ),
    Case(
        "a rollback where there is no champion",
        "rollback online",
        ("champions.yaml: scenario 'online' has no champion to roll back",),
        {"champions.yaml": b"# Nobody yet.\n"},
    ),
    Case(
        "a rollback without an earlier champion",
        "rollback online",
        ("champions.yaml: online: the line holds no earlier champion", "git log -p"),
        {"champions.yaml": b"online: {policy: sjf, digest: a, verdict: v}\n"},
    ),
    Case(
        "a champion without a digest",
        "rollback online",
        ("champions.yaml: online: digest: missing key",),
        {"champions.yaml": b"online: {policy: sjf, verdict: v}\n"},
    ),
    Case("no champions.yaml", "rollback online", ("champions.yaml: cannot be read (No such file or directory)",)),
    Case(
        "monitoring a scenario without a log",
        "watch log.swf --scenario online",
        ("watch: scenario 'online' is not cut from a log; cut from one: none",),
        {"log.swf": log(*LOG)},
    ),
    Case(
        "monitoring without a scenario",
        "watch log.swf",
        ("watch: name a scenario by --scenario; cut from one: none",),
        {"log.swf": log(*LOG)},
    ),
    Case("an unknown scenario to evaluate", "evaluate heuristics x", ("unknown scenario 'x'", "offline, online")),
    Case(
        "an unknown policy",
        SJF.replace("sjf", "sjff"),
        ("unknown policy 'sjff'", "model directory", "did you mean 'sjf'"),
    ),
    Case("one policy named twice", f"{SJF} --policy sjf", ("--policy: 2 policies would write out_sjf.csv",)),
    Case(
        "a rule of pooled clusters on a scenario of user groups",
        SJF.replace("online", "shares"),
        ("unknown policy 'sjf': expected a model directory or a heuristic; there are: capacity, drf, equal",),
    ),
    Case("a cluster without capacity", f"{SJF} --capacity 0", ("scenario: resources.cpu: ", "greater than 0", "got 0")),
    Case("a negative number of slots", f"{SJF} --slots -1", ("scenario: slots: ", "greater than 0", "got -1")),
    Case("no horizon", f"{SJF} --horizon 0", ("scenario: horizon: ", "greater than 1", "got 0")),
    Case("a horizon that is too long", f"{SJF} --horizon 1000000", ("scenario: horizon: ", "10000", "got 1000000")),
    Case(
        "samples of a heuristic",
        f"{SJF} --samples 16",
        ("--samples: expected a model directory, got 'sjf', which makes the same schedule every time",),
    ),
    Case("a negative number of samples", f"{SJF} --samples -1", ("'--samples'", "greater than or equal to 0")),
    Case(
        "a search over too many jobs and schedules",
        f"{SJF} --search 400000000",
        ("jobs.csv: --search: expected at most 1,000,000,000 jobs times schedules, found 3 jobs times 400,000,000",),
    ),
    Case(
        "a search over too many steps",
        f"{SJF} --search 9",
        (
            "jobs.csv: --search: expected jobsets of at most 200,000 steps between arrivals and of work",
            "found 300,004 in jobset 'late'",
        ),
        {"jobs.csv": text("0,a,0,3,6,2", "late,b,7,3,6,2", "late,c,300007,1,6,2")},
    ),
    Case(
        "a schedule in an unknown file format",
        SJF.replace("out.csv", "out.xlsx"),
        ("out.xlsx: ", ".csv, .csv.gz or .parquet"),
    ),
]


def row(what: str, rows: str, *says: str) -> Case:
    return Case(what, SJF, ("jobs.csv: ", *says), {"jobs.csv": text(rows)})


TABLES = [
    row("a duplicate job", "0,a,0,3,1,2\n0,b,0,3,1,2\n0,a,9,1,1,1", "each jobset, job once", "line 2 again"),
    row("a negative arrival", "0,a,-1,3,1,2", "arrival: expected at least 0, got -1 in line 2"),
    row(
        "an arrival that is not a number (nan)", "0,a,nan,3,1,2", "arrival: expected a whole number in line 2, got nan"
    ),
    row("a missing arrival", "0,a,0,3,1,2\n0,b,,3,1,2", "arrival: expected a whole number in line 3, got nan"),
    row("an arrival as text", "0,a,soon,3,1,2", "arrival: expected a whole number in line 2, got soon"),
    row("an infinite arrival", "0,a,inf,3,1,2", "arrival: expected a whole number in line 2, got inf"),
    row("an arrival that is too late", "0,a,9000000000000,3,1,2", "arrival: expected at most 1000000000000"),
    row("a duration of 0", "0,a,0,0,1,2", "duration: expected at least 1, got 0 in line 2"),
    row("a duration of 2.5 steps", "0,a,0,2.5,1,2", "duration: expected a whole number in line 2, got 2.5"),
    row("a duration beyond the horizon", "0,a,0,21,1,2", "duration: expected at most 20, got 21 in line 2"),
    row("a demand above the capacity", "0,a,0,3,11,2", "cpu: expected at most 10, got 11 in line 2"),
    row("a negative demand", "0,a,0,3,1,-2", "memory: expected at least 0, got -2 in line 2"),
    row("a demand of half a unit", "0,a,0,3,0.5,2", "cpu: expected a whole number in line 2, got 0.5"),
    row("a job without an id", "0,,0,3,1,2", "job: expected not_nullable, got nan in line 2"),
    row("a short row", "0,a,0,3,1,2\n0,b,0,3,1", "memory: expected a whole number in line 3, got nan"),
    row("a long first row", "0,a,0,3,1,2,7", "as many fields in a row as in the header, found more"),
    row("a long row", "0,a,0,3,1,2\n0,b,0,3,1,2,7", "not a readable table", "line 3, saw 7"),
    row("no rows", "", "expected jobs, found none"),
    Case(
        "a missing column",
        SJF,
        ("jobs.csv: columns: expected jobset, job,", "missing memory"),
        {"jobs.csv": text("0,a,0,3,1", head=HEAD.removesuffix(",memory"))},
    ),
    Case(
        "an extra column",
        SJF,
        ("jobs.csv: columns: ", "unknown gpu"),
        {"jobs.csv": text("0,a,0,3,1,2,1", head=f"{HEAD},gpu")},
    ),
    Case(
        "a duplicate column",
        SJF,
        ("jobs.csv: columns: ", "unknown cpu.1"),
        {"jobs.csv": text("0,a,0,3,1,2,1", head=f"{HEAD},cpu")},
    ),
    Case(
        "semicolons instead of commas",
        SJF,
        ("jobs.csv: columns: ", "missing job, arrival"),
        {"jobs.csv": JOBS.replace(",", ";").encode()},
    ),
    Case(
        "no header", SJF, ("jobs.csv: columns: ", "missing job, arrival"), {"jobs.csv": b"0,a,0,3,1,2\n0,b,0,3,1,2\n"}
    ),
    Case("an empty file", SJF, ("jobs.csv: expected jobs, found an empty file",), {"jobs.csv": b""}),
    Case(
        "UTF-16",
        SJF,
        ("jobs.csv: not a readable table (expected UTF-8 text", "UTF-16"),
        {"jobs.csv": JOBS.encode("utf-16")},
    ),
    Case(
        "UTF-16 without a byte order mark",
        SJF,
        ("jobs.csv: not a readable table (expected UTF-8 text", "UTF-16"),
        {"jobs.csv": JOBS.encode("utf-16-le")},
    ),
    Case(
        "Latin-1",
        SJF,
        ("jobs.csv: not a readable table (expected UTF-8 text, found byte 0xe9",),
        {"jobs.csv": text("0,\xe9,0,3,1,2").decode().encode("latin-1")},
    ),
    Case(
        "a quote that is never closed", SJF, ("jobs.csv: not a readable table (",), {"jobs.csv": text('0,"a,0,3,1,2')}
    ),
    Case("a missing file", SJF, ("jobs.csv: no such file",), {"jobs.csv": b"-"}),
    Case("a folder", SJF, ("jobs.csv: not a readable table (Is a directory",), {"jobs.csv": None}),
    Case(
        "an unsupported file type",
        of("jobs.xlsx"),
        (
            "jobs.xlsx: expected a job table (.csv, .csv.gz, .parquet) or a log of format "
            "swf, openb, alibaba2018, alibaba2017, cloudsimpy, slurm, google2011",
        ),
        {"jobs.xlsx": b"PK"},
    ),
    Case(
        "an invalid gzip file",
        of("jobs.csv.gz"),
        ("jobs.csv.gz: not a readable table (Not a gzipped file",),
        {"jobs.csv.gz": JOBS.encode()},
    ),
    Case(
        "truncated gzip",
        of("jobs.csv.gz"),
        ("jobs.csv.gz: not a readable table (Compressed file ended before",),
        {"jobs.csv.gz": gzip.compress(JOBS.encode(), mtime=0)[:-9]},
    ),
    Case(
        "an invalid parquet file",
        of("jobs.parquet"),
        ("jobs.parquet: not a readable table (",),
        {"jobs.parquet": b"junk" * 9},
    ),
    Case(
        "truncated parquet",
        of("jobs.parquet"),
        ("jobs.parquet: not a readable table (",),
        {"jobs.parquet": parquet()[:-40]},
    ),
    Case("empty parquet", of("jobs.parquet"), ("jobs.parquet: not a readable table (",), {"jobs.parquet": b""}),
    Case(
        "dates in parquet",
        of("jobs.parquet"),
        ("jobs.parquet: arrival: expected whole numbers, got datetime64",),
        {"jobs.parquet": parquet(arrival=pd.Timestamp("2024-01-01"))},
    ),
    Case(
        "lists in parquet",
        of("jobs.parquet"),
        ("jobs.parquet: cpu: expected ", "[1]"),
        {"jobs.parquet": parquet(cpu=[[1], [1], [1]])},
    ),
    Case(
        "a duplicate job in parquet",
        of("jobs.parquet"),
        ("jobs.parquet: expected each jobset, job once",),
        {"jobs.parquet": parquet(job=["a", "b", "a"])},
    ),
    Case(
        "a missing column in parquet",
        of("jobs.parquet"),
        ("jobs.parquet: columns: ", "missing memory; unknown ram"),
        {"jobs.parquet": bytes(pd.read_csv(io.StringIO(JOBS)).rename(columns={"memory": "ram"}).to_parquet())},
    ),
]

LOGS = [
    Case(
        "a line with three numbers",
        ON_LOG,
        ("log.swf:4: expected 18 numbers, found 3",),
        {"log.swf": log(LOG[0], LOG[1], "1 2 3", LOG[2])},
    ),
    Case(
        "a line with 19 numbers",
        ON_LOG,
        ("log.swf:3: expected 18 numbers, found 19",),
        {"log.swf": log(LOG[0], f"{LOG[1]} 1")},
    ),
    Case(
        "a word in a line",
        ON_LOG,
        ("log.swf:3: expected 18 numbers, found 'long' as field 4",),
        {"log.swf": log(LOG[0], LINE.format(id=2, submit=9, run="long"))},
    ),
    Case(
        "nan in a line",
        ON_LOG,
        ("log.swf:2: expected 18 numbers below 1e+12, found nan as field 4",),
        {"log.swf": log(LINE.format(id=2, submit=9, run="nan"))},
    ),
    Case(
        "a log in UTF-16",
        ON_LOG,
        ("log.swf:1: expected 18 numbers, found bytes that are not plain text", "UTF-16"),
        {"log.swf": log(*LOG).decode().encode("utf-16")},
    ),
    Case(
        "a job table in place of a log",
        ON_LOG,
        ("log.swf:1: expected 18 numbers, found 1",),
        {"log.swf": JOBS.encode()},
    ),
    Case(
        "a log with 21 columns",
        "trace log.swf",
        ("log.swf:1: expected 18 numbers, found 21",),
        {"log.swf": b"".join(b"%d " % k for k in range(21))},
    ),
    Case(
        "a log with old Mac line ends",
        "trace log.swf",
        ("log.swf:1: expected line ends (LF or CRLF), found only CR",),
        {"log.swf": log(*LOG).replace(b"\n", b"\r")},
    ),
    Case(
        "a machine size that is not a number",
        ON_LOG,
        ("log.swf:1: MaxProcs: expected a whole number such as 1024, found '128*8'",),
        {"log.swf": b"; MaxProcs: 128*8\n" + log(*LOG)},
    ),
    Case(
        "two machine sizes",
        ON_LOG,
        ("log.swf:2: MaxProcs: expected 9, as an earlier line says, found ",),
        {"log.swf": b"; MaxProcs: 9\n" + log(*LOG)},
    ),
    Case(
        "a log in milliseconds",
        GENERATE,
        ("params.yaml: workload: implausible log: times: ", "accept: [times] there"),
        {**on_log("path: log.swf, window: 2"), "data/log": log(*MILLISECONDS)},
    ),
    Case("a log without jobs", ON_LOG, ("log.swf: expected jobs, found an empty log",), {"log.swf": log()}),
    Case("an empty log", ON_LOG, ("log.swf: expected jobs, found an empty log",), {"log.swf": b""}),
    Case(
        "a log whose jobs never ran",
        ON_LOG,
        ("log.swf: expected jobs, found none in 1 rows: run time unknown (1, first in line 2)",),
        {"log.swf": log(LINE.format(id=1, submit=0, run=-1))},
    ),
    Case("a missing log", ON_LOG, ("log.swf: cannot be read (No such file or directory)",)),
    Case("a folder in place of a log", ON_LOG, ("log.swf: cannot be read (Is a directory)",), {"log.swf": None}),
    Case(
        "an invalid compressed log",
        ON_LOG.replace(".swf", ".swf.gz"),
        ("log.swf.gz: ", "not a whole gzip file"),
        {"log.swf.gz": log(*LOG)},
    ),
    Case(
        "a truncated compressed log",
        ON_LOG.replace(".swf", ".swf.gz"),
        ("log.swf.gz: ", "not a whole gzip file", "ended"),
        {"log.swf.gz": gzip.compress(log(*LOG), mtime=0)[:-9]},
    ),
    Case(
        "params.yaml gives a missing log",
        "log",
        ("params.yaml: workload.path: no such file or folder: ", "none.swf"),
        on_log("path: none.swf"),
    ),
    Case(
        "params.yaml gives an empty folder",
        "log",
        ("params.yaml: workload.path: expected files in ", "logs"),
        {**on_log("path: logs"), "logs": None},
    ),
    Case("a log that was not linked", GENERATE, ("data/log: cannot be read", "No such file"), on_log("path: log.swf")),
    Case(
        "shares that leave no test period",
        GENERATE,
        ("params.yaml: workload: ", "train_share + validation_share below 1"),
        on_log("path: log.swf, train_share: 0.8, validation_share: 0.2"),
    ),
    Case(
        "a log shorter than its windows",
        GENERATE,
        ("a period of 24 jobs", "shorter than a window of 100"),
        {**on_log("path: log.swf"), "data/log": log(*LOG)},
    ),
    Case(
        "a resource that the log does not have",
        GENERATE,
        ("the log has no resource 'gpu'", "cpu"),
        {
            "params.yaml": (on_log("path: log.swf")["params.yaml"] or b"").replace(
                b"{cpu: 10, memory: 10}", b"{cpu: 4, gpu: 4}"
            ),
            "data/log": log(*LOG),
        },
    ),
]

FILES = [
    Case(
        "no params.yaml",
        GENERATE,
        ("params.yaml: cannot be read (No such file", "repository's root"),
        {"params.yaml": b"-"},
    ),
    Case(
        "missing jobsets",
        "evaluate heuristics online",
        ("data/jobsets/online/train.parquet is missing", "dvc repro"),
    ),
    Case("missing jobsets to learn from", "pretrain deeprm", ("data/jobsets/online/train.parquet is missing",)),
    Case(
        "invalid jobsets",
        "evaluate heuristics online",
        ("data/jobsets/online/train.parquet: not a readable table (",),
        {"data/jobsets/online/train.parquet": b"junk" * 9},
    ),
    Case(
        "jobsets of an older version",
        "evaluate heuristics online",
        ("data/jobsets/online/train.parquet: columns: ", "missing load"),
        {"data/jobsets/online/train.parquet": parquet()},
    ),
    Case("missing results", "evaluate compare", ("data/jobsets/online/test.parquet is missing",)),
    Case("a missing model", BY_MODEL, ("unknown policy 'model': expected a model directory or a heuristic",)),
    Case(
        "an empty model directory",
        BY_MODEL,
        ("model: not a model directory: expected policy.json and",),
        {"model": None},
    ),
    Case("a model without weights", BY_MODEL, ("model: not a model directory",), damaged("policy.safetensors", None)),
    Case(
        "invalid weights",
        BY_MODEL,
        ("model/policy.safetensors: not weights (",),
        damaged("policy.safetensors", b"junk"),
    ),
    Case(
        "truncated weights",
        BY_MODEL,
        ("model/policy.safetensors: not weights (",),
        damaged("policy.safetensors", (model()["model/policy.safetensors"] or b"")[:-5]),
    ),
    Case("an invalid model card", BY_MODEL, ("model/policy.json: not a model card (",), damaged("policy.json", b"{")),
    Case(
        "a model of another cluster", f"{BY_MODEL} --slots 5", ("model of agent 'deeprm'", "slots 10", "has 5"), model()
    ),
    Case(
        "a schedule in a folder that is a file",
        SJF.replace("out.csv", "jobs.csv/out.csv"),
        ("jobs.csv/out.csv: cannot be written (",),
    ),
    Case(
        "a schedule that would replace a folder",
        SJF.replace("out.csv", "taken.csv"),
        ("taken.csv: cannot be written (Is a directory)",),
        {"taken.csv": None},
    ),
]

SLURM = "import slurm dump.txt --out site"
STEER = "steer slurm --scenario machines"


def dump(*rows: str, head: str = "JobIDRaw|User|Submit|Start|End|State|AllocCPUS") -> Files:
    """Return a dump of sacct."""
    return {"dump.txt": "\n".join([head, *rows, ""]).encode()}


RAN = "2026-01-01T08:00:00|2026-01-01T08:00:05|2026-01-01T09:00:05"
DUMPS = [
    Case("a missing dump", SLURM, ("dump.txt: cannot be read (No such file or directory)",)),
    Case("an empty dump", SLURM, ("dump.txt: expected jobs, found an empty file",), {"dump.txt": b""}),
    Case(
        "a dump without its header",
        SLURM,
        ("dump.txt:1: expected the names of fields as sacct --parsable2", "found '1|anna|"),
        dump(f"1|anna|{RAN}|COMPLETED|1", head=f"1|anna|{RAN}|COMPLETED|1"),
    ),
    Case(
        "a dump without a field",
        SLURM,
        ("dump.txt:1: expected the field Submit",),
        dump(f"1|{RAN}", head="JobID|Start|End|State"),
    ),
    Case(
        "a vertical bar in a name",
        SLURM,
        ("dump.txt:2: expected 7 fields", "found 8", "leave those out"),
        dump(f"1|an|na|{RAN}|COMPLETED|1"),
    ),
    Case(
        "a dump with a truncated last line",
        SLURM,
        ("dump.txt:3: expected a whole last line", "--partial"),
        {"dump.txt": (dump(f"1|anna|{RAN}|COMPLETED|1", f"2|bo|{RAN}|COMPL")["dump.txt"] or b"")[:-1]},
    ),
    Case(
        "numbers in another locale",
        SLURM,
        ("dump.txt:2: expected a whole number", "AllocCPUS, found '1.024'"),
        dump(f"1|anna|{RAN}|COMPLETED|1.024"),
    ),
    Case(
        "times in another locale",
        SLURM,
        ("dump.txt:2: expected a time as 2026-01-31T08:00:00", "as Submit, found '01.01.2026 08:00'"),
        dump(f"1|anna|01.01.2026 08:00|{RAN[20:]}|COMPLETED|1"),
    ),
    Case(
        "jobs of one user",
        SLURM,
        ("dump.txt: expected the jobs of all users, found a single user", "--allusers", "--partial"),
        dump(f"1|anna|{RAN}|COMPLETED|1", f"2|anna|{RAN}|COMPLETED|1"),
    ),
    Case(
        "no completed job",
        SLURM,
        ("expected completed jobs, found none among 2 (FAILED 1, TIMEOUT 1)",),
        dump(f"1|anna|{RAN}|FAILED|1", f"2|bo|{RAN}|TIMEOUT|1"),
    ),
    Case(
        "jobs that never ran",
        SLURM,
        ("expected jobs that ran, found none (1 ended before it started",),
        dump("1|anna|2026-01-01T08:00:00|None|2026-01-01T08:00:01|CANCELLED by 7|0"),
    ),
    Case(
        "a missing key file",
        f"{SLURM} --key-file my.key",
        ("my.key: cannot be read (No such file or directory)",),
        dump(f"1|anna|{RAN}|COMPLETED|1", f"2|bo|{RAN}|COMPLETED|1"),
    ),
    Case("too few jobs to compare with Slurm", "fidelity --jobs 3", ("'--jobs'", "10")),
    Case("no policy to steer by", "steer slurm", ("--scenario: expected a scenario of many machines",)),
    Case(
        "an unknown mode",
        f"{STEER} --mode all",
        ("--mode: unknown 'all': expected observe, shadow, order, rel",),
    ),
    Case(
        "release without the partitions of held jobs",
        f"{STEER} --mode release",
        ("--held-in: expected with --mode release, and only there",),
    ),
    Case(
        "a draw in a mode without draws",
        f"{STEER} --mode shadow --draw 3",
        ("--draw: expected with --mode observe or",),
    ),
    Case("no journal to import", "import journal none", ("none/journal.jsonl: not found; expected the --folder of a",)),
    Case("a strength too low to order by", f"{STEER} --strength 5", ("'--strength'", "2001")),
    Case("a tick without a pause", f"{STEER} --tick 0.1", ("'--tick'", "1")),
    Case(
        "a pooled cluster to steer Slurm by",
        "steer slurm --scenario online",
        ("scenario 'online': its policies do not place jobs on machines",),
    ),
    Case(
        "a reset without a controller",
        "steer slurm --reset --folder none",
        ("none: not found; expected the --folder of a",),
    ),
    Case("no dump given", "import slurm", ("Missing argument 'files'",)),
    Case("an unknown scheduler", "import pbs dump.txt", ("pbs",)),
]

SHOW = "show --scenario online --policy sjf --against fcfs --out out.png"

REPORTS = [
    Case("a report without results", "report", ("reports/summary.csv", "missing", "dvc repro")),
    Case(
        "a damaged dvc.lock",
        "prune",
        ("dvc.lock: cannot be read: 'git checkout HEAD -- dvc.lock' brings back the last commit's",),
        {"dvc.lock": b"stages: [", "dvc.yaml": b"stages: {}"},
    ),
    Case("no database", "ui --no-browser", ("mlflow.db: there is no MLflow database yet", "publish")),
    Case("a port out of range", "ui --port 99999", ("'--port'", "65535")),
    Case("an unknown policy to show", SHOW.replace("sjf", "sjff"), ("unknown policy 'sjff'", "did you mean 'sjf'")),
    Case("missing jobsets to show", f"{SHOW} --load 130", ("data/jobsets/online/test.parquet is missing", "dvc repro")),
    Case("an unknown jobset of a table", f"{SHOW} jobs.csv --jobset 9", ("unknown jobset '9'", "there are: 0")),
    Case("a picture in an unknown file format", SHOW.replace("out.png", "out.svg"), ("out.svg: ", ".png")),
    Case(
        "a schedule that would replace its own jobs",
        SJF.replace("out.csv", "jobs.csv"),
        ("jobs.csv: the jobs are read from it",),
    ),
]

GROUPS = {
    "params.yaml": PARAMS,
    "The command line": WORDS,
    "Job tables": TABLES,
    "Logs": LOGS,
    "Dumps of Slurm's accounting": DUMPS,
    "Files and models": FILES,
    "Reports, pictures and records": REPORTS,
}
CASES = [case for group in GROUPS.values() for case in group]
AS_PROCESSES = [PARAMS[0], WORDS[0]]  # one that the project refuses, and one that the command line's library does
LABELS = [f"{title}: {case.what}" for title, group in GROUPS.items() for case in group]

# What is repaired or set aside, and what the program says about it.
REPAIRED = [
    Case(
        "17 columns",
        ON_LOG,
        ("17 columns: last one taken as unknown (40 rows)",),
        {"log.swf": log(*(line.rsplit(" ", 1)[0] for line in LOG))},
    ),
    Case(
        "arrivals out of order",
        ON_LOG,
        ("not in order of arrival: sorted (39 rows)",),
        {"log.swf": log(*reversed(LOG))},
    ),
    Case(
        "run = -1",
        ON_LOG,
        ("run time unknown (1 rows)", "40 jobs over"),
        {"log.swf": log(*LOG, LINE.format(id=41, submit=9, run=-1))},
    ),
    Case(
        "run = 0",
        ON_LOG,
        ("ran less than a second: 1 s taken (2 rows)",),
        {"log.swf": log(*LOG, *[LINE.format(id=41, submit=9, run=0)] * 2)},
    ),
    Case(
        "a missing header",
        ON_LOG,
        ("no MaxProcs header: the machine is unknown, with at least ",),
        {"log.swf": "\n".join(LOG).encode()},
    ),
    Case(
        "fractions",
        ON_LOG,
        ("fraction of a processor: rounded (1 rows)",),
        {"log.swf": log(*LOG, LINE.format(id=41, submit=9, run=77.5).replace(" 1 ", " 1.5 ", 1))},
    ),
    Case("a log with Windows' line ends", ON_LOG, ("40 jobs over",), {"log.swf": log(*LOG).replace(b"\n", b"\r\n")}),
    Case("a table with a byte order mark", SJF, ("3 jobs, ",), {"jobs.csv": JOBS.encode("utf-8-sig")}),
    Case("a table with Windows' line ends", SJF, ("3 jobs, ",), {"jobs.csv": JOBS.replace("\n", "\r\n").encode()}),
    Case(
        "rows and columns in any order",
        SJF,
        ("2 jobs, ",),
        {"jobs.csv": text("3,1,2,b,5,0", "3,1,2,a,0,0", head="duration,cpu,memory,job,arrival,jobset")},
    ),
]


@contextlib.contextmanager
def place(files: Files | None) -> Iterator[Path]:
    """Make a folder with params.yaml (with this process's number of threads), a job table, and a case's own files."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        shutil.copy(REPOSITORY / "params.yaml", root)
        (root / "jobs.csv").write_text(JOBS)
        for name, content in (files or {}).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if content is None:
                path.mkdir()
            elif content != b"-":  # this content means: no such file
                path.write_bytes(content)
        path = root / "params.yaml"
        if path.is_file():
            threads = f"threads: {numba.config.NUMBA_NUM_THREADS}".encode()
            path.write_bytes(re.sub(rb"(?m)^threads: \d+", threads, path.read_bytes()))
        yield root


def inside(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


def within(root: Path, words: str) -> tuple[int, str]:
    """Run a command in this process, from its words to its exit."""
    said, on_progress = io.StringIO(), io.StringIO()
    quiet = {"PIPELINE_TRACKING": "off"} | dict.fromkeys(THREADS, str(numba.config.NUMBA_NUM_THREADS))
    code: object = 0
    with (
        contextlib.chdir(root),
        mock.patch.dict(os.environ, quiet),
        mock.patch.object(sys, "argv", ["pipeline", *words.split()]),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(on_progress),
    ):
        os.environ.pop("DVC_ROOT", None)
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert on_progress.getvalue() == ""
    return int(str(code or 0)), said.getvalue()


def apart(root: Path, words: str) -> tuple[int, str]:
    """Run a command as users do: as a process."""
    named = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "pipeline", *words.split()]
    done = subprocess.run(command, check=False, cwd=root, env=named, capture_output=True, text=True)
    assert done.stdout == ""
    return done.returncode, done.stderr


def outcome(case: Case, *, process: bool = False) -> Outcome:
    with place(case.files) as root:
        before = inside(root)
        code, said = (apart if process else within)(root, case.words)
        lines = said.replace(str(root), "/place").splitlines()
        return Outcome(code, tuple(lines), tuple(sorted(inside(root) - before)))


seen: dict[str, Outcome] = {}  # by label: every case runs once, both for its own test and for the document


def run_once(label: str) -> Outcome:
    if label not in seen:
        seen[label] = outcome(CASES[LABELS.index(label)])
    return seen[label]


def check(case: Case, found: Outcome) -> None:
    assert found.code == 2
    (line,) = found.lines
    assert line.startswith("error: ")
    assert "Traceback" not in line
    for words in case.says:
        assert words in line
    assert found.left == ()


@pytest.mark.parametrize("label", LABELS)
def test_bad_input_ends_with_one_line_and_leaves_nothing(label: str) -> None:
    check(CASES[LABELS.index(label)], run_once(label))


@pytest.mark.parametrize("case", AS_PROCESSES, ids=[case.what for case in AS_PROCESSES])
def test_a_process_says_the_same(case: Case) -> None:
    found = outcome(case, process=True)
    check(case, found)
    assert found == run_once(LABELS[CASES.index(case)])


@pytest.mark.parametrize("case", REPAIRED, ids=[case.what for case in REPAIRED])
def test_what_can_be_repaired_is_repaired_and_counted(case: Case) -> None:
    found = outcome(case)
    assert found.code == 0
    for words in case.says:
        assert any(words in line for line in found.lines), found.lines
    assert found.left == ("out.csv",)


def markdown(most: int | None = None) -> str:
    """Return the table as Markdown, with at most `most` rows of each group."""
    parts = [
        "# Bad input",
        "Each mistake ends the command with one line and exit code 2, leaving no file. "
        f"{EXAMPLED if most else f'These are all {len(CASES)} tested mistakes. Written by'}",
        "`PYTHONPATH=tests/support python tests/test_bad_input.py`.",
    ]
    for title, group in GROUPS.items():
        cases = group[:most]
        lines = [run_once(f"{title}: {case.what}").lines[0].replace("|", "\\|") for case in cases]
        rows = [f"| {case.what} | `{line}` |" for case, line in zip(cases, lines, strict=True)]
        parts.append("\n".join([f"## {title}\n", "| mistake | line |", "| --- | --- |", *rows]))
    rows = []
    for case in REPAIRED[:most]:
        line = next(line for line in outcome(case).lines if case.says[0] in line)
        rows.append(f"| {case.what} | `{line}` |")
    said = "These inputs are read. Repaired and dropped rows are counted."
    parts.append("\n".join([f"## Repaired\n\n{said}\n", "| input | line |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def test_the_snapshot_has_every_line_and_the_document_examples() -> None:
    again = "run: PYTHONPATH=tests/support python tests/test_bad_input.py"
    assert SNAPSHOT.read_text() == markdown(), again
    assert DOCUMENT.read_text() == markdown(EXAMPLES), again


if __name__ == "__main__":
    SNAPSHOT.write_text(markdown())
    DOCUMENT.write_text(markdown(EXAMPLES))
