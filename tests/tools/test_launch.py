"""tools/launch.py, run as its user runs it, with scripts in place of recipes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "launch.py"
#: Says what it was started with; worker 1 ends as the flag says, worker 0 waits for ever for it.
WORKER = """
import json, os, signal, sys, time
config = json.loads(os.environ["TF_CONFIG"])
index = config["task"]["index"]
print(json.dumps([config, os.environ["KERAS_BACKEND"], sys.argv[1:]]), flush=True)
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1] in ("kill", "stubborn") and index == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "fail" and index == 1:
    sys.exit(3)
if sys.argv[1] != "end":
    time.sleep(600)
"""

pytestmark = pytest.mark.once


@pytest.fixture
def worker(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    return path


def launch(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_CONFIG", "SLURM"))}
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment | variables,
    )


def test_each_worker_is_told_of_all_and_of_itself(worker):
    done = launch("--workers", 3, worker, "end", "--flag=a b")
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert sorted(said) == ["[0]", "[1]", "[2]"]
    clusters = set()
    for name, line in said.items():
        config, backend, flags = json.loads(line)
        assert config["task"] == {"type": "worker", "index": int(name[1])}
        assert (backend, flags) == ("tensorflow", ["end", "--flag=a b"])
        clusters.add(tuple(config["cluster"]["worker"]))
    (hosts,) = clusters
    assert len(set(hosts)) == 3
    assert all(host.startswith("127.0.0.1:") for host in hosts)


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("kill", 9, "Worker 1 was killed by SIGKILL; stopping the others."),
        ("fail", 3, "Worker 1 ended with exit status 3; stopping the others."),
    ],
)
def test_the_others_do_not_wait_for_a_lost_worker(worker, how, status, words):
    begin = time.monotonic()
    done = launch("--workers", 2, worker, how)
    assert time.monotonic() - begin < 15
    assert done.returncode == status
    assert words in done.stdout
    assert done.stdout.endswith("The same command goes on from the last checkpoint.\n")


def test_a_worker_that_does_not_stop_is_killed(worker):
    begin = time.monotonic()
    done = launch("--workers", 2, worker, "stubborn")
    assert time.monotonic() - begin < 60
    assert "Worker 1 was killed by SIGKILL" in done.stdout


def slurm(tmp_path, **changes):
    """The environment of one task of three, with a scontrol that knows the nodes."""
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.parent.mkdir()
    scontrol.write_text(
        '#!/bin/sh\n[ "$*" = "show hostnames n[1-3]" ] && printf "n1\\nn2\\nn3\\n"\n'
    )
    scontrol.chmod(0o755)
    return {
        "PATH": f"{scontrol.parent}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "n[1-3]",
        "SLURM_JOB_ID": "8123",
        "SLURM_PROCID": "2",
        "SLURM_NTASKS": "3",
    } | changes


def test_a_task_of_slurm_is_one_worker(worker, tmp_path):
    done = launch("--slurm", worker, "end", **slurm(tmp_path))
    assert done.returncode == 0, done.stderr
    config, _, flags = json.loads(done.stdout)
    assert config["cluster"]["worker"] == ["n1:61123", "n2:61123", "n3:61123"]
    assert config["task"] == {"type": "worker", "index": 2}
    assert flags == ["end"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "1", "worker.py"], "--workers must be 2 or more; received 1"),
        (["--workers", "2", "no.py"], "name a recipe, a Python file, and its flags"),
        (["--workers", "2"], "name a recipe, a Python file, and its flags; received []"),
        (["worker.py"], "one of the arguments --workers --slurm is required"),
        (["--slurm", "worker.py"], "srun started; SLURM_JOB_NODELIST is not set"),
    ],
)
def test_bad_arguments_are_named(worker, arguments, words):
    done = launch(*(str(worker) if word == "worker.py" else word for word in arguments))
    assert done.returncode != 0
    assert words in done.stderr


def test_two_tasks_on_one_node_are_refused(worker, tmp_path):
    done = launch("--slurm", worker, "end", **slurm(tmp_path, SLURM_NTASKS="6"))
    assert done.returncode != 0
    assert "one task a node: srun --ntasks-per-node=1; received 6 tasks on 3 nodes" in done.stderr


def test_a_slurm_without_scontrol_is_named(worker, tmp_path):
    done = launch("--slurm", worker, "end", **slurm(tmp_path, PATH=str(tmp_path)))
    assert done.returncode != 0
    assert "launch: --slurm asks scontrol for the job's hosts" in done.stderr
