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
from keras_arch.checks import check_positive, check_positive_number

#: Bytes of a number that the model computes with.
ITEMSIZES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What a training takes; bytes are those of one device. `str(plan)` is a table.

    Attributes:
        config: Of the model.
        sharding: What the devices share.
        devices: How many.
        parameters: Of the whole model, as `model.count_params()` counts them.
        weight_bytes: The parameters that a device holds, in float32.
        optimizer_bytes: AdamW's two moments of them.
        average_bytes: Their moving average; 0 without.
        gradient_bytes: Their gradients, and with micro-batches the sums of these.
        activation_bytes: What waits for the way back.
        training_bytes: What a device holds: the sum of these. Gradients come to be while
            activations go, so it may hold a little less.
        cache_bytes: Of decoding these rows; no part of the training.
        forward_flops: Of a token, in all.
        training_flops: The same with the way back.
        sent_bytes: What a device sends in an update.
        compute_seconds: Of an update's products.
        memory_seconds: Of what lies between the products.
        sending_seconds: Of `sent_bytes`.
        step_seconds: Of an update: the sum of these three.
        memory: What a device has, in bytes.
        largest: The largest config of the same proportions that fits.

    What hangs on a figure that was not given is None.
    """

    config: object
    sharding: str
    devices: int
    parameters: int
    weight_bytes: int
    optimizer_bytes: int
    average_bytes: int
    gradient_bytes: int
    activation_bytes: int
    training_bytes: int
    cache_bytes: int
    forward_flops: int
    training_flops: int
    sent_bytes: int
    compute_seconds: float | None
    memory_seconds: float | None
    sending_seconds: float | None
    step_seconds: float | None
    memory: float | None
    largest: object = None

    @property
    def fits(self):
        """Whether a device's memory is enough; None if it is not known."""
        return None if self.memory is None else self.training_bytes <= self.memory

    def __str__(self):
        rows = [
            ("parameters", f"{self.parameters:,}"),
            ("on each device", f"{self.devices} by {self.sharding}" if self.devices > 1 else "one"),
            *((name, _bytes(getattr(self, f"{name}_bytes"))) for name in _PARTS),
            ("all of these", _bytes(self.training_bytes)),
            ("cache of decoding", _bytes(self.cache_bytes)),
            ("FLOPs of a token", f"{self.forward_flops:,}; in training {self.training_flops:,}"),
            ("sent in an update", _bytes(self.sent_bytes)),
            *((name, _seconds(getattr(self, f"{name}_seconds"))) for name in _TIMES),
        ]
        if self.memory is not None:
            rows.append(("fits", f"{'yes' if self.fits else 'no'}, of {_bytes(self.memory)}"))
            rows.append(("largest that fits", _shape(self.largest)))
        return "\n".join(f"{name:<20}{value}" for name, value in rows)


_PARTS = ("weight", "optimizer", "average", "gradient", "activation")
_TIMES = ("compute", "memory", "sending", "step")


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
    return (
        found
        if memory is None
        else dataclasses.replace(found, largest=_largest(config, job, memory))
    )


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
    # Activations and their gradients, each written and read; weights read there and back and
    # their gradients written; in the update gradients, weights and moments read, the last two
    # written.
    moved = job.accumulate * (4 * activations + 3 * weights) + 7 * weights + 3 * averages
    work = job.accumulate * training_flops_of(sizes, part, job.length)
    seconds = {
        "compute_seconds": work / flops if flops else None,
        "memory_seconds": moved / bandwidth if bandwidth else None,
        "sending_seconds": sent / link if link else None if sent else 0.0,
    }
    known = None not in seconds.values()
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
        step_seconds=sum(seconds.values()) if known else None,
        memory=memory,
        **seconds,
    )


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


def _shape(config):
    """Returns a config's size in words."""
    if config is None:
        return "none of this shape"
    return (
        f"width {config.width}, {config.layers} layers, {config.heads} heads: "
        f"{stack(config).parameters:,} parameters"
    )


def _bytes(count):
    """Returns bytes in words, in powers of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            break
        count, unit = count / 1000, "TB"
    return f"{count:.3g} {unit}"


def _seconds(count):
    return "not known" if count is None else f"{count:.3g} s"
