"""Install the packages of requirements.lock and the project into this Python's environment: with uv, or else with pip.

uv takes a third of pip's time, but reads neither pip's configuration files nor PIP_*. It therefore gets the output of
`pip config list`: both look in the same places, and no file of the project names one. INSTALLER=pip skips uv.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LOCK = Path("requirements.lock")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UV = {  # setting of pip: uv's variable, and the separator between several values
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
    "proxy": ("ALL_PROXY", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
}
SECTIONS = ("global", "install", ":env:")  # later ones win, as in pip


def settings(listed: str) -> dict[str, str]:
    r"""Return pip's settings from the output of `pip config list`.

    >>> settings("global.timeout='5'\n:env:.find-links='/a'\nglobal.find-links='/b'")
    {'timeout': '5', 'find-links': '/a'}
    """
    found = re.findall(r"^(global|install|:env:)\.([\w-]+)=(.+)$", listed, flags=re.MULTILINE)
    found.sort(key=lambda one: SECTIONS.index(one[0]))
    return {name.removeprefix("default-"): str(ast.literal_eval(value)) for _, name, value in found}


def for_uv(configured: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return pip's settings as uv's variables and options.

    >>> for_uv({"find-links": "/a /b", "no-index": "true"})
    ({'UV_FIND_LINKS': '/a,/b'}, ['--no-index'])
    """
    given = {UV[name][0]: UV[name][1].join(value.split()) for name, value in configured.items() if name in UV}
    options = ["--no-index"] if configured.get("no-index", "").lower() in ("1", "true", "yes", "on") else []
    if "extra-index-url" in configured:
        given["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # the best version in all indexes, as pip chooses
    if "find-links" not in configured and not options:
        options = ["--torch-backend", "cpu"]  # no source is set: the default index brings gigabytes of CUDA
    return given, options


def places() -> tuple[dict[str, str], list[str]]:
    """Return where this Python's pip looks, as uv's variables and options."""
    return for_uv(settings(subprocess.run([*PIP, "config", "list"], check=True, capture_output=True, text=True).stdout))


def uv(lock: str) -> str | None:
    """Return the path of uv, which pip installs if it is missing; None if INSTALLER is pip or if that fails."""
    if os.environ.get("INSTALLER") == "pip":
        return None
    installed = Path(sys.executable).with_name("uv")
    if found := shutil.which("uv", path=f"{installed.parent}{os.pathsep}{os.environ['PATH']}"):
        return found
    (pin,) = re.findall(r"^uv==\S+", lock, flags=re.MULTILINE)
    done = subprocess.run([*PIP, "install", "--quiet", pin], check=False, capture_output=True, text=True)
    return str(installed) if done.returncode == 0 else None


def by_uv(found: str) -> bool:
    """Install everything with one command; return whether uv succeeded."""
    given, options = places()
    words = [found, "pip", "install", "--quiet", "--python", sys.executable, "--no-deps", "--requirement", str(LOCK)]
    return subprocess.run([*words, *options, "--editable", "."], check=False, env=given | os.environ).returncode == 0


def by_pip(lock: str) -> None:
    """Install PyTorch first, on its own: otherwise pip may choose a build with gigabytes of CUDA."""
    (torch,) = re.findall(r"^torch==\S+", lock, flags=re.MULTILINE)
    for words in ([torch], ["--no-deps", "--requirement", str(LOCK)], ["--no-deps", "--editable", "."]):
        subprocess.run([*PIP, "install", "--quiet", *words], check=True)


def main() -> int:
    """Install; return 0, or pip's exit code if neither uv nor pip succeeds."""
    lock = LOCK.read_text()
    found = uv(lock)
    if found and by_uv(found):
        return 0
    sys.stderr.write("setting up by pip (minutes)\n")
    try:
        by_pip(lock)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
