"""Checks `keras_arch.analysis.plan` on this machine: memory and time of a training step, on JAX.

    python tools/check_plan.py --architecture llama --width 512 --layers 6 --heads 8 --batch 4

Measures, before and after the steps, the rates that the plan is made of: of products of the model's
size, and of a pass over an array that is read and written. The memory of a step is that of JAX's
arrays and what the process grows by while `fit` goes on. All times are medians, so that other work
slows all of them alike.
Prints both, and ends with status 1 if the plan is off by more than 15 % in memory or 30 % in time.
Needs Linux.
"""

import argparse
import ctypes
import os
import pathlib
import re
import statistics
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import numpy as np
from peers.fit_steps import step_seconds

import keras_arch as ka

LIMITS = {"memory, MB": 0.15, "time, ms": 0.30}


def parse_arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--architecture", choices=["gpt2", "llama"], default="gpt2")
    for name, default in (
        ("width", 384),
        ("layers", 6),
        ("heads", 6),
        ("vocabulary-size", 8192),
        ("batch", 8),
        ("time", 128),
        ("steps", 12),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def make_config(arguments):
    """Returns the model's config."""
    config_class, _ = ka.models.catalog[arguments.architecture]
    return config_class(
        vocabulary_size=arguments.vocabulary_size,
        width=arguments.width,
        layers=arguments.layers,
        heads=arguments.heads,
        hidden_width=4 * arguments.width,
        context_length=arguments.time,
    )


def measure_rates(rows, width):
    """Returns the FLOP/s of products of a block's size, and the bytes/s of passes over arrays."""
    x, up, down = (
        jnp.ones((rows, width)),
        jnp.ones((width, 4 * width)),
        jnp.ones((4 * width, width)),
    )
    products = jax.jit(lambda x: ((x @ up) @ down, (x.T @ x) @ up))
    work = 2 * rows * width * (8 * width + width) + 2 * width * width * 4 * width
    array = jnp.ones((rows, 16 * width))
    passes = jax.jit(lambda a: a + 1.0)
    return {
        "flops": work / _median(lambda: jax.block_until_ready(products(x))),
        "bandwidth": 2 * array.nbytes / _median(lambda: passes(array).block_until_ready()),
    }


def _median(function, times=25):
    function()
    marks = [time.perf_counter()]
    for _ in range(times):
        function()
        marks.append(time.perf_counter())
    return statistics.median(np.diff(marks))


def make_model(config):
    """Returns the compiled model."""
    model = ka.models.builder(config)(config)
    model.compile(
        ka.training.AdamW(1e-3, global_clipnorm=1.0),
        ka.objectives.TokenCrossentropy(),
        jit_compile=True,
    )
    return model


def step_bytes(model, batch):
    """Returns the bytes of all arrays, and of what a step needs besides."""
    step_seconds(model, *batch, 2)
    libc = ctypes.CDLL("libc.so.6")
    libc.malloc_trim(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forgets the peak until now
    before = _status("VmRSS")
    step_seconds(model, *batch, 3)
    return sum(array.nbytes for array in jax.live_arrays()) + _status("VmHWM") - before


def _status(name):
    text = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+) kB", text)[1])


def main():
    """Runs what the command line asks for."""
    arguments = parse_arguments()
    config = make_config(arguments)
    size = arguments.batch * arguments.time, arguments.width
    before = measure_rates(*size)
    ids = np.random.default_rng(0).integers(
        1, config.vocabulary_size, (arguments.batch, arguments.time + 1)
    )
    inputs = {"token_ids": ids[:, :-1], "valid": np.ones(ids[:, 1:].shape, "bool")}
    model, batch = make_model(config), (inputs, ids[:, 1:])
    memory = step_bytes(model, batch)
    ka.training.keep_freed_memory()
    seconds = statistics.median(step_seconds(model, *batch, arguments.steps)[1:])
    rates = {name: statistics.mean((x, before[name])) for name, x in measure_rates(*size).items()}
    plan = ka.analysis.plan(config, arguments.batch, **rates)
    print(plan, f"FLOP/s              {rates['flops']:.3g}", sep="\n")
    print(f"bytes/s             {rates['bandwidth']:.3g}\n")
    return report(
        {
            "memory, MB": (plan.training_bytes / 1e6, memory / 1e6),
            "time, ms": (1e3 * plan.step_seconds, 1e3 * seconds),
        }
    )


def report(figures):
    """Prints what was planned beside what was measured; returns the exit status."""
    status = 0
    print(f"{'':<20}{'plan':>10}{'measured':>10}{'off':>8}")
    for name, (planned, measured) in figures.items():
        off = planned / measured - 1
        print(f"{name:<20}{planned:>10.0f}{measured:>10.0f}{off:>8.1%}")
        status |= abs(off) > LIMITS[name]
    return status


if __name__ == "__main__":
    sys.exit(main())
