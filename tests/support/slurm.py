"""A Slurm cluster with this machine as its only node, from Debian's packages `slurm-wlm` and `munge`."""

import contextlib
import os
import shutil
import subprocess
import time

from simulations.laboratory.nodes.deployment import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")

CONFIGURATION = """\
ClusterName=caucus
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Return why no cluster can be started here; None if a cluster can be started."""
    if lacking := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{lacking[0]} is not installed"
    return None if os.geteuid() == 0 else "Slurm's daemons are started by root"


@contextlib.contextmanager
def cluster(folder):
    """Start the three daemons; yield the environment for the cluster's commands."""
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge" / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(64))
    host = os.uname().nodename.partition(".")[0]
    configuration = CONFIGURATION.format(host=host, folder=folder, controller=free_port(), node=free_port())
    (folder / "slurm.conf").write_text(configuration)
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    munge = [f"--key-file={key}", *(f"--{name}-file={folder}/munge/{name}" for name in ("pid", "log", "seed"))]
    daemons = (
        ["munged", "--foreground", "--force", f"--socket={folder}/munge/socket", *munge],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", host],
    )
    running = []
    try:
        with (folder / "daemons.log").open("w") as out:
            running.extend(subprocess.Popen(words, env=environment, stdout=out, stderr=out) for words in daemons)
        deadline = time.monotonic() + 60
        while "idle" not in said(environment, "sinfo", code=None):
            assert time.monotonic() < deadline, (folder / "daemons.log").read_text()
            time.sleep(0.2)
        yield environment
    finally:
        for daemon in reversed(running):
            daemon.terminate()
        for daemon in reversed(running):
            daemon.wait(60)


def said(environment, *words, code=0):
    """Run a command; return its output."""
    ended = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, check=False)
    assert code is None or ended.returncode == code, f"{ended.returncode}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def job(environment, number):
    """Return the state and exit code of a job, as displayed by Slurm."""
    facts = dict(
        word.split("=", 1) for word in said(environment, "scontrol", "show", "job", number).split() if "=" in word
    )
    return facts["JobState"], facts["ExitCode"]
