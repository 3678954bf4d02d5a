"""Releases: one version, a workflow tested step by step, a citation, forms, and the supported Pythons."""

import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML
from walks import Walk, lint, steps, workflow

GITHUB = REPOSITORY / ".github"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]


# Files for people and services


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("citation-file-format", REPOSITORY / "CITATION.cff"),
        ("dependabot", GITHUB / "dependabot.yml"),
        ("github-issue-config", GITHUB / "ISSUE_TEMPLATE" / "config.yml"),
        ("github-issue-forms", GITHUB / "ISSUE_TEMPLATE" / "bug.yml"),
        ("github-issue-forms", GITHUB / "ISSUE_TEMPLATE" / "proposal.yml"),
    ],
)
def test_a_file_keeps_to_its_schema_which_finds_a_fault(tmp_path: Path, schema: str, file: Path) -> None:
    words = ("check-jsonschema", "--default-filetype", "yaml", "--builtin-schema", f"vendor.{schema}")
    done = lint(*words, file)
    assert done.returncode == 0, done.stdout
    broken = tmp_path / file.name
    broken.write_text(file.read_text() + "\nunknown_key: 1\n")
    assert lint(*words, broken).returncode == 1


def test_dependabot_looks_where_there_is_something() -> None:
    updates = YAML(typ="safe").load(GITHUB / "dependabot.yml")["updates"]
    folders = {row["package-ecosystem"]: REPOSITORY / row["directory"].strip("/") for row in updates}
    assert set(folders) == {"github-actions", "docker"}
    assert (folders["docker"] / "Dockerfile").is_file()


def test_links_of_templates_lead_somewhere() -> None:
    links = re.findall(r"\]\((\.\./[^)]+)\)", (GITHUB / "SUPPORT.md").read_text())
    assert len(links) >= 2
    assert [link for link in links if not (GITHUB / link).exists()] == []
    texts = "".join(path.read_text() for path in GITHUB.rglob("*.*") if path.parent.name != "workflows")
    named = set(re.findall(r"\b(?:docs/[\w/-]+\.md|[A-Z]+\.md)\b", texts))
    assert {"CONTRIBUTING.md", "CHANGELOG.md", "docs/how-to/if-something-is-broken.md"} <= named
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


# The version


def test_the_version_stands_in_pyproject_and_what_repeats_it_agrees() -> None:
    assert "version:" not in (REPOSITORY / "CITATION.cff").read_text().replace("cff-version:", "")
    heading = re.search(r"^## \[(?!Unreleased)([\d.]+)\] - ", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading
    assert heading[1] == VERSION
    paths = [
        path
        for path in (REPOSITORY / "docs").rglob("*")
        if path.suffix in (".md", ".yaml") or path.stem == "Dockerfile"
    ]
    found = {
        (path.name, version)
        for path in paths
        for version in re.findall(r"\bdeeprm(?::|_pipeline-)(\d+\.\d+\.\d+)", path.read_text())
    }
    assert len(found) > 2
    assert {version for _, version in found} == {VERSION}


def test_supported_pythons_are_the_same_everywhere() -> None:
    (given,) = (step["with"]["python-version"] for step in steps("check") if "python-version" in step.get("with", {}))
    tried = re.findall(r"^3\.\d+", given, re.MULTILINE)
    assert [f"Programming Language :: Python :: {python}" for python in sorted(tried)] == PROJECT["classifiers"]
    assert PROJECT["requires-python"] == f">={tried[-1]}"
    first, last = ", ".join(sorted(tried)[:-1]), max(tried)
    assert f"supports Python {first} and {last}" in " ".join((GITHUB / "SUPPORT.md").read_text().split())


# The release


OF_THE_WORKFLOW = (".github/", ".ci/")  # and files at the root: what a release needs that builds nothing


def origin(shared: Path, heading: str, whole: bool) -> None:
    """Make a repository from the working tree, or part of it, whose changelog has a heading for this version."""
    root = shared / "origin"
    listed = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY
    )
    for name in filter(None, listed.decode().split("\0")):
        wanted = not name.startswith(("data/", "models/", "tests/")) if whole else name.startswith(OF_THE_WORKFLOW)
        if (REPOSITORY / name).is_file() and (wanted or "/" not in name):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, root / name)
    changes = root / "CHANGELOG.md"
    changes.write_text(re.sub(rf"## \[{re.escape(VERSION)}\] - .*", heading, changes.read_text()))
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    for line in (("init",), ("add", "--all"), (*who, "commit", "--quiet", "--message", "tree")):
        subprocess.run(["git", *line], cwd=root, check=True, stdout=subprocess.DEVNULL)


def release(
    shared: Path, environment: dict[str, str], tag: str, heading: str, whole: bool = False, **values: str
) -> Walk:
    """Walk through the release of a tag."""
    origin(shared, heading, whole)
    given = {
        "github.ref_name": tag,
        "github.sha": "HEAD",
        "github.token": "token",
        "github.repository": "us/here",
        "vars.TORCH_INDEX": "",
        "vars.IMAGE": "",
        "secrets.REGISTRY_USER || github.actor": "us",
        "secrets.REGISTRY_PASSWORD || github.token": "token",
        **values,
    }
    return Walk("release", shared, environment, given)


def test_a_tag_becomes_a_release_with_wheel_documents_image_and_changes(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    image = {"vars.IMAGE": "registry.example/us/deeprm"}
    walk = release(tmp_path, environment, f"v{VERSION}", f"## [{VERSION}] - 2026-12-01", True, **image)
    assert walk.run() == {"checked", "build", "publish"}
    made = tmp_path / "artifacts" / "release"
    wheel = f"deeprm_pipeline-{VERSION}-py3-none-any.whl"
    documents = f"documents-v{VERSION}.tar.gz"
    assert {path.name for path in (made / "dist").iterdir()} == {wheel, f"deeprm_pipeline-{VERSION}.tar.gz", documents}
    with ZipFile(made / "dist" / wheel) as archive:
        assert {"pipeline/__main__.py", "deeprm/__init__.py"} <= set(archive.namelist())
    with tarfile.open(made / "dist" / documents) as archive:
        assert "site/index.html" in archive.getnames()
    changes = (made / "changes.md").read_text()
    assert "### Pipeline" in changes
    assert "## [" not in changes
    said = walk.said.read_text().splitlines()
    options = "--file docs/operate/containers/Dockerfile --build-arg PIP_EXTRA_INDEX_URL"
    assert said[0].startswith("run list --workflow check.yml --commit HEAD --status success")
    assert said[1:4] == [
        f"docker build {options} --tag deeprm:{VERSION} .",
        f"docker run --rm deeprm:{VERSION} serve --help",
        f"docker save deeprm:{VERSION}",
    ]
    assert [line.split(" --")[0] for line in said[4:6]] == ["docker load", "docker login"]
    assert said[5].endswith("--password-stdin registry.example")
    assert said[6:9] == [
        "password token",
        f"docker tag deeprm:{VERSION} registry.example/us/deeprm:{VERSION}",
        f"docker push --quiet registry.example/us/deeprm:{VERSION}",
    ]
    assert said[9].startswith(
        f"release create v{VERSION} --verify-tag --title v{VERSION} --notes-file changes.md dist/"
    )
    assert len(said) == 10
    assert changes in walk.bodies.read_text(errors="replace")


@pytest.mark.parametrize(
    ("tag", "heading", "passed", "why"),
    [
        (
            "v9.9.9",
            f"## [{VERSION}] - 2026-12-01",
            "1",
            f"the version in pyproject.toml is {VERSION}",
        ),
        (f"v{VERSION}", f"## [{VERSION}] - unreleased", "1", f"no changes under '## [{VERSION}] - ' with a date"),
        (f"v{VERSION}", f"## [{VERSION}] - 2026-12-01", "0", "no successful run of check.yml for HEAD"),
    ],
    ids=["other version", "no date", "not checked"],
)
def test_a_tag_that_does_not_fit_ends_the_release(
    tmp_path: Path, environment: dict[str, str], tag: str, heading: str, passed: str, why: str
) -> None:
    walk = release(tmp_path, environment, tag, heading, passed=passed)
    with pytest.raises(AssertionError, match=re.escape(why)):
        walk.run()
    assert not (tmp_path / "artifacts").exists()


def test_an_image_without_a_name_is_not_pushed(tmp_path: Path, environment: dict[str, str]) -> None:
    walk = release(tmp_path, environment, f"v{VERSION}", "")
    (tmp_path / "artifacts" / "image").mkdir(parents=True)
    (tmp_path / "artifacts" / "release" / "dist").mkdir(parents=True)
    walk.job("publish", walk.file["jobs"]["publish"])
    assert [line.split(" --")[0] for line in walk.said.read_text().splitlines()] == [f"release create v{VERSION}"]


def test_only_the_job_that_runs_nothing_of_the_repository_may_write() -> None:
    jobs = workflow("release")["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "checked": {"actions": "read"},
        "build": None,
        "publish": {"contents": "write", "packages": "write"},
    }
    shell = "\n".join(step.get("run", "") for step in jobs["publish"]["steps"])
    assert not re.search(r"\b(make|python|bash|\.ci|docker (?:build|run))\b", shell)
    assert workflow("release")["on"] == {"push": {"tags": ["v*"]}}


# The scan of dependencies

SCANNER = """#!/usr/bin/env bash
printf '%s\\n' "$*" > said
if [ "$CODE" = 1 ]; then echo '| numpy | 1.0 |' > audit.md; fi
exit "$CODE"
"""


@pytest.mark.parametrize(("code", "summary"), [(0, ""), (1, "| numpy | 1.0 |\n")])
def test_a_known_vulnerability_fails_the_scan_and_is_in_the_summary(tmp_path: Path, code: int, summary: str) -> None:
    (step,) = (step for step in steps("audit") if step["name"] == "Scan the pinned packages")
    scanner, written = tmp_path / "pip-audit", tmp_path / "summary"
    scanner.write_text(SCANNER)
    scanner.chmod(0o755)
    written.touch()
    given = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CODE": str(code), "GITHUB_STEP_SUMMARY": str(written)}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", step["run"]], check=False, cwd=tmp_path, env=given)
    assert (done.returncode, written.read_text()) == (code, summary)
    assert (tmp_path / "said").read_text().startswith("--requirement requirements.lock --no-deps --disable-pip ")
    assert {"schedule", "pull_request"} <= set(workflow("audit")["on"])
