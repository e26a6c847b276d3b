"""GPT-2's checkpoints."""

from keras_arch.checkpoints.activations import to_theirs
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import decoder_fields, stack
from keras_arch.checkpoints.table import Extra, dense, norm, repeated, table
from keras_arch.models import GPT2Config

#: Theirs are matrices `[in, out]`, unlike all later families'.
_BLOCK = [
    *norm("attention/norm", "ln_1"),
    *dense("attention/self_attention/query_key_value", "attn.c_attn", transposed=False),
    *dense("attention/self_attention/output_projection", "attn.c_proj", transposed=False),
    *norm("feedforward/norm", "ln_2"),
    *dense("feedforward/feedforward/up", "mlp.c_fc", transposed=False),
    *dense("feedforward/feedforward/down", "mlp.c_proj", transposed=False),
]


def _rows(config):
    head = [] if config.tied else dense("head/projection", "lm_head", bias=False)
    return [
        *table("tokens", "transformer.wte"),
        *table("position_table", "transformer.wpe"),
        *repeated(config.layers, "block_{}", "transformer.h.{}", _BLOCK),
        *norm("final_norm", "transformer.ln_f"),
        *head,
    ]


def _extras(config):
    buffer = Extra(r"transformer\.h\.\d+\.attn\.(masked_)?bias", "the causal mask, a constant")
    copy = Extra(r"lm_head\.weight", "the head is the table", equals="transformer.wte.weight")
    return [buffer, copy] if config.tied else [buffer]


def _read(fields):
    fields.expect("scale_attn_weights", True)
    fields.expect("scale_attn_by_inverse_layer_idx", False)
    # Scores in float32, as ours are in every precision; n_ctx repeats n_positions.
    for name in ("reorder_and_upcast_attn", "n_ctx"):
        fields.get(name)
    return GPT2Config(
        vocabulary_size=fields.need("vocab_size"),
        width=fields.need("n_embd"),
        layers=fields.need("n_layer"),
        heads=fields.need("n_head"),
        context_length=fields.need("n_positions"),
        hidden_width=fields.get("n_inner"),
        activation=fields.activation("activation_function", "gelu_new"),
        norm_epsilon=fields.get("layer_norm_epsilon", 1e-5),
        tied=fields.get("tie_word_embeddings", True),
    )


def _write(config):
    return {
        "vocab_size": config.vocabulary_size,
        "n_embd": config.width,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_positions": config.context_length,
        "n_inner": config.hidden_width,
        "activation_function": to_theirs(config.activation),
        "layer_norm_epsilon": config.norm_epsilon,
        "tie_word_embeddings": config.tied,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), config.dropout),
    }


def _recover(model):
    return GPT2Config(
        **decoder_fields(model),
        context_length=model.get_layer("position_table").context_length,
        use_bias=stack(model, "block_{}")[0].attention.sublayer.use_bias,
    )


GPT2 = Family(
    "gpt2",
    "GPT2LMHeadModel",
    "gpt2",
    _read,
    _write,
    _recover,
    _rows,
    _extras,
    prefix="transformer.",
)
