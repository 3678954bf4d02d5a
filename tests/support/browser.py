"""Pages in Chromium, without a network."""

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update "
    "disable-sync allow-file-access-from-files proxy-server=127.0.0.1:9"
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def loaded(page: Path, profile: Path) -> str:
    """Return the HTML of a page and its frames once they have loaded."""
    flags = [*FLAGS.split(), "dump-dom", f"user-data-dir={profile}"]
    words = [str(CHROMIUM), *(f"--{flag}" for flag in flags), page.as_uri()]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout
