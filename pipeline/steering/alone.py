"""One controller that changes something for each Slurm of a machine, whatever its folder.

The sign is a socket of a name without a file: the kernel has it while a process holds it, and no longer, so that
nothing is left behind by whoever is killed. A user who takes the name keeps nobody out: a socket counts as a
controller's where its process is root's, SlurmUser's, or of this one's user. Machines do not see each other's.
"""

import hashlib
import os
import re
import socket
import struct
from collections.abc import Mapping

from pipeline.errors import UserError
from pipeline.progress import say

CREDENTIALS = struct.Struct("3i")  # process, user, group
PATIENCE_S = 1.0


def alone(told: Mapping[str, str]) -> socket.socket:
    """Return what is held while this one is the only controller of a Slurm, given its settings, on this machine.

    Raises:
        UserError: another one is at work.
    """
    cluster, host = told.get("ClusterName", ""), told.get("SlurmctldHost[0]", "")
    which = f"{cluster} {host} {told.get('SlurmctldPort', '')}"
    name = f"\0steer-slurm {hashlib.sha256(which.encode()).hexdigest()[:32]}"
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(name)
        found.listen(8)
    except OSError:
        process, user = _holder(name)
        if user not in (0, os.geteuid(), _slurm_user(told)):
            say(f"steer: a process of user {user} ({process}) has taken this cluster's name here; it is ignored")
            return found
        found.close()
        raise UserError(
            f"cluster {cluster[:60]}: another controller is at work from another folder (process {process}, or its "
            "watchdog); expected one at a time"
        ) from None
    return found


def _holder(name: str) -> tuple[int, int]:
    """Return whose socket of a name it is: the process and its user; where it has gone meanwhile, root's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(PATIENCE_S)
        try:
            asking.connect(name)
        except OSError:
            return 0, 0
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    process, user, _ = CREDENTIALS.unpack(told)
    return process, user


def _slurm_user(told: Mapping[str, str]) -> int:
    match = re.fullmatch(r".*\((\d{1,10})\)", told.get("SlurmUser", ""))
    return int(match[1]) if match else 0
