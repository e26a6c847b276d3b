"""Times this project beside its peers: KerasHub, Keras, and PyTorch with `transformers`.

    python tools/benchmark.py train --shape 4x128 --batch 12
    python tools/benchmark.py generate --shape 6x384 --batch 8 --new-tokens 128 --cores 1
    python tools/benchmark.py recurrent --shape bahdanau --batch 32 --time 24

Every peer runs in a process of its own, all of them in turn in each round, so that a machine whose
speed drifts slows all alike. Prints one JSON line per run, then a table of medians with ratios and
the fraction of the limit: for training, the FLOPs of a step over the rate of a large matrix product
here; for generation, the bytes of the weights, once for each new token, over the rate at which an
array of that size is read.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys

from peers.recurrent_shapes import RECURRENT_SHAPES
from peers.shapes import SHAPES

#: Name -> module of `peers`, backend, mode.
TRANSFORMERS = {
    "keras_arch TensorFlow": ("keras_arch_peer", "tensorflow", None),
    "keras_arch JAX": ("keras_arch_peer", "jax", None),
    "keras_arch PyTorch": ("keras_arch_peer", "torch", None),
    "KerasHub TensorFlow": ("keras_hub_peer", "tensorflow", None),
    "KerasHub TensorFlow, no XLA": ("keras_hub_peer", "tensorflow", "no XLA"),
    "KerasHub JAX": ("keras_hub_peer", "jax", None),
    "KerasHub PyTorch": ("keras_hub_peer", "torch", None),
    "PyTorch": ("torch_peer", "torch", None),
}
RECURRENT = {
    "keras_arch TensorFlow": ("keras_arch_recurrent", "tensorflow", None),
    "keras_arch JAX": ("keras_arch_recurrent", "jax", None),
    "keras_arch PyTorch": ("keras_arch_recurrent", "torch", None),
    "Keras TensorFlow": ("keras_recurrent", "tensorflow", None),
    "Keras TensorFlow, no XLA": ("keras_recurrent", "tensorflow", "no XLA"),
    "Keras JAX": ("keras_recurrent", "jax", None),
    "Keras PyTorch": ("keras_recurrent", "torch", None),
    "PyTorch": ("torch_recurrent", "torch", None),
}
PEERS = {"train": TRANSFORMERS, "generate": TRANSFORMERS, "recurrent": RECURRENT}
NEEDS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}


def chosen_peers(arguments):
    """Returns the peers to run: those asked for, of those that are installed."""
    peers = PEERS[arguments.task]
    unknown = set(arguments.peers or ()) - set(peers)
    if unknown:
        raise SystemExit(f"--peers must be out of {list(peers)}; received {sorted(unknown)}.")
    kept = {}
    for name, (module, backend, mode) in peers.items():
        needs = [NEEDS[backend]]
        needs += ["transformers"] if (module, arguments.task) == ("torch_peer", "generate") else []
        missing = [need for need in needs if importlib.util.find_spec(need) is None]
        if arguments.peers and name not in arguments.peers:
            continue
        if missing:
            print(f"{name} is left out: {', '.join(missing)} not installed.", file=sys.stderr)
        else:
            kept[name] = (module, backend, mode)
    return kept


def run(arguments, module, backend, mode):
    """Runs one peer in a process of its own and returns what it printed."""
    job = vars(arguments) | {"module": module, "mode": mode}
    environment = os.environ | {
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMP_NUM_THREADS": str(arguments.cores),
    }
    cores = sorted(os.sched_getaffinity(0))[-arguments.cores :]
    done = subprocess.run(
        [sys.executable, "-m", "peers", json.dumps(job)],
        cwd=pathlib.Path(__file__).parent,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    if done.returncode:
        raise SystemExit(f"{module} on {backend} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run_all(arguments):
    """Runs the peers in turn; returns the rows of the table and the limit in ms."""
    peers = chosen_peers(arguments)
    results = {name: [] for name in peers}
    rates = []
    for _ in range(arguments.rounds):
        rates.append(run(arguments, "machine", "torch", None))
        for name, peer in peers.items():
            result = run(arguments, *peer)
            print(json.dumps({"peer": name, **result}), flush=True)
            results[name].append(result)
    rows = {
        name: {key: statistics.median(r[key] for r in runs) for key in runs[0]}
        for name, runs in results.items()
    }
    return rows, limit_ms(arguments, rates)


def limit_ms(arguments, rates):
    """Returns the ms that the work takes at the best rates seen."""
    shape = (SHAPES | RECURRENT_SHAPES)[arguments.shape]
    if arguments.task != "generate":
        work = shape.training_operations(arguments.batch, arguments.time)
        return 1e3 * work / max(rate["operations_per_second"] for rate in rates)
    operations = 2 * shape.matrix_entries() * arguments.batch * arguments.new_tokens
    compute = operations / max(rate["operations_per_second"] for rate in rates)
    memory = shape.decoding_bytes() * arguments.new_tokens
    return 1e3 * max(compute, memory / max(rate["bytes_per_second"] for rate in rates))


def print_table(arguments, rows, limit):
    """Prints medians, and each peer's time to that of the first."""
    what = "ms a call" if arguments.task == "generate" else "ms a step"
    base = next(iter(rows.values()))["ms"]
    heads = (what, "ratio", "of limit", "first s", "peak MB")
    print(f"\n{'peer':<30}" + "".join(f"{head:>11}" for head in heads))
    for name, row in rows.items():
        print(
            f"{name:<30}{row['ms']:>11.1f}{row['ms'] / base:>11.2f}{limit / row['ms']:>11.0%}"
            f"{row['first_seconds']:>11.1f}{row['peak_mb']:>11.0f}"
        )
    print(f"{'limit':<30}{limit:>11.1f}")


def plot(arguments, rows, limit, path):
    """Draws the table as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.5 * len(rows) + 1.5), layout="constrained")
    axes = figure.subplots()
    names = list(rows)[::-1]
    axes.barh(names, [rows[name]["ms"] for name in names])
    axes.axvline(limit, color="black", linestyle="--", label="limit")
    axes.set_xlabel("ms")
    axes.set_title(f"{arguments.task}, {arguments.shape}, batch {arguments.batch}")
    axes.legend()
    figure.savefig(path)


def parse_arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    formatter = argparse.ArgumentDefaultsHelpFormatter
    tasks = parser.add_subparsers(dest="task", required=True)
    train = tasks.add_parser("train", help="a step of fit", formatter_class=formatter)
    train.add_argument("--time", type=int, default=64, help="tokens of a row")
    train.add_argument("--steps", type=int, default=150, help="training steps of a run")
    generate = tasks.add_parser("generate", help="greedy decoding", formatter_class=formatter)
    generate.add_argument("--prompt", type=int, default=32, help="tokens of a prompt")
    generate.add_argument("--new-tokens", type=int, default=128, help="tokens to generate")
    generate.add_argument("--calls", type=int, default=3, help="timed calls of a run")
    recurrent = tasks.add_parser(
        "recurrent", help="a step of fit of recurrent models", formatter_class=formatter
    )
    recurrent.add_argument("--time", type=int, default=64, help="tokens of a row")
    recurrent.add_argument("--steps", type=int, default=20, help="training steps of a run")
    for name, task, batch, shapes, shape, cores in (
        ("train", train, 12, SHAPES, "4x128", 2),
        ("generate", generate, 1, SHAPES, "6x384", 1),
        ("recurrent", recurrent, 16, RECURRENT_SHAPES, "lstm", 1),
    ):
        task.add_argument("--shape", choices=shapes, default=shape, help="the model")
        task.add_argument("--batch", type=int, default=batch, help="rows")
        task.add_argument("--rounds", type=int, default=3, help="times that each peer runs")
        task.add_argument("--cores", type=int, default=cores, help="cores a peer is pinned to")
        task.add_argument("--peers", nargs="+", help=f"of {', '.join(PEERS[name])}")
        task.add_argument("--plot", type=pathlib.Path, help="PNG file to draw the table into")
    return parser.parse_args()


def main():
    """Runs what the command line asks for."""
    arguments = parse_arguments()
    plot_path = arguments.__dict__.pop("plot")
    rows, limit = run_all(arguments)
    print_table(arguments, rows, limit)
    if plot_path is not None:
        plot(arguments, rows, limit, plot_path)


if __name__ == "__main__":
    main()
