"""The rotary fields of a `config.json`, in the old spelling (`rope_scaling`) and the new."""

import math

from keras_arch.checkpoints.fields import Fields
from keras_arch.layers import DynamicNTKScaling, LinearScaling, Llama3Scaling, YarnScaling


def read_rope(fields, context_length):
    """Returns `rotary_base` and `rotary_scaling` of a `LlamaConfig`, by name.

    Args:
        fields: The `Fields` of the config.
        context_length: Of the model.

    Raises:
        ValueError: If the file asks for a scaling that our layers do not compute.
    """
    base = fields.get("rope_theta", 10000.0)
    old, new = fields.get("rope_scaling"), fields.get("rope_parameters")
    rope = Fields(old or new or {}, fields.ignored)
    fields.expect("partial_rotary_factor", 1.0, None)
    rope.expect("partial_rotary_factor", 1.0, None)
    base = rope.get("rope_theta", base)
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in _KINDS:
        raise ValueError(
            f"config.json: rope_type must be one of {sorted(_KINDS)}; received rope_type={kind!r}."
        )
    read = _KINDS[kind]
    scaling = None if read is None else read(rope, context_length)
    rope.get("original_max_position_embeddings")
    rope.harmless()
    return {"rotary_base": float(base), "rotary_scaling": scaling}


def write_rope(config):
    """Returns the rotary fields of a `LlamaConfig`, as transformers 5 reads them, and 4.

    Version 4 has `rope_theta` and `rope_scaling`; 5 reads those too.
    """
    fields = {"rope_theta": config.rotary_base, "rope_scaling": None}
    scaling = config.rotary_scaling
    if scaling is not None:
        kind, more = _written(scaling)
        fields["rope_scaling"] = {"rope_type": kind, "factor": scaling.factor, **more}
    return fields


def _linear(rope, context_length):
    return LinearScaling(rope.need("factor"))


def _dynamic(rope, context_length):
    return DynamicNTKScaling(rope.need("factor"), context_length)


def _yarn(rope, context_length):
    rope.expect("truncate", True)
    for name in ("mscale", "mscale_all_dim"):
        rope.expect(name, None)
    scaling = YarnScaling(
        rope.need("factor"),
        _trained(rope, context_length),
        beta_fast=rope.get("beta_fast") or 32.0,
        beta_slow=rope.get("beta_slow") or 1.0,
    )
    factor = rope.get("attention_factor")
    if factor is not None and not math.isclose(factor, scaling.magnitude, rel_tol=1e-6):
        rope.expect("attention_factor", scaling.magnitude)
    return scaling


def _llama3(rope, context_length):
    return Llama3Scaling(
        rope.need("factor"),
        _trained(rope, context_length),
        low_turns=rope.need("low_freq_factor"),
        high_turns=rope.need("high_freq_factor"),
    )


def _trained(rope, context_length):
    return rope.get("original_max_position_embeddings", context_length)


_KINDS = {
    "default": None,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
}


def _written(scaling):
    """Returns the name of a scaling and its fields but the factor."""
    if isinstance(scaling, LinearScaling):
        return "linear", {}
    if isinstance(scaling, DynamicNTKScaling):
        return "dynamic", {}
    trained = {"original_max_position_embeddings": scaling.context_length}
    if isinstance(scaling, YarnScaling):
        return "yarn", trained | {"beta_fast": scaling.beta_fast, "beta_slow": scaling.beta_slow}
    turns = {"low_freq_factor": scaling.low_turns, "high_freq_factor": scaling.high_turns}
    return "llama3", trained | turns
