"""T5's checkpoints, version 1.0 and 1.1."""

from keras_arch.checkpoints.activations import to_ours, to_theirs
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import encoder_decoder_fields, has_layer, stack
from keras_arch.checkpoints.table import Extra, dense, norm, repeated, table
from keras_arch.models import T5Config


def _projections(ours, theirs, letters):
    return dense(ours, *(f"{theirs}.{x}" for x in letters), bias=False)


def _self_attention():
    ours, theirs = "attention/self_attention", "layer.0.SelfAttention"
    return [
        *norm("attention/norm", "layer.0.layer_norm", offset=False),
        *_projections(f"{ours}/query_key_value", theirs, "qkv"),
        *_projections(f"{ours}/output_projection", theirs, "o"),
    ]


def _cross_attention():
    ours, theirs = "cross_attention/cross_attention", "layer.1.EncDecAttention"
    return [
        *norm("cross_attention/norm", "layer.1.layer_norm", offset=False),
        *_projections(f"{ours}/query", theirs, "q"),
        *_projections(f"{ours}/key_value", theirs, "kv"),
        *_projections(f"{ours}/output_projection", theirs, "o"),
    ]


def _feedforward(config, layer):
    ours, theirs = "feedforward/feedforward", f"{layer}.DenseReluDense"
    up = ("wi_0", "wi_1") if config.gated else ("wi",)
    return [
        *norm("feedforward/norm", f"{layer}.layer_norm", offset=False),
        *_projections(f"{ours}/up", theirs, up),
        *_projections(f"{ours}/down", theirs, ("wo",)),
    ]


def _rows(config):
    encoder = [*_self_attention(), *_feedforward(config, "layer.1")]
    decoder = [*_self_attention(), *_cross_attention(), *_feedforward(config, "layer.2")]
    head = [] if config.tied else dense("head/projection", "lm_head", bias=False)
    return [
        *table("tokens", "shared"),
        *table("encoder_bias", f"encoder.{_BIAS}"),
        *table("decoder_bias", f"decoder.{_BIAS}"),
        *repeated(config.encoder_layers, "encoder_block_{}", "encoder.block.{}", encoder),
        *repeated(config.decoder_layers, "decoder_block_{}", "decoder.block.{}", decoder),
        *norm("encoder_norm", "encoder.final_layer_norm", offset=False),
        *norm("decoder_norm", "decoder.final_layer_norm", offset=False),
        *head,
    ]


#: The first block holds the bias of the whole stack.
_BIAS = "block.0.layer.0.SelfAttention.relative_attention_bias"


def _extras(config):
    copy, table = "source and target share one table", "shared.weight"
    extras = [
        Extra(r"(en|de)coder\.embed_tokens\.weight", copy, equals=table),
        Extra(
            r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
            "cross-attention has no bias: nobody reads it",
        ),
    ]
    if config.tied:
        extras.append(Extra(r"lm_head\.weight", "the head is the table", equals=table))
    return extras


def _read(fields):
    fields.expect("is_encoder_decoder", True)
    fields.get("n_positions")  # No table is of that size.
    layers = fields.need("num_layers")
    decoder_layers = fields.get("num_decoder_layers")
    # Transformers 5 always says that they are tied, and whether logits are scaled in a field of its
    # own, with which version 1.1 is told.
    tied = fields.get("tie_word_embeddings", True)
    if tied:
        tied = fields.get("scale_decoder_outputs", True)
    fields.expect("scale_decoder_outputs", tied)
    return T5Config(
        vocabulary_size=fields.need("vocab_size"),
        width=fields.need("d_model"),
        head_width=fields.need("d_kv"),
        hidden_width=fields.need("d_ff"),
        encoder_layers=layers,
        decoder_layers=layers if decoder_layers is None else decoder_layers,
        heads=fields.need("num_heads"),
        buckets=fields.get("relative_attention_num_buckets", 32),
        max_distance=fields.get("relative_attention_max_distance", 128),
        norm_epsilon=fields.get("layer_norm_epsilon", 1e-6),
        tied=tied,
        **_read_feedforward(fields),
    )


def _read_feedforward(fields):
    kind = fields.get("feed_forward_proj", "relu")
    name = kind.removeprefix("gated-")
    gated = name != kind
    if kind == "gated-gelu":
        name = "gelu_new"
    fields.expect("dense_act_fn", name)
    fields.expect("is_gated_act", gated)
    return {"gated": gated, "activation": to_ours("feed_forward_proj", name)}


def _write(config):
    kind = to_theirs(config.activation)
    if config.gated:
        kind = "gated-gelu" if kind == "gelu_new" else f"gated-{kind}"
    return {
        "is_encoder_decoder": True,
        "vocab_size": config.vocabulary_size,
        "d_model": config.width,
        "d_kv": config.head_width,
        "d_ff": config.hidden_width,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "num_heads": config.heads,
        "relative_attention_num_buckets": config.buckets,
        "relative_attention_max_distance": config.max_distance,
        "layer_norm_epsilon": config.norm_epsilon,
        "feed_forward_proj": kind,
        "tie_word_embeddings": config.tied,
        "dropout_rate": config.dropout,
    }


def _recover(model):
    block, bias = stack(model, "encoder_block_{}")[0], model.get_layer("encoder_bias")
    return T5Config(
        **encoder_decoder_fields(model),
        head_width=block.attention.sublayer.head_width,
        buckets=bias.buckets,
        max_distance=bias.max_distance,
        gated=block.feedforward.sublayer.branches == 2,
        tied=not has_layer(model, "head"),
    )


T5 = Family("t5", "T5ForConditionalGeneration", "t5", _read, _write, _recover, _rows, _extras)
