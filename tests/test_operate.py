"""Files that operators load elsewhere: manifests, alerts and a dashboard."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.cli import app
from pipeline.kubernetes.objects import GATE, SECONDS, UNITS, pod_of
from pipeline.serving.records import Metrics

OPERATE = REPOSITORY / "docs" / "operate"
MANIFESTS = sorted((OPERATE / "kubernetes").glob("*.yaml"))
SCHEMA = json.loads((REPOSITORY / "tests" / "data" / "kubernetes" / "schema.json").read_text())
# k8s.io/kube-scheduler/config/v1/types.go, Extender; it has no other keys
EXTENDER = {
    "urlPrefix": str,
    "filterVerb": str,
    "prioritizeVerb": str,
    "weight": int,
    "enableHTTPS": bool,
    "httpTimeout": str,
    "nodeCacheCapable": bool,
    "ignorable": bool,
}


def documents(file: Path) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(one)) for one in YAML(typ="safe").load_all(file.read_text())]


def assert_valid(told: dict[str, Any]) -> None:
    """Check an object against the schema of its kind; unknown keys are faults as well."""
    kind = SCHEMA["kinds"][told["kind"]]
    jsonschema.validate(told, {"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]})


EVERY = [(file, told) for file in MANIFESTS for told in documents(file)]


@pytest.mark.parametrize(("file", "told"), EVERY, ids=lambda one: one.name if isinstance(one, Path) else one["kind"])
def test_a_manifest_is_of_its_kind(file: Path, told: dict[str, Any]) -> None:
    assert_valid(told)
    assert told["apiVersion"] in ("v1", "apps/v1", "rbac.authorization.k8s.io/v1")


def test_the_schema_refuses_what_is_wrong() -> None:
    right = documents(OPERATE / "kubernetes" / "pod.yaml")[0]
    for change in ({"spec": right["spec"] | {"schedulingGate": []}}, {"spec": {"containers": [{}]}}, {"metadata": 3}):
        with pytest.raises(jsonschema.ValidationError):
            assert_valid(right | change)


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for _, told in EVERY:
        if told["kind"] == "Deployment":
            spec = told["spec"]["template"]["spec"]
            for one in (*spec.get("initContainers", ()), *spec["containers"]):
                yield spec, one


def test_every_container_may_do_as_little_as_it_can() -> None:
    assert len(list(containers())) == 6
    for spec, one in containers():
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert one["securityContext"]["allowPrivilegeEscalation"] is False
        assert one["securityContext"]["readOnlyRootFilesystem"] is True


def test_every_command_is_one_that_there_is() -> None:
    from typer.main import get_command

    known = get_command(app).commands  # type: ignore[attr-defined]
    ours = [one["command"] for _, one in containers() if one["command"][0] == "python"]
    assert len(ours) == 3
    for _, _, module, command, *words in ours:
        assert module == "pipeline"
        options = {name for option in known[command].params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= options


def test_the_controller_may_patch_pods_and_no_more() -> None:
    roles = [told for _, told in EVERY if told["kind"] == "ClusterRole"]
    assert [(rule["resources"], rule["verbs"]) for role in roles for rule in role["rules"]] == [
        (["nodes"], ["list", "watch"]),
        (["pods"], ["get", "list", "watch", "patch"]),
    ]


def test_the_schedulers_configuration_names_the_services_doors() -> None:
    config = next(told for _, told in EVERY if told["kind"] == "ConfigMap")["data"]["config.yaml"]
    told = YAML(typ="safe").load(config)
    (extender,) = told["extenders"]
    assert (told["apiVersion"], told["kind"]) == ("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration")
    assert {name: type(value) for name, value in extender.items()} == EXTENDER
    assert extender["urlPrefix"] == "http://127.0.0.1:8765/kubernetes"
    assert (extender["filterVerb"], extender["prioritizeVerb"], extender["ignorable"]) == ("filter", "prioritize", True)


def test_the_example_waits_for_the_policy() -> None:
    told = documents(OPERATE / "kubernetes" / "pod.yaml")[0]
    assert told["spec"]["schedulingGates"] == [{"name": GATE}]
    made = {"namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    found = pod_of({**told, "metadata": told["metadata"] | made})
    assert (found.waits, found.seconds, found.wants) == (True, 1800.0, {"cpu": 2.0, "memory": 4.0})
    assert SECONDS in told["metadata"]["annotations"]
    assert {name for name, _ in UNITS.values()} == {"cpu", "memory", "gpu"}


def metrics() -> set[str]:
    """The service's metrics after each of its counters has counted once."""
    found = Metrics()
    found.count_decision(0.1, "no answer")
    found.count_refusal(422)
    return set(re.findall(r"^(deeprm_\w+)", found.text(True).decode(), re.MULTILINE))


def assert_asks_for_what_there_is(said: str) -> None:
    """Check that an expression uses existing metrics, and that its brackets are balanced."""
    named = set(re.findall(r"\bdeeprm_\w+", said))
    assert named <= metrics()
    assert named or said.startswith("up{")
    opened: list[str] = []
    for sign in re.findall(r"[()\[\]{}]", re.sub(r'"[^"]*"', "", said)):
        if sign in "([{":
            opened.append(sign)
        else:
            assert opened
            assert opened.pop() + sign in ("()", "[]", "{}")
    assert not opened


def test_alerts_are_of_metrics_that_there_are() -> None:
    (group,) = YAML(typ="safe").load((OPERATE / "alerts.yaml").read_text())["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"]) > 4
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert set(rule["annotations"]) == {"summary", "action"}
        assert_asks_for_what_there_is(rule["expr"])


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    told = json.loads((OPERATE / "dashboard.json").read_text())
    assert len({panel["id"] for panel in told["panels"]}) == len(told["panels"]) == 6
    shown = " ".join(target["expr"] for panel in told["panels"] for target in panel["targets"])
    for panel in told["panels"]:
        assert panel["targets"]
        for target in panel["targets"]:
            assert_asks_for_what_there_is(target["expr"])
    counted = {name for name in metrics() if not name.endswith(("_created", "_sum", "_count"))}
    assert {name for name in counted if name not in shown} == set()


def test_every_metric_is_explained() -> None:
    text = (REPOSITORY / "docs" / "operate.md").read_text()
    for name in metrics():
        if not name.endswith(("_created", "_sum", "_count", "_bucket")):
            assert f"`{name}" in text
