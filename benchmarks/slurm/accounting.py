"""SlurmDBD with its own MariaDB, for Slurm on loopback: without it, Slurm ignores PriorityWeightAge."""

import secrets
import shutil
import subprocess
from collections.abc import Sequence

from benchmarks.slurm.loopback import STARTED_S, LoopbackSlurm
from pipeline.errors import UserError

PROGRAMS = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")
INSTALLED = "(Debian: apt-get install mariadb-server slurmdbd)"
USERS = "CREATE USER slurm@'%' IDENTIFIED BY '{word}';\nGRANT ALL ON slurm_acct_db.* TO slurm@'%';\n"
CONF = """AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass={word}
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""


def why_no_accounting() -> str:
    """Return why SlurmDBD cannot run here, or an empty string if it can."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"no {', '.join(lacking)} {INSTALLED}" if lacking else ""


def start_accounting(slurm: LoopbackSlurm, ports: Sequence[int]) -> dict[str, str]:
    """Start MariaDB and SlurmDBD, and return the settings of slurm.conf that use them.

    Args:
        slurm: a running Slurm, whose munged they use.
        ports: of SlurmDBD and MariaDB.

    Raises:
        UserError: they cannot run here, or do not start.
    """
    if reason := why_no_accounting():
        raise UserError(f"SlurmDBD on loopback: {reason}")
    (port, database), folder, word = ports, slurm.folder, secrets.token_hex(16)
    slurm.ask("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={folder}/database",
              "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip
    for name, text in (("users.sql", USERS), ("slurmdbd.conf", CONF)):
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(text.format(folder=folder, port=port, database=database, word=word))
    slurm.begin("mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/database",
                f"--socket={folder}/database.sock", f"--port={database}", "--bind-address=127.0.0.1",
                f"--init-file={folder}/users.sql", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin",
                f"--pid-file={folder}/database.pid")  # fmt: skip
    slurm.until((folder / "database.sock").exists, "MariaDB", STARTED_S)
    slurm.begin("slurmdbd", "-D")
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": str(port),
        "AccountingStoragePass": f"{folder}/munge.sock",
    }


def add_cluster(slurm: LoopbackSlurm, name: str) -> None:
    """Add a cluster to the accounts once SlurmDBD answers; slurm.conf has the settings of `start_accounting`."""
    words = ("sacctmgr", "--immediate", "--quiet", "add", "cluster", name)

    def added() -> bool:
        done = subprocess.run(words, env=slurm.environment, capture_output=True, check=False, cwd="/tmp")
        return done.returncode == 0

    slurm.until(added, "that SlurmDBD answers", STARTED_S)
