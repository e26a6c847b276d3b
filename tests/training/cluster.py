"""Starting the workers of a cluster on this machine."""

import json
import os
import socket
import subprocess
import sys


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


def run_workers(commands, folder, seconds=180):
    """Runs a Python command in each worker; returns (exit status, output) of each.

    Args:
        commands: the arguments of each worker's interpreter.
        folder: working directory.
        seconds: after which all are killed.
    """
    workers = [f"127.0.0.1:{port}" for port in free_ports(len(commands))]
    processes = []
    for index, arguments in enumerate(commands):
        cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        variables = {"KERAS_BACKEND": "tensorflow", "TF_CONFIG": json.dumps(cluster)}
        processes.append(
            subprocess.Popen(
                [sys.executable, *arguments],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | variables | {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": "."},
            )
        )
    try:
        outputs = [process.communicate(timeout=seconds)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(p.returncode, output) for p, output in zip(processes, outputs, strict=True)]
