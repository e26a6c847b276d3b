"""A plan of a training, and how it is printed."""

import dataclasses

from keras_arch.analysis.costs import stack


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
        step_seconds: Of an update: the sum of these three, as if a device did one at a time.
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
            ("devices", f"{self.devices} by {self.sharding}" if self.devices > 1 else "1"),
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


#: The parts of a device's memory, and of a step's time, in the order of the table.
_PARTS = ("weight", "optimizer", "average", "gradient", "activation")
_TIMES = ("compute", "memory", "sending", "step")


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
