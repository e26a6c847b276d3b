"""Times one peer in this process and prints a JSON line; `benchmark.py` starts it."""

import importlib
import json
import resource
import statistics
import sys
import time

from peers import machine
from peers.bart_shapes import BART_SHAPES
from peers.bert_shapes import BERT_SHAPES, CLASSES
from peers.recurrent_shapes import RECURRENT_SHAPES
from peers.shapes import SHAPES, token_ids

ALL_SHAPES = SHAPES | RECURRENT_SHAPES | BERT_SHAPES | BART_SHAPES


def time_training(peer, job):
    """Returns the median ms of a step, after the first fifth, which compiles and warms up."""
    ids = token_ids(job["shape"], job["batch"], job["time"] + 1)
    inputs, targets = ids[:, :-1].copy(), ids[:, 1:].copy()
    start = time.perf_counter()
    seconds = peer.train(job["shape"], inputs, targets, job["steps"], job["mode"])
    first = time.perf_counter() - start - sum(seconds)
    return {"ms": 1e3 * statistics.median(seconds[len(seconds) // 5 :]), "first_seconds": first}


def time_generation(peer, job):
    """Returns the figures of generation."""
    prompts = token_ids(job["shape"], job["batch"], job["prompt"])
    generate = peer.generator(job["shape"], prompts, job["new_tokens"], job["mode"])
    return time_calls(generate, (job["batch"], job["new_tokens"]), job["calls"])


def time_reading(peer, job):
    """Returns the figures of a forward pass."""
    ids = token_ids(job["shape"], job["batch"], job["time"])
    return time_calls(
        peer.reader(job["shape"], ids, job["mode"]), (len(ids), CLASSES), job["calls"]
    )


def time_calls(function, shape, calls):
    """Returns the median ms of a call, and the seconds of the first, which compiles."""
    seconds = []
    for _ in range(1 + calls):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
        if tuple(result.shape) != shape:
            raise RuntimeError(f"a peer returned {tuple(result.shape)} instead of {shape}.")
    return {"ms": 1e3 * statistics.median(seconds[1:]), "first_seconds": seconds[0]}


TIMERS = {"generate": time_generation, "translate": time_generation, "read": time_reading}


def main():
    """Does the job given as JSON on the command line."""
    job = json.loads(sys.argv[1])
    job["shape"] = ALL_SHAPES[job["shape"]]
    if job["module"] == "machine":
        result = {
            "operations_per_second": machine.operations_per_second(),
        }
        if hasattr(job["shape"], "decoding_bytes"):
            size = job["shape"].decoding_bytes()
            result["bytes_per_second"] = machine.bytes_per_second(size)
    else:
        peer = importlib.import_module(f"peers.{job['module']}")
        result = TIMERS.get(job["task"], time_training)(peer, job)
        result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
