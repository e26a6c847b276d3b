"""Starts a recipe in several processes that train one model together (TensorFlow's multiworker).

python tools/launch.py --workers 2 recipes/train_gpt.py --strategy multiworker --run-folder runs/two
srun --ntasks-per-node=1 python tools/launch.py --slurm recipes/train_gpt.py --strategy multiworker

Sets TF_CONFIG in each. With --workers all of them run on this machine, for a trial; their lines
come out behind their numbers. If one ends badly, this says which and how, and stops the others,
which would wait for it for ever: the same command goes on from the last checkpoint. With --slurm
each task of a job starts one worker, on the hosts that Slurm gave the job; srun's
--kill-on-bad-exit stops the others there.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

#: What a worker that was asked to stop has for it, in seconds.
PATIENCE = 10.0


def main():
    """Starts what the command line says; exits as the first worker that failed did."""
    arguments = parse(sys.argv[1:])
    command = [sys.executable, *arguments.command]
    environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
    if arguments.slurm:
        try:
            task = slurm_task(os.environ)
        except ValueError as error:
            sys.exit(f"launch: {error}")
        os.execve(sys.executable, command, environment | {"TF_CONFIG": task})
    tasks = local_tasks(arguments.workers)
    sys.exit(run([(command, environment | {"TF_CONFIG": task}) for task in tasks]))


def parse(words):
    """Returns the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--workers", type=int, help="processes on this machine, 2 or more")
    where.add_argument("--slurm", action="store_true", help="be one task of a Slurm job")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a recipe and its flags")
    arguments = parser.parse_args(words)
    if arguments.workers is not None and arguments.workers < 2:
        parser.error(f"--workers must be 2 or more; received {arguments.workers}.")
    if not arguments.command or not pathlib.Path(arguments.command[0]).is_file():
        parser.error(f"name a recipe, a Python file, and its flags; received {arguments.command}.")
    return arguments


def local_tasks(count):
    """Returns the TF_CONFIG of each of `count` workers on this machine."""
    hosts = [f"127.0.0.1:{port}" for port in free_ports(count)]
    return [task(hosts, index) for index in range(count)]


def task(hosts, index):
    """Returns the TF_CONFIG of worker `index` of `hosts`, each "name:port"."""
    return json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})


def slurm_task(variables):
    """Returns the TF_CONFIG of this task of a Slurm job, one worker a node.

    Raises:
        ValueError: If Slurm did not start this process, or not one for each node, or has no
            scontrol here, as in some containers.
    """
    missing = [name for name in SLURM if name not in variables]
    if missing:
        raise ValueError(f"--slurm is for a process that srun started; {missing[0]} is not set.")
    if not shutil.which("scontrol"):
        raise ValueError("--slurm asks scontrol for the job's hosts; it is not on the PATH here.")
    nodes, job, index, tasks = (variables[name] for name in SLURM)
    names = subprocess.run(
        ["scontrol", "show", "hostnames", nodes], check=True, capture_output=True, text=True
    ).stdout.split()
    if len(names) != int(tasks):
        raise ValueError(
            f"a job needs one task a node: srun --ntasks-per-node=1; received {tasks} tasks on "
            f"{len(names)} nodes."
        )
    # Above the ports that systems hand out by themselves, and another for each job of a node.
    port = 61_000 + int(job) % 4_000
    return task([f"{name}:{port}" for name in names], int(index))


SLURM = ("SLURM_JOB_NODELIST", "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS")


def free_ports(count):
    """Returns ports that nothing listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def run(commands):
    """Runs the workers to their ends; returns 0, or the status of the first that failed."""
    processes = [
        subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for words, environment in commands
    ]
    readers = [
        threading.Thread(target=repeat_lines, args=(index, process.stdout), daemon=True)
        for index, process in enumerate(processes)
    ]
    for reader in readers:
        reader.start()
    try:
        failed = wait(processes)
        if failed is not None:
            status = how_it_ended(processes[failed].returncode)
            print(f"Worker {failed} {status}; stopping the others.", flush=True)
    finally:
        stop(processes)
        for reader in readers:
            reader.join(timeout=1.0)
    if failed is None:
        return 0
    print("The same command goes on from the last checkpoint.", flush=True)
    return abs(processes[failed].returncode)


def repeat_lines(index, stream):
    """Prints the lines of a worker behind its number."""
    for line in stream:
        print(f"[{index}] {line}", end="", flush=True)


def wait(processes):
    """Waits until all have ended well, or one badly; returns its number, or None."""
    while True:
        statuses = [process.poll() for process in processes]
        for index, status in enumerate(statuses):
            if status:
                return index
        if None not in statuses:
            return None
        time.sleep(0.2)


def how_it_ended(status):
    """Returns in words what an exit status means."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with exit status {status}"


def stop(processes):
    """Asks the processes that still run to stop, and kills those that do not."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    end = time.monotonic() + PATIENCE
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
