"""Times one peer in this process and prints a JSON line; `benchmark.py` starts it."""

import importlib
import json
import resource
import statistics
import sys
import time

from peers import machine
from peers.recurrent_shapes import RECURRENT_SHAPES
from peers.shapes import SHAPES, token_ids


def time_training(peer, job):
    """Returns the median ms of a step, after the first fifth, which compiles and warms up."""
    ids = token_ids(job["shape"], job["batch"], job["time"] + 1)
    inputs, targets = ids[:, :-1].copy(), ids[:, 1:].copy()
    start = time.perf_counter()
    seconds = peer.train(job["shape"], inputs, targets, job["steps"], job["mode"])
    first = time.perf_counter() - start - sum(seconds)
    return {"ms": 1e3 * statistics.median(seconds[len(seconds) // 5 :]), "first_seconds": first}


def time_generation(peer, job):
    """Returns the median ms of a call, and the seconds of the first, which compiles."""
    prompts = token_ids(job["shape"], job["batch"], job["prompt"])
    generate = peer.generator(job["shape"], prompts, job["new_tokens"], job["mode"])
    seconds = []
    for _ in range(1 + job["calls"]):
        start = time.perf_counter()
        new = generate()
        seconds.append(time.perf_counter() - start)
        if tuple(new.shape) != (job["batch"], job["new_tokens"]):
            raise RuntimeError(f"a peer generated {tuple(new.shape)} tokens.")
    return {"ms": 1e3 * statistics.median(seconds[1:]), "first_seconds": seconds[0]}


def main():
    """Does the job given as JSON on the command line."""
    job = json.loads(sys.argv[1])
    job["shape"] = (SHAPES | RECURRENT_SHAPES)[job["shape"]]
    if job["module"] == "machine":
        result = {
            "operations_per_second": machine.operations_per_second(),
        }
        if job["task"] == "generate":
            size = job["shape"].decoding_bytes()
            result["bytes_per_second"] = machine.bytes_per_second(size)
    else:
        peer = importlib.import_module(f"peers.{job['module']}")
        time_task = time_generation if job["task"] == "generate" else time_training
        result = time_task(peer, job)
        result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
