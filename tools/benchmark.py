"""Times this project beside its peers: KerasHub, Keras, and PyTorch with `transformers`.

    python tools/benchmark.py train --shape 4x128 --batch 12
    python tools/benchmark.py generate --shape 6x384 --batch 8 --new-tokens 128 --cores 1
    python tools/benchmark.py recurrent --shape bahdanau --batch 32 --time 24
    python tools/benchmark.py finetune --shape bert-base --batch 8 --time 128
    python tools/benchmark.py translate --shape bart-small --batch 8

Every peer runs in a process of its own, all of them in turn in each round, so that a machine whose
speed drifts slows all alike. Prints one JSON line per run, then a table of medians with ratios and
the fraction of the limit: for training and reading, their FLOPs over the rate of a large matrix
product here; for generation, the bytes of the weights, once for each new token, over the rate at
which an array of that size is read.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
from typing import NamedTuple

from peers.bart_shapes import BART_SHAPES
from peers.bert_shapes import BERT_SHAPES
from peers.recurrent_shapes import RECURRENT_SHAPES
from peers.shapes import SHAPES

BACKENDS = {"TensorFlow": "tensorflow", "JAX": "jax", "PyTorch": "torch"}


def peers_of(ours, other, theirs, torch):
    """Returns name -> module of `peers`, backend, mode.

    Args:
        ours: The module of this project.
        other: The name of the other Keras library.
        theirs: Its module.
        torch: The module of PyTorch.
    """
    peers = {f"keras_arch {name}": (ours, backend, None) for name, backend in BACKENDS.items()}
    for name, backend in BACKENDS.items():
        peers[f"{other} {name}"] = theirs, backend, None
        if name == "TensorFlow":
            peers[f"{other} TensorFlow, no XLA"] = theirs, backend, "no XLA"
    return peers | {"PyTorch": (torch, "torch", None)}


GPT = peers_of("keras_arch_peer", "KerasHub", "keras_hub_peer", "torch_peer")
BERT = peers_of("keras_arch_bert", "KerasHub", "keras_hub_bert", "torch_bert")
BART = peers_of("keras_arch_bart", "KerasHub", "keras_hub_bart", "torch_bart")
RECURRENT = peers_of("keras_arch_recurrent", "Keras", "keras_recurrent", "torch_recurrent")


class Task(NamedTuple):
    """What can be timed."""

    about: str
    peers: dict
    shapes: dict
    shape: str  # The defaults of the options, from here on
    batch: int
    cores: int
    steps: int | None = None  # None: calls are timed, not steps
    time: int | None = None
    prompt: int | None = None
    new_tokens: int | None = None


TASKS = {
    "train": Task("a step of fit of a GPT-2", GPT, SHAPES, "4x128", 12, 2, 150, 64),
    "generate": Task(
        "greedy decoding of a GPT-2", GPT, SHAPES, "6x384", 1, 1, prompt=32, new_tokens=128
    ),
    "recurrent": Task(
        "a step of fit of recurrent models", RECURRENT, RECURRENT_SHAPES, "lstm", 16, 1, 20, 64
    ),
    "finetune": Task(
        "a step of fit of a BERT's classifier", BERT, BERT_SHAPES, "bert-base", 8, 1, 8, 128
    ),
    "read": Task("a BERT's forward pass", BERT, BERT_SHAPES, "bert-base", 8, 1, time=128),
    "pairs": Task("a step of fit of a BART", BART, BART_SHAPES, "bart-small", 16, 1, 12, 64),
    "translate": Task(
        "greedy decoding of a BART", BART, BART_SHAPES, "bart-small", 8, 1, prompt=32, new_tokens=64
    ),
}
#: Option -> what its help says.
OPTIONS = {
    "steps": "training steps of a run",
    "time": "tokens of a row",
    "prompt": "tokens of a prompt, or of a source",
    "new_tokens": "tokens to generate",
}


def chosen_peers(arguments):
    """Returns the peers to run: those asked for, of those that are installed."""
    peers = TASKS[arguments.task].peers
    unknown = set(arguments.peers or ()) - set(peers)
    if unknown:
        raise SystemExit(f"--peers must be out of {list(peers)}; received {sorted(unknown)}.")
    kept = {}
    for name, (module, backend, mode) in peers.items():
        needs = [backend]
        uses_transformers = module in ("torch_bert", "torch_bart") or (
            (module, arguments.task) == ("torch_peer", "generate")
        )
        needs += ["transformers"] if uses_transformers else []
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
    task = TASKS[arguments.task]
    shape = task.shapes[arguments.shape]
    if task.new_tokens is None:
        count = shape.training_operations if task.steps else shape.reading_operations
        work = count(arguments.batch, arguments.time)
        return 1e3 * work / max(rate["operations_per_second"] for rate in rates)
    operations = 2 * shape.matrix_entries() * arguments.batch * arguments.new_tokens
    compute = operations / max(rate["operations_per_second"] for rate in rates)
    memory = shape.decoding_bytes() * arguments.new_tokens
    return 1e3 * max(compute, memory / max(rate["bytes_per_second"] for rate in rates))


def print_table(arguments, rows, limit):
    """Prints medians, and each peer's time to that of the first."""
    what = "ms a step" if TASKS[arguments.task].steps else "ms a call"
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
    for name, task in TASKS.items():
        options = tasks.add_parser(name, help=task.about, formatter_class=formatter)
        options.add_argument("--shape", choices=task.shapes, default=task.shape, help="the model")
        options.add_argument("--batch", type=int, default=task.batch, help="rows")
        for option, about in OPTIONS.items():
            default, flag = getattr(task, option), f"--{option.replace('_', '-')}"
            if default is not None:
                options.add_argument(flag, type=int, default=default, help=about)
        if task.steps is None:
            options.add_argument("--calls", type=int, default=3, help="timed calls of a run")
        options.add_argument("--rounds", type=int, default=3, help="times that each peer runs")
        options.add_argument(
            "--cores", type=int, default=task.cores, help="cores a peer is pinned to"
        )
        options.add_argument("--peers", nargs="+", help=f"of {', '.join(task.peers)}")
        options.add_argument("--plot", type=pathlib.Path, help="PNG file to draw the table into")
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
