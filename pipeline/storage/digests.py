"""Digests of files and folders, by what they hold."""

import hashlib
import json
from pathlib import Path


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, or of the names and contents in a folder."""
    if path.is_dir():
        inside = {file.relative_to(path).as_posix(): sha256_of(file) for file in path.rglob("*") if file.is_file()}
        return hashlib.sha256(json.dumps(inside, sort_keys=True).encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
