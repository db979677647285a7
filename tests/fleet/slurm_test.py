"""examples/slurm on a Slurm of its own: a controller and four nodes, all on this machine, with a fake GPU each."""

from __future__ import annotations

import getpass
import os
import re
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path
from typing import List

from fleet import MODEL, PROBLEMS, TREE, FleetTest, missing_program

NODES = 4
SHARDS = 4
PATIENCE_S = 100  # with what a cluster is waited for; it is there within one
MISSING = missing_program("slurmctld", "slurmd", "sbatch", "sinfo", "scontrol")

# Everybody is who he says, and no node has a real device: nothing but the scheduling is of interest.
CONFIGURATION = """ClusterName=hone
SlurmctldHost=localhost
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,requeue_delay=0
GresTypes=gpu
NodeName=node[1-{nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 Gres=gpu:1
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> int:
    """The first of so many neighbours that nobody listens at."""
    for first in range(20017, 60000, 97):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for port, one in enumerate(sockets, first):
                one.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise OSError("no free ports")


def kill_who_has(variable: str) -> None:
    """Every process of this user with that in its environment: a task with its workers."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable.encode() in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)
        except OSError:  # somebody else's, or ended
            continue


@unittest.skipIf(MISSING, f"needs {MISSING}; Debian: slurmctld slurmd slurm-client")
class Array(FleetTest):
    def setUp(self) -> None:
        super().setUp()
        self.environment.update(SHARDS=str(SHARDS), SLURM_CONF=str(self.folder / "slurm.conf"))
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        self.start_cluster()

    def start_cluster(self) -> None:
        port = free_ports(NODES + 1)
        self.write("slurm.conf", CONFIGURATION.format(port=port, user=getpass.getuser(), folder=self.folder,
                                                      nodes=NODES, first=port + 1, last=port + NODES))
        self.write("gres.conf", "Name=gpu File=/dev/null\n")
        (self.folder / "state").mkdir()
        self.start("slurmctld", "-D")
        for number in range(1, NODES + 1):
            (self.folder / f"node{number}").mkdir()
            self.start("slurmd", "-D", "-N", f"node{number}")
        if not self.comes(lambda: self.slurm("sinfo", "-h", "-t", "idle", "-o", "%D", may_fail=True) == str(NODES)):
            self.skipTest(f"Slurm does not run here; its daemons say\n{self.daemons_say()}")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def start(self, *words: str) -> None:
        with open(self.folder / "daemons.log", "ab") as log:
            daemon = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log, cwd=self.folder)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.send_signal, signal.SIGTERM)

    def daemons_say(self) -> str:
        return (self.folder / "daemons.log").read_text(errors="replace")[-3000:]

    def comes(self, condition) -> bool:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def wait_for(self, condition) -> None:
        if not self.comes(condition):
            self.fail(f"waited in vain; the daemons say\n{self.daemons_say()}")

    def slurm(self, *words: str, may_fail: bool = False) -> str:
        ended = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        if not may_fail:
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout.strip()

    def submit(self) -> List[str]:
        return self.slurm(str(TREE / "examples/slurm/submit.sh"), *MODEL).split()

    def wait_for_end(self, job: str) -> None:
        self.wait_for(lambda: self.state(job) in ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL"))

    def state(self, job: str) -> str:
        return re.findall(r"JobState=(\w+)", self.slurm("scontrol", "show", "job", job))[0]

    def said(self, shard: int) -> str:
        return (self.fleet / f"tune-{shard}.log").read_text(encoding="utf-8")

    def test_an_array_merges_to_what_one_run_knows(self) -> None:
        _, merge = self.submit()
        self.wait_for_end(merge)
        self.assertEqual(self.state(merge), "COMPLETED", (self.fleet / "merge.log").read_text())
        for shard in range(1, SHARDS + 1):
            self.assertIn(f"shard {shard} of {SHARDS}: ", self.said(shard))
        self.assertEqual(set(self.winners(self.fleet / "cache.db")), set(self.problems_of_one_run()))
        self.assertTrue((self.fleet / "winners.json").is_file())

    def test_a_shard_that_is_lost_in_the_middle_does_what_is_missing_when_submitted_again(self) -> None:
        self.environment["HONE_FAKE_SCRIPT"] = "launch:sleep_us=200"
        _, merge = self.submit()
        lost = self.fleet / f"shard-1-of-{SHARDS}.db"
        self.wait_for(lambda: lost.exists() and len(self.winners(lost)) >= 1)
        kill_who_has(f"HONE_CACHE={lost}")
        self.wait_for_end(merge)
        self.assertEqual(self.state(merge), "COMPLETED", (self.fleet / "merge.log").read_text())
        self.assertLess(len(self.winners(self.fleet / "cache.db")), PROBLEMS)

        del self.environment["HONE_FAKE_SCRIPT"]
        _, merge = self.submit()
        self.wait_for_end(merge)
        self.assertEqual(len(self.winners(self.fleet / "cache.db")), PROBLEMS)
        ((tuned, known),) = re.findall(r": (\d+) tuned now, (\d+) known before", self.said(1))
        self.assertGreater(int(tuned), 0)
        self.assertGreater(int(known), 0)
        for shard in range(2, SHARDS + 1):
            self.assertIn(" 0 compiles, 0 measurements", self.said(shard))


if __name__ == "__main__":
    unittest.main()
