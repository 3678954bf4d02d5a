"""slurm.conf of a cluster whose nodes are all this machine; checked with Slurm 22.05.

Jobs last seconds, so Slurm looks at its queue every second; at a site it does so every minute or half minute. All other
settings that decide which job starts are Slurm's defaults: backfill gives every waiting job a reservation.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SHORT_MIN = 5  # the longest limit in the partition `short`
EVERY_SECOND = "batch_sched_delay=0,sched_interval=1,bf_interval=1"
CONF = """ClusterName=loop
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.log
MpiDefault=none
PriorityType=priority/multifactor
SchedulerType=sched/backfill
SchedulerParameters={parameters}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
MinJobAge=3600
KillWait=1
ReturnToService=2
"""


class Cluster(NamedTuple):
    """Settings of a Slurm cluster on loopback."""

    nodes: int = 4
    cpus: int = 4  # of each node
    mib: int = 1000  # of each node
    parameters: str = EVERY_SECOND  # SchedulerParameters of slurm.conf
    short: int = 0  # the last nodes: in the partition `short`, and in `work` as well, with a lower tier
    fair_share: int = 0  # PriorityWeightFairShare, which needs accounting: only with a fast clock
    speed: float = 1.0  # seconds of its clock in a real one

    @property
    def names(self) -> list[str]:
        """Return the names of the nodes."""
        return [f"n{k}" for k in range(1, self.nodes + 1)]


def configuration(folder: Path, host: str, ports: Sequence[int], cluster: Cluster) -> str:
    """Return slurm.conf.

    Args:
        folder: of the cluster.
        host: this machine's name.
        ports: of slurmctld, and of slurmd on each node.
        cluster: its settings.
    """
    first, *others = ports
    lines = [CONF.format(host=host, port=first, folder=folder, parameters=cluster.parameters)]
    lines += [
        f"NodeName={name} NodeAddr=127.0.0.1 NodeHostname={host} Port={port} CPUs={cluster.cpus} "
        f"RealMemory={cluster.mib}\n"
        for name, port in zip(cluster.names, others, strict=True)
    ]
    nodes = ",".join(cluster.names)
    lines.append(f"PartitionName=work Nodes={nodes} Default=YES MaxTime=UNLIMITED State=UP\n")
    if cluster.short:
        some = ",".join(cluster.names[-cluster.short :])
        lines.append(f"PartitionName=short Nodes={some} PriorityTier=2 MaxTime={SHORT_MIN} State=UP\n")
    return "".join(lines)
