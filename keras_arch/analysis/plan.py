"""What a training takes before it is begun: memory, FLOPs, communication, time."""

import dataclasses
from typing import NamedTuple

from keras_arch.analysis.costs import cache_bytes, forward_flops, stack, training_flops
from keras_arch.analysis.sharding import (
    activation_bytes_of,
    parameters_of,
    sent_bytes,
    share,
    training_flops_of,
)
from keras_arch.analysis.training_plan import Plan
from keras_arch.checks import check_positive, check_positive_number

#: Bytes of a number that the model computes with.
ITEMSIZES = {"float32": 4, "bfloat16": 2, "float16": 2}


def plan(
    config,
    batch_size,
    length=None,
    *,
    devices=1,
    sharding="data",
    memory=None,
    bandwidth=None,
    flops=None,
    link=None,
    precision="float32",
    accumulate=1,
    ema=False,
):
    """Returns what it takes to train a model by AdamW, and the largest that would fit.

    Args:
        config: `GPT2Config` or `LlamaConfig`.
        batch_size: Rows of an update, on all devices.
        length: T, tokens of a row; default the context's.
        devices: n.
        sharding: "data", "tensor" or "sequence"; see `keras_arch.analysis.sharding`.
        memory: Bytes that one device has.
        bandwidth: Bytes/s between a device and its memory.
        flops: FLOP/s of a device in a product of the model's size: measured, since a data sheet's
            are mostly out of reach.
        link: Bytes/s that a device sends to the others.
        precision: As in `keras_arch.training.precision`; weights stay float32.
        accumulate: Micro-batches per update.
        ema: Whether the optimizer keeps a moving average of the weights.

    Returns:
        Plan.

    Raises:
        ValueError: If an argument is out of range, or `devices` does not divide what is shared.
    """
    stack(config)  # refuses what it does not know
    length = config.context_length if length is None else length
    check_positive(batch_size=batch_size, length=length, devices=devices, accumulate=accumulate)
    if length > config.context_length:
        raise ValueError(
            "length must be at most the config's context_length; received "
            f"length={length}, context_length={config.context_length}."
        )
    rates = {"memory": memory, "bandwidth": bandwidth, "flops": flops, "link": link}
    check_positive_number(**{name: rate for name, rate in rates.items() if rate is not None})
    if precision not in ITEMSIZES:
        raise ValueError(f"precision must be one of {[*ITEMSIZES]}; received {precision!r}.")
    if batch_size % accumulate:
        raise ValueError(
            "accumulate must divide batch_size; received "
            f"accumulate={accumulate}, batch_size={batch_size}."
        )
    job = Job(batch_size, length, devices, sharding, ITEMSIZES[precision], accumulate, ema)
    found = _plan(config, job, **rates)
    if memory is not None:
        found = dataclasses.replace(found, largest=_largest(config, job, memory))
    return found


class Job(NamedTuple):
    """A training, whatever the model and the machine; `itemsize` is of what it computes with."""

    batch_size: int
    length: int
    devices: int
    sharding: str
    itemsize: int
    accumulate: int
    ema: bool


def _plan(config, job, memory=None, bandwidth=None, flops=None, link=None):
    """Returns the Plan of one config, without the largest."""
    sizes = stack(config)
    part = share(sizes, job.batch_size // job.accumulate, job.length, job.devices, job.sharding)
    weights = 4 * parameters_of(sizes, part)
    activations = round(activation_bytes_of(sizes, part, job.length, job.itemsize))
    gradients = weights * (2 if job.accumulate > 1 else 1)
    averages = weights if job.ema else 0
    sent = job.accumulate * sent_bytes(sizes, part, job.devices, job.sharding, job.itemsize)
    # Activations and their gradients, each written and read; weights read there and back, their
    # gradients written; in the update gradients, weights and two moments read, all but the
    # gradients written.
    moved = job.accumulate * (4 * activations + 3 * weights) + 7 * weights + 3 * averages
    work = job.accumulate * training_flops_of(sizes, part, job.length)
    return Plan(
        config=config,
        sharding=job.sharding,
        devices=job.devices,
        parameters=sizes.parameters,
        weight_bytes=weights,
        optimizer_bytes=2 * weights,
        average_bytes=averages,
        gradient_bytes=gradients,
        activation_bytes=activations,
        training_bytes=3 * weights + averages + gradients + activations,
        cache_bytes=cache_bytes(config, job.batch_size, job.length, job.itemsize),
        forward_flops=forward_flops(config, job.length),
        training_flops=training_flops(config, job.length),
        sent_bytes=round(sent),
        memory=memory,
        **_times(
            work / flops if flops else None, moved / bandwidth if bandwidth else None, sent, link
        ),
    )


def _times(compute, memory, sent, link):
    """Returns the seconds of a step and of its parts, by the Plan's names."""
    sending = sent / link if link else None if sent else 0.0
    known = None not in (compute, memory, sending)
    return {
        "compute_seconds": compute,
        "memory_seconds": memory,
        "sending_seconds": sending,
        "step_seconds": compute + memory + sending if known else None,
    }


def _largest(config, job, memory):
    """Returns the config with the most heads that fits, or None if none does.

    Width, hidden width and layers grow as the heads do, of which each keeps its width.
    """
    heads = stack(config).key_value_heads
    unit = job.devices if job.sharding == "tensor" else 1

    def fits(count):
        scaled = _scaled(config, count * unit, heads, unit)
        return _plan(scaled, job).training_bytes <= memory

    if not fits(1):
        return None
    most = 1
    while fits(2 * most):
        most *= 2
    step = most
    while step := step // 2:
        most += step * fits(most + step)
    return _scaled(config, most * unit, heads, unit)


def _scaled(config, new, old, unit):
    """Returns the config with `new` key/value heads for each `old` ones."""
    return dataclasses.replace(
        config,
        width=config.width * new // old,
        heads=config.heads * new // old,
        layers=max(1, round(config.layers * new / old)),
        hidden_width=max(unit, config.hidden_width * new // old // unit * unit),
        **({"key_value_heads": new} if hasattr(config, "key_value_heads") else {}),
    )
