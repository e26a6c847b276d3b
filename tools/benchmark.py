"""Times a training step of a small GPT: keras_arch's `fit` on each backend beside plain PyTorch.

    python tools/benchmark.py --rounds 3

Every peer runs in a process of its own, all of them in turn in each round, so that a machine whose
speed drifts slows all alike. Prints one JSON line per run, then a table of medians and ratios.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

SHAPE = {"vocabulary_size": 66, "width": 128, "layers": 4, "heads": 4, "context_length": 64}
BATCH = 12
PEERS = {
    "PyTorch eager": "torch",
    "keras_arch fit, TensorFlow": "tensorflow",
    "keras_arch fit, JAX": "jax",
}


def floating_point_operations():
    """Returns the FLOPs of one step: 6 per matrix entry and token, and attention's two products."""
    width, layers, time_ = SHAPE["width"], SHAPE["layers"], SHAPE["context_length"]
    matrices = 12 * layers * width**2 + SHAPE["vocabulary_size"] * width
    tokens = BATCH * time_
    return 6 * matrices * tokens + 12 * layers * width * time_ * tokens


def batch():
    """Returns inputs and targets, int32 `[B, T]`."""
    import numpy as np

    shape = (BATCH, SHAPE["context_length"] + 1)
    ids = np.random.default_rng(0).integers(1, SHAPE["vocabulary_size"], shape).astype("int32")
    return ids[:, :-1].copy(), ids[:, 1:].copy()


def time_torch(steps):
    """Returns the seconds of each step, and the rate of a large matrix product in FLOP/s."""
    import torch
    from torch_gpt import make_step

    step = make_step(SHAPE, *batch())
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    a = torch.randn(2048, 2048)
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        rates.append(2 * 2048**3 / (time.perf_counter() - start))
    return seconds, max(rates)


def time_fit(steps):
    """Returns the seconds between the steps of a plain `fit`."""
    import keras
    import numpy as np

    import keras_arch as ka

    ka.training.keep_freed_memory()
    model = ka.models.gpt2(ka.models.GPT2Config(**SHAPE))
    model.compile(
        ka.training.AdamW(1e-3, weight_decay=0.1, beta_2=0.99, global_clipnorm=1.0),
        ka.objectives.TokenCrossentropy(),
        jit_compile=ka.training.strategy("one").jit_compile(),
    )
    inputs, targets = (np.tile(x, (steps, 1)) for x in batch())
    marks = []
    mark = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: marks.append(
            (float(logs["loss"]), time.perf_counter())[1]
        )
    )
    model.fit(
        {"token_ids": inputs, "valid": np.ones(inputs.shape, "bool")},
        targets,
        batch_size=BATCH,
        shuffle=False,
        verbose=0,
        callbacks=[mark],
    )
    return [after - before for before, after in itertools.pairwise(marks)]


def run_peer(backend, steps):
    """Times one peer in this process and prints a JSON line."""
    rate = None
    if backend == "torch":
        seconds, rate = time_torch(steps)
    else:
        seconds = time_fit(steps)
    # The first fifth holds compilation and warm-up.
    kept = seconds[len(seconds) // 5 :]
    print(json.dumps({"ms": 1e3 * statistics.median(kept), "flop_per_second": rate}))


def run_all(rounds, steps):
    """Runs the peers in turn and prints the table."""
    results = {peer: [] for peer in PEERS}
    rates = []
    for _ in range(rounds):
        for peer, backend in PEERS.items():
            command = [sys.executable, __file__, "--peer", backend, "--steps", str(steps)]
            environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            result = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps({"peer": peer, **result}), flush=True)
            results[peer].append(result["ms"])
            rates += [result["flop_per_second"]] if result["flop_per_second"] else []
    limit = 1e3 * floating_point_operations() / max(rates)
    base = statistics.median(results["PyTorch eager"])
    print(f"\n{'peer':<28}{'ms a step':>10}{'to PyTorch':>12}{'of the limit':>14}")
    for peer, times in results.items():
        ms = statistics.median(times)
        print(f"{peer:<28}{ms:>10.1f}{ms / base:>12.2f}{limit / ms:>13.0%}")
    print(f"limit: {limit:.1f} ms, {floating_point_operations() / 1e9:.2f} GFLOP at the rate of a")
    print(f"2,048-wide matrix product here, {max(rates) / 1e9:.0f} GFLOP/s")


def main():
    """Parses the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="times that each peer runs")
    parser.add_argument("--steps", type=int, default=150, help="training steps of a run")
    parser.add_argument("--peer", choices=PEERS.values(), help="run this one in this process only")
    arguments = parser.parse_args()
    if arguments.peer:
        run_peer(arguments.peer, arguments.steps)
    else:
        run_all(arguments.rounds, arguments.steps)


if __name__ == "__main__":
    main()
