"""Users and accounts as numbers that tell nobody who they are, but the one who holds the key.

A number is the head of HMAC-SHA-256 of the name: the same key gives the same user the same number in every import, and
without it names cannot be tried out.
"""

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from pipeline.errors import UserError

LEAST = 16  # bytes of a key
MOST = 2**31 - 1  # numbers are from 1 up to it, as the readers of SWF take them
ONLY_MINE = 0o600


def read_key(path: Path) -> bytes:
    """Return the key of a file.

    Raises:
        UserError: there is none, it is short, or others could read it.
    """
    try:
        mode, key = stat.S_IMODE(path.stat().st_mode), path.read_bytes().strip()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    if mode & 0o077:
        raise UserError(f"{path}: expected a key that only its owner may read (mode 600), found mode {mode:o}")
    if len(key) < LEAST:
        raise UserError(f"{path}: expected a key of {LEAST} bytes or more, found {len(key)}")
    return key


def new_key() -> bytes:
    """Return a key that nobody has yet."""
    return secrets.token_hex(32).encode()


def store_key(path: Path, key: bytes) -> None:
    """Store a key where only its owner can read it, and where none is yet."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, ONLY_MINE), "wb") as stream:
            stream.write(key + b"\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error


def pseudonyms(names: Iterable[str], key: bytes) -> dict[str, int]:
    """Return a number of each name; -1 of none.

    Raises:
        UserError: two names get one number.
    """
    numbers: dict[str, int] = {}
    for name in sorted(set(names) - {""}):
        digest = hmac.new(key, name.encode(), hashlib.sha256).digest()
        numbers[name] = 1 + int.from_bytes(digest[:8]) % MOST
    if len(set(numbers.values())) < len(numbers):
        raise UserError("two users get one number by this key: use another with --key-file")
    return numbers | {"": -1}
