"""Which numbers a model computes with."""

import contextlib

import keras

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


@contextlib.contextmanager
def precision(name):
    """Layers built inside compute in `name`; their weights stay float32.

    With "float16", `model.compile` wraps the optimizer so that the loss is scaled and a step with
    an overflow is skipped (Micikevicius et al. 2018, section 3.2); "bfloat16" has the range of
    float32 and needs none of it.

    Raises:
        ValueError: `name` is none of "float32", "bfloat16", "float16".
    """
    if name not in POLICIES:
        raise ValueError(f"precision must be one of {sorted(POLICIES)}; received {name!r}.")
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(POLICIES[name])
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
