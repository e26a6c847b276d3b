"""Checkpoints of LLaMA, and of its kin: Mistral, Qwen2 and Qwen3."""

from keras_arch.checkpoints.activations import to_theirs
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import decoder_fields, stack
from keras_arch.checkpoints.rope import read_rope, write_rope
from keras_arch.checkpoints.table import Extra, dense, norm, repeated, table
from keras_arch.models import LlamaConfig


def _rows(config):
    head = [] if config.tied else dense("head/projection", "lm_head", bias=False)
    return [
        *table("tokens", "model.embed_tokens"),
        *repeated(config.layers, "block_{}", "model.layers.{}", _block(config)),
        *norm("final_norm", "model.norm", offset=False),
        *head,
    ]


def _block(config):
    attention, feedforward = "attention/self_attention", "feedforward/feedforward"
    head_norms = [
        *norm(f"{attention}/query_norm", "self_attn.q_norm", offset=False),
        *norm(f"{attention}/key_norm", "self_attn.k_norm", offset=False),
    ]
    return [
        *norm("attention/norm", "input_layernorm", offset=False),
        *dense(
            f"{attention}/query_key_value",
            *(f"self_attn.{x}_proj" for x in "qkv"),
            bias=config.use_bias,
            shares=(config.heads, config.key_value_heads, config.key_value_heads),
        ),
        *(head_norms if config.query_key_norm else []),
        *dense(f"{attention}/output_projection", "self_attn.o_proj", bias=config.use_output_bias),
        *norm("feedforward/norm", "post_attention_layernorm", offset=False),
        *dense(
            f"{feedforward}/up",
            "mlp.gate_proj",
            "mlp.up_proj",
            bias=config.use_feedforward_bias,
        ),
        *dense(f"{feedforward}/down", "mlp.down_proj", bias=config.use_feedforward_bias),
    ]


def _extras(config):
    constant = "rotary frequencies, a constant"
    extras = [Extra(r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", constant)]
    if config.tied:
        copy = "the head is the table"
        extras.append(Extra(r"lm_head\.weight", copy, equals="model.embed_tokens.weight"))
    return extras


def _shape(fields):
    """Returns the fields that all of these families have, by our names."""
    context_length = fields.need("max_position_embeddings")
    return {
        "vocabulary_size": fields.need("vocab_size"),
        "width": fields.need("hidden_size"),
        "layers": fields.need("num_hidden_layers"),
        "heads": fields.need("num_attention_heads"),
        "key_value_heads": fields.get("num_key_value_heads"),
        "hidden_width": fields.need("intermediate_size"),
        "context_length": context_length,
        "activation": fields.activation("hidden_act", "silu"),
        "norm_epsilon": fields.get("rms_norm_eps", 1e-6),
        "tied": fields.get("tie_word_embeddings", False),
        **read_rope(fields, context_length),
    }


def _read_llama(fields):
    attention_bias = fields.get("attention_bias", False)
    return LlamaConfig(
        **_shape(fields),
        head_width=fields.get("head_dim"),
        use_bias=attention_bias,
        use_output_bias=attention_bias,
        use_feedforward_bias=fields.get("mlp_bias", False),
    )


def _read_mistral(fields):
    window = fields.get("sliding_window", 4096)
    return LlamaConfig(**_shape(fields), head_width=fields.get("head_dim"), window=window)


def _read_qwen2(fields):
    head_width, window = fields.get("head_dim"), _window(fields)
    return LlamaConfig(**_shape(fields), head_width=head_width, window=window, use_bias=True)


def _read_qwen3(fields):
    attention_bias = fields.get("attention_bias", False)
    return LlamaConfig(
        **_shape(fields),
        head_width=fields.get("head_dim", 128),
        window=_window(fields),
        use_bias=attention_bias,
        use_output_bias=attention_bias,
        query_key_norm=True,
    )


def _window(fields):
    """Returns Qwen's window, the same in all blocks or none."""
    layers, begin = fields.need("num_hidden_layers"), fields.get("max_window_layers", 28)
    window, slides = fields.get("sliding_window", 4096), fields.get("use_sliding_window", False)
    sliding = layers - min(begin, layers) if slides and window is not None else 0
    kinds = ["full_attention"] * (layers - sliding) + ["sliding_attention"] * sliding
    if 0 < sliding < layers or fields.get("layer_types") not in (None, kinds):
        raise ValueError(
            "config.json: all layers must have one window, or none; received "
            f"use_sliding_window={slides}, sliding_window={window}, max_window_layers={begin}, "
            f"layer_types={fields.get('layer_types')}."
        )
    return window if sliding else None


def _written(config):
    return {
        "vocab_size": config.vocabulary_size,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_value_heads,
        "head_dim": config.head_width,
        "intermediate_size": config.hidden_width,
        "max_position_embeddings": config.context_length,
        "hidden_act": to_theirs(config.activation),
        "rms_norm_eps": config.norm_epsilon,
        "tie_word_embeddings": config.tied,
        "attention_dropout": config.dropout,
        **write_rope(config),
    }


def _write_llama(config):
    return _written(config) | {
        "attention_bias": config.use_bias,
        "mlp_bias": config.use_feedforward_bias,
    }


def _write_mistral(config):
    return _written(config) | {"sliding_window": config.window}


def _write_qwen2(config):
    return _written(config) | _written_window(config)


def _write_qwen3(config):
    return _written(config) | _written_window(config) | {"attention_bias": config.use_bias}


def _written_window(config):
    slides = config.window is not None
    return {
        "use_sliding_window": slides,
        "sliding_window": config.window,
        "max_window_layers": 0 if slides else config.layers,
    }


def _recover(model):
    block = stack(model, "block_{}")[0]
    attention, rotary = block.attention.sublayer, block.attention.sublayer.rotary
    return LlamaConfig(
        **decoder_fields(model),
        context_length=model.get_layer("positions").context_length,
        key_value_heads=attention.key_value_heads,
        head_width=attention.head_width,
        rotary_base=rotary.base,
        rotary_layout=rotary.layout,
        rotary_scaling=rotary.scaling,
        window=attention.window,
        use_bias=attention.use_bias,
        use_output_bias=attention.use_output_bias,
        use_feedforward_bias=block.feedforward.sublayer.use_bias,
        query_key_norm=attention.query_norm is not None,
    )


def _family(model_type, architecture, read, write):
    return Family(
        model_type,
        architecture,
        "llama",
        read,
        write,
        _recover,
        _rows,
        _extras,
        prefix="model.",
    )


#: The first that can express a model is the one it is saved as.
LLAMAS = (
    _family("llama", "LlamaForCausalLM", _read_llama, _write_llama),
    _family("mistral", "MistralForCausalLM", _read_mistral, _write_mistral),
    _family("qwen2", "Qwen2ForCausalLM", _read_qwen2, _write_qwen2),
    _family("qwen3", "Qwen3ForCausalLM", _read_qwen3, _write_qwen3),
)
