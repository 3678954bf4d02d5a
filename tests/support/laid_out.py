"""A repository that looks as if the pipeline had run: outputs of one scenario and one agent, and their dvc.lock."""

import json
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from repositories import HINDSIGHT
from ruamel.yaml import YAML
from tracking_records import REPOSITORY, Records

from pipeline.core.config import load_params
from pipeline.core.storage import Model, write_model
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.tracking.digests import measured

import_module("dvc")  # it keeps the stdout of its first import for good: this must not be one test's

# Outputs by stage, and the outputs that each stage reads.
OUTS = {
    "log": ["data/log"],
    "generate@online": ["data/jobsets/online"],
    "heuristics@online": ["reports/tables/heuristics/online"],
    "pretrain@deeprm": ["models/deeprm/pretrained", "reports/curves/deeprm_pretrain.csv"],
    "finetune@deeprm": ["models/deeprm/policy", "reports/curves/deeprm_finetune.csv"],
    "evaluate@deeprm": ["reports/tables/agents/deeprm"],
    "compare": ["reports/comparison.md", "reports/slowdown.json", "reports/summary.csv", "reports/comparison.csv"],
}
READ = {
    "log": [],
    "generate@online": ["data/log"],
    "heuristics@online": ["data/jobsets/online"],
    "pretrain@deeprm": ["data/jobsets/online"],
    "finetune@deeprm": ["data/jobsets/online", "models/deeprm/pretrained"],
    "evaluate@deeprm": ["data/jobsets/online", "models/deeprm/policy"],
    "compare": ["reports/tables", "reports/curves"],
}
FIGURES = "reports/figures"
MEANS = {10: [1.0, 1.5], 190: [4.0, 5.0]}  # slowdown of two jobsets by load


class LaidOut:
    """The repository, which is the working directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def lay_out(self) -> None:
        """Put all files into the working directory, which has params.yaml."""
        root = self.root
        for name in ("dvc.yaml", ".gitignore", ".dvcignore", ".dvc/config"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(REPOSITORY / name, root / name)
        self.edit(_leave_one_agent)
        self.write("pipeline/code.py", "a = 1\n")
        self.write("data/log", "no log\n")
        self._outs()
        self.lock()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit("one")

    def compared(self, *difference: float) -> None:
        """Write the agent's difference from the best heuristic and the ends of its interval."""
        header = "scenario,load,policy,against,n,difference,difference_low,difference_high"
        numbers = ",".join(map(str, difference))
        self.write("reports/comparison.csv", f"{header}\nonline,all,deeprm,best_heuristic,6,{numbers}\n")

    def edit(self, change: Any) -> None:
        """Change params.yaml."""
        rows = YAML().load(self.root / "params.yaml")
        change(rows)
        with (self.root / "params.yaml").open("w") as stream:
            YAML().dump(rows, stream)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *words: str) -> str:
        named = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words]
        return subprocess.run(named, check=True, capture_output=True, text=True, cwd=self.root).stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message)
        return self.git("rev-parse", "HEAD")

    def experiment(self, name: str) -> str:
        """Store the working tree as DVC stores an experiment, and return its commit."""
        baseline = self.git("rev-parse", "HEAD")
        rev = self.commit(name)
        self.git("update-ref", f"refs/exps/{baseline[:2]}/{baseline[2:]}/{name}", rev)
        self.git("reset", "--quiet", "--hard", baseline)
        return rev

    def cache(self) -> None:
        """Put all outputs into DVC's cache."""
        for path in (Path(path) for paths in (*OUTS.values(), [FIGURES]) for path in paths):
            if path.is_dir():
                files = {file.relative_to(path).as_posix(): file for file in sorted(path.rglob("*")) if file.is_file()}
                tree = [{"md5": measured(file), "relpath": name} for name, file in files.items()]
                self._keep(measured(path), json.dumps(tree).encode())
                for file in files.values():
                    self._keep(measured(file), file.read_bytes())
            else:
                self._keep(measured(path), path.read_bytes())

    def lock(self, *titles: str) -> None:
        """Write dvc.lock for some stages, or for all."""
        rows = YAML(typ="safe").load(self.root / "params.yaml")
        stages = {}
        for title in titles or OUTS:
            outs = OUTS[title]
            paths = [*outs, FIGURES] if title == "compare" else outs
            stages[title] = {
                "cmd": "c",
                "deps": [{"path": path, "md5": measured(Path(path))} for path in ("pipeline", *READ[title])],
                "params": {"params.yaml": {"seed": rows["seed"], **self._rows(title, rows)}},
                "outs": [{"path": path, "md5": measured(Path(path))} for path in paths],
            }
        with (self.root / "dvc.lock").open("w") as stream:
            YAML().dump({"schema": "2.0", "stages": stages}, stream)

    def _rows(self, title: str, rows: dict[str, Any]) -> dict[str, Any]:
        if title == "compare":
            return {"evaluation": rows["evaluation"]}
        part = title.partition("@")[0]
        return {f"agents.deeprm.{part}": rows["agents"]["deeprm"][part]} if part in ("pretrain", "finetune") else {}

    def _keep(self, md5: str, content: bytes) -> None:
        path = self.root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / md5[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _outs(self) -> None:
        jobsets = pd.DataFrame({"load": [10, 10, 10, 190], "jobset": [0, 0, 1, 0]})
        self._table("data/jobsets/online/train.parquet", jobsets)
        self._table("data/jobsets/online/test.parquet", jobsets[:2])
        for folder, policies in (("heuristics/online", ["sjf", "fcfs"]), ("agents/deeprm", ["deeprm"])):
            rows = [(policy, load, mean) for policy in policies for load, means in MEANS.items() for mean in means]
            frame = pd.DataFrame(rows, columns=["policy", "load", "mean_slowdown"])
            self._table(f"reports/tables/{folder}/jobsets.parquet", frame)
        self.write("reports/tables/heuristics/online/chosen.json", '{"knobs": {"tetris": 0.5}}')
        params = load_params()
        network = build(params.agent("deeprm").network, Cluster.of(params.pool_scenario("online")), seed=1)
        for which in ("pretrained", "policy"):
            write_model(Path("models/deeprm") / which, Model(card_of(params, "deeprm"), weights_of(network)))
        for name in ("pretrain", "finetune"):
            curve = "update,metric,value\n1,validation,2.5\n2,validation,2.25\n2,loss,0.5\n"
            self.write(f"reports/curves/deeprm_{name}.csv", curve)
        for name in OUTS["compare"]:
            self.write(name, name)
        self.compared(-0.02, -0.03, -0.01)
        self.write(f"{FIGURES}/slowdown_online.png", "picture")

    def _table(self, name: str, frame: pd.DataFrame) -> None:
        self.write(name, "")
        frame.to_parquet(self.root / name, index=False)


def _leave_one_agent(rows: dict[str, Any]) -> None:
    """Keep one agent and its scenario: reading and recording all rows takes longer than most tests."""
    for section, name in (("agents", "deeprm"), ("scenarios", "online")):
        rows[section] = {name: rows[section][name]}
    rows["gate"]["fewer"] = {}
    rows.update(transfers={}, hindsight=HINDSIGHT)


def snapshot(root: Path | str, exact: bool = True) -> dict[str, Any]:
    """Contents of MLflow's database or server, each run once; if not exact, without what differs in every new one."""
    seen = Records(root)
    names = {run.info.run_id: run.info.run_name for run in seen.parents()}
    found: dict[str, Any] = {}
    for run in [*seen.parents(), *seen.runs()]:
        points = {key: seen.points(run, key) for key in run.data.metrics if exact or not key.startswith("Change")}
        tags = {key: value for key, value in run.data.tags.items() if exact or not key.startswith(("mlflow", "record"))}
        inputs = sorted((item.dataset.name, item.dataset.digest) for item in run.inputs.dataset_inputs)
        files = sorted(file.path for file in seen.client.list_artifacts(run.info.run_id))
        models = [output.model_id if exact else "" for output in run.outputs.model_outputs]
        place = f"{names.get(run.data.tags.get('mlflow.parentRunId', ''), '')}/{run.info.run_name}"
        assert place not in found
        said = (run.info.status, run.data.params, tags, points, inputs, files, models)
        found[place] = (*said, run.info.run_id) if exact else said
    models = seen.client.search_logged_models([seen.experiment.experiment_id])
    found["models"] = sorted(str(model.status) for model in models)
    found["registered"] = {one.name: (one.description, one.tags) for one in seen.client.search_registered_models()}
    for held in seen.client.search_model_versions():
        found[f"{held.name} {held.version}"] = (
            held.description,
            held.tags,
            held.last_updated_timestamp if exact else 0,
        )
    return found
