# SPDX-License-Identifier: MIT
"""A Slurm of two nodes on this machine: munged, slurmctld and two slurmd, in one folder, without systemd."""
import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time

TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
START_SECONDS = 60

CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=1,batch_sched_delay=1
MpiDefault=none
ReturnToService=2
GresTypes=gpu
NodeName=DEFAULT CPUs=8 RealMemory=16384 Gres=gpu:2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]}
PartitionName=main Nodes=n1,n2 Default=YES
"""


def missing():
    """The first of the programs that is not installed, or None."""
    return next((tool for tool in TOOLS if not shutil.which(tool, path=PLACES)), None)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until(ready, daemon):
    """Poll, because no daemon says when it listens."""
    end = time.monotonic() + START_SECONDS
    while not ready():
        if time.monotonic() > end or daemon.poll() is not None:
            raise SystemExit(f"{daemon.args[0]} did not start")
        time.sleep(0.05)


@contextlib.contextmanager
def cluster(folder):
    """Start the daemons in FOLDER. Yields the environment for srun and sbatch, which then waits for its jobs. All
    daemons are children in this process group, so that they end with the test, also if it is killed."""
    os.chmod(os.path.dirname(folder), 0o755)  # munged wants to know that everybody can reach its socket
    for name, mode in (("key", 0o700), ("state", 0o755), ("n1", 0o755), ("n2", 0o755)):
        os.mkdir(os.path.join(folder, name), mode)
    with open(os.path.join(folder, "key", "key"), "wb", opener=lambda path, flags: os.open(path, flags, 0o400)) as file:
        file.write(os.urandom(128))
    with open(os.path.join(folder, "slurm.conf"), "w", encoding="utf-8") as file:
        file.write(CONF.format(host=socket.gethostname().split(".")[0], folder=folder, ports=free_ports(3),
                               user=pwd.getpwuid(os.geteuid()).pw_name))
    with open(os.path.join(folder, "cgroup.conf"), "w", encoding="utf-8") as file:
        file.write("CgroupPlugin=cgroup/v1\n")
    with open(os.path.join(folder, "gres.conf"), "w", encoding="utf-8") as file:
        file.write("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")  # in place of two GPUs
    values = dict(os.environ, PATH=PLACES, SLURM_CONF=os.path.join(folder, "slurm.conf"), SBATCH_WAIT="1")
    processes = []

    def start(*command):
        with open(os.path.join(folder, f"log.{len(processes)}"), "w", encoding="utf-8") as log:
            processes.append(subprocess.Popen(command, cwd=folder, env=values, stdin=subprocess.DEVNULL, stdout=log,
                                              stderr=log))

    try:
        start("munged", "--foreground", "--key-file=key/key", f"--socket={folder}/munge.socket", "--pid-file=key/pid",
              "--log-file=key/log", "--seed-file=key/seed")
        wait_until(lambda: os.path.exists(os.path.join(folder, "munge.socket")), processes[-1])
        start("slurmctld", "-D")
        wait_until(lambda: subprocess.run(["scontrol", "ping"], env=values, capture_output=True, text=True,
                                          check=False).returncode == 0, processes[-1])
        for node in ("n1", "n2"):
            start("slurmd", "-D", "-N", node)
        wait_until(lambda: subprocess.run(["sinfo", "-h", "-o", "%T %D"], env=values, capture_output=True, text=True,
                                          check=False).stdout == "idle 2\n", processes[-1])
        yield values
    except BaseException:
        for i in range(len(processes)):
            with open(os.path.join(folder, f"log.{i}"), encoding="utf-8") as log:
                print(*log.readlines()[-20:], sep="")
        raise
    finally:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(["scancel", "--full", "--user", str(os.geteuid())], env=values, timeout=10, check=False,
                           capture_output=True)
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()
