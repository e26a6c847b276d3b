"""Starting the workers of a cluster on this machine."""

import os
import subprocess
import sys

from tools.launch import local_tasks


def run_workers(commands, folder, seconds=180):
    """Runs a Python command in each worker; returns (exit status, output) of each.

    Args:
        commands: the arguments of each worker's interpreter.
        folder: working directory.
        seconds: after which all are killed.
    """
    processes = []
    for arguments, task in zip(commands, local_tasks(len(commands)), strict=True):
        variables = {"KERAS_BACKEND": "tensorflow", "TF_CONFIG": task}
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
