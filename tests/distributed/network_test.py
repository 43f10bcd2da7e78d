# SPDX-License-Identifier: BSD-3-Clause
"""A job on two hosts whose link is slow, is cut, or loses a rank at its other end.

    network_test.py RANK_PROGRAM LOCKSTEP

The hosts are namespaces of network, processes and name, with a wire between them;
each has a `lockstep run` with two ranks. Where such hosts cannot be made (no
rights), two starters share this host, and what needs a wire is said to be left
out.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT = 4  # seconds that a collective may take
ENDS = 120  # seconds: far more than any machine needs
PORT = 29511
FOREVER = 10**6  # steps


def shell(command, **more):
    return subprocess.run(command, shell=True, check=True, text=True,
                          capture_output=True, **more).stdout


class Host:
    """Namespaces that live as long as their first process."""

    def __init__(self, name, address):
        self.name = name
        self.address = address
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child",
             "--mount-proc", "sh", "-c",
             f"hostname {name}; ip link set lo up; echo; exec sleep infinity"],
            stdout=subprocess.PIPE)
        if not self.holder.stdout.readline():
            raise OSError("unshare")
        children = f"/proc/{self.holder.pid}/task/{self.holder.pid}/children"
        self.pid = pathlib.Path(children).read_text().strip()

    def command(self, words):
        return ["nsenter", "-t", self.pid, "-n", "-u", "-p", "-m",
                f"--wd={os.getcwd()}", *words]

    def run(self, words):
        return shell(" ".join(self.command(words.split())))

    def environment(self):
        # Gloo would look the host's name up.
        return {"GLOO_SOCKET_IFNAME": "wire"}

    def close(self):
        self.holder.kill()
        self.holder.wait()


class Here:
    """What stands in for a host where none can be made."""

    def __init__(self, address):
        self.name = "here"
        self.address = address

    @staticmethod
    def command(words):
        return words

    @staticmethod
    def environment():
        return {}

    def close(self):
        pass


def make_hosts():
    first = second = None
    try:
        first = Host("lockstep-a", "10.77.0.1")
        second = Host("lockstep-b", "10.77.0.2")
        shell(f"ip link add wire netns {first.pid} type veth peer name wire "
              f"netns {second.pid}")
        for host in (first, second):
            host.run(f"ip address add {host.address}/24 dev wire")
            host.run("ip link set wire up")
        return [first, second], True
    except (OSError, subprocess.CalledProcessError) as error:
        for host in (first, second):
            if host is not None:
                host.close()
        print(f"NOT DONE: no hosts with a wire between them ({error})")
        return [Here("127.0.0.2"), Here("127.0.0.3")], False


class Job:
    """Two starters, each with the ranks of one host."""

    def __init__(self, hosts, program, lockstep, steps, fault=()):
        self.folder = tempfile.TemporaryDirectory()
        self.outputs = [pathlib.Path(self.folder.name, host.name + str(number))
                        for number, host in enumerate(hosts)]
        self.starters = []
        for number, host in enumerate(hosts):
            command = [lockstep, "run", "--nnodes", "2", "--node-rank",
                       str(number), "--nproc-per-node", "2", "--master-addr",
                       hosts[0].address, "--master-port", str(PORT), "--tee",
                       "3", "--log-dir", f"{self.folder.name}/log{number}",
                       program, str(steps), str(TIMEOUT), *map(str, fault)]
            with open(self.outputs[number], "wb") as output:
                self.starters.append(subprocess.Popen(
                    host.command(command), stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "OMP_NUM_THREADS": "1",
                         **host.environment()}))

    def wait_for(self, text, number):
        deadline = time.monotonic() + ENDS
        while text not in self.outputs[number].read_text():
            if time.monotonic() > deadline:
                sys.exit(f"'{text}' does not come:\n{self.texts()}")
            time.sleep(0.05)

    def texts(self):
        return [path.read_text() for path in self.outputs]

    def end(self):
        """Statuses and outputs; a starter that hangs has status None."""
        statuses = []
        for starter in self.starters:
            try:
                statuses.append(starter.wait(ENDS))
            except subprocess.TimeoutExpired:
                starter.send_signal(signal.SIGKILL)
                starter.wait()
                statuses.append(None)
        texts = self.texts()
        self.folder.cleanup()
        return statuses, texts


class Tests:
    def __init__(self, program, lockstep):
        self.program = program
        self.lockstep = lockstep
        self.failures = 0

    def job(self, hosts, steps, fault=()):
        return Job(hosts, self.program, self.lockstep, steps, fault)

    def report(self, name, job, statuses, patterns):
        found, texts = job.end()
        wrong = [f"statuses {found}"] if found != statuses else []
        for text, expected in zip(texts, patterns):
            wrong += [f"no '{pattern}' in\n{text}" for pattern in expected
                      if not re.search(pattern, text)]
        print(f"{name:40} {'; '.join(wrong) or 'ok'}", flush=True)
        self.failures += bool(wrong)

    def with_a_wire(self, hosts):
        job = self.job(hosts, 10)
        self.report("two hosts", job, [0, 0], [["done"], ["done"]])

        hosts[1].run("tc qdisc add dev wire root tbf rate 2mbit burst 16kbit "
                     "latency 400ms")
        job = self.job(hosts, 10)
        self.report("a slow link", job, [0, 0], [["done"], ["done"]])
        hosts[1].run("tc qdisc del dev wire root")

        job = self.job(hosts, 20, ("kill", 3, 10, "backward"))
        self.report(
            "a rank of the other host is killed", job, [1, 137],
            [[r"collective \d+ .*of rank [01] .*rank 3 is gone \(its "
              r"process on host lockstep-b has ended\)"],
             [r"rank 3 is gone \(process \d+ has ended\)"]])

        job = self.job(hosts, FOREVER)
        job.wait_for("step 20", 0)
        hosts[1].run("ip link set wire down")
        self.report(
            "a link is cut in a step", job, [1, 1],
            [[r"collective \d+ .*of rank 0 .*rank [23] on host lockstep-b does "
              "not answer"],
             [r"collective \d+ .*of rank [23] .*rank [01] on host lockstep-a "
              "does not answer"]])

    def without(self, hosts):
        job = self.job(hosts, 20, ("kill", 3, 10, "backward"))
        self.report("a rank of the other starter is killed", job, [1, 137],
                    [[r"rank 3 is gone"], [r"rank 3 is gone"]])


def main():
    tests = Tests(*sys.argv[1:])
    hosts, has_wire = make_hosts()
    try:
        tests.with_a_wire(hosts) if has_wire else tests.without(hosts)
    finally:
        for host in hosts:
            host.close()
    return 1 if tests.failures else 0


if __name__ == "__main__":
    sys.exit(main())
