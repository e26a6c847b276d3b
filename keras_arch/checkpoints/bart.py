"""BART's checkpoints."""

from keras_arch.checkpoints.activations import to_theirs
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import encoder_decoder_fields
from keras_arch.checkpoints.table import Extra, dense, norm, repeated, table
from keras_arch.models import BARTConfig

#: Of a block of the encoder, and of the decoder; also Marian's.
ENCODER_BLOCK = [
    *dense("attention/self_attention/query_key_value", *(f"self_attn.{x}_proj" for x in "qkv")),
    *dense("attention/self_attention/output_projection", "self_attn.out_proj"),
    *norm("attention/norm", "self_attn_layer_norm"),
    *dense("feedforward/feedforward/up", "fc1"),
    *dense("feedforward/feedforward/down", "fc2"),
    *norm("feedforward/norm", "final_layer_norm"),
]
DECODER_BLOCK = [
    *ENCODER_BLOCK,
    *dense("cross_attention/cross_attention/query", "encoder_attn.q_proj"),
    *dense("cross_attention/cross_attention/key_value", *(f"encoder_attn.{x}_proj" for x in "kv")),
    *dense("cross_attention/cross_attention/output_projection", "encoder_attn.out_proj"),
    *norm("cross_attention/norm", "encoder_attn_layer_norm"),
]


def _rows(config):
    encoder, decoder = config.encoder_layers, config.decoder_layers
    return [
        *table("tokens", "model.shared"),
        *table("source_position_table", "model.encoder.embed_positions"),
        *table("target_position_table", "model.decoder.embed_positions"),
        *norm("source_embedding_norm", "model.encoder.layernorm_embedding"),
        *norm("target_embedding_norm", "model.decoder.layernorm_embedding"),
        *repeated(encoder, "encoder_block_{}", "model.encoder.layers.{}", ENCODER_BLOCK),
        *repeated(decoder, "decoder_block_{}", "model.decoder.layers.{}", DECODER_BLOCK),
    ]


def _extras(config):
    copy, table = "source, target and head share one table", "model.shared.weight"
    return [
        Extra(r"model\.(en|de)coder\.embed_tokens\.weight", copy, equals=table),
        Extra(r"lm_head\.weight", copy, equals=table),
        Extra(r"final_logits_bias", "logits have no bias", equals=0.0),
        Extra(r"model\.(en|de)coder\.version", "a note of the file's maker"),
    ]


#: Fields of fairseq's kin and what they are in BART.
_FIXED = {
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "scale_embedding": False,
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": False,
    "extra_pos_embeddings": 2,
}


def read_shape(fields, fixed):
    """Returns the fields that configs of BART and Marian have, by our names.

    Args:
        fields: A `Fields`.
        fixed: Fields -> the values that they must have.
    """
    layers, heads = fields.need("encoder_layers"), fields.need("encoder_attention_heads")
    hidden_width = fields.need("encoder_ffn_dim")
    for name, value in fixed.items():
        fields.expect(name, value)
    # Our decoder has the encoder's widths.
    fields.expect("decoder_attention_heads", heads)
    fields.expect("decoder_ffn_dim", hidden_width)
    fields.expect("num_hidden_layers", layers)
    return {
        "vocabulary_size": fields.need("vocab_size"),
        "width": fields.need("d_model"),
        "encoder_layers": layers,
        "decoder_layers": fields.need("decoder_layers"),
        "heads": heads,
        "hidden_width": hidden_width,
        "context_length": fields.need("max_position_embeddings"),
        "activation": fields.activation("activation_function", "gelu"),
    }


def _read(fields):
    return BARTConfig(**read_shape(fields, _FIXED))


def write_shape(config):
    """Returns the fields that `read_shape` reads, and the rates of dropout."""
    return {
        "is_encoder_decoder": True,
        "vocab_size": config.vocabulary_size,
        "d_model": config.width,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), config.heads),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), config.hidden_width),
        "max_position_embeddings": config.context_length,
        "activation_function": to_theirs(config.activation),
        **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), config.dropout),
    }


def _recover(model):
    places = model.get_layer("source_position_table")
    return BARTConfig(
        **encoder_decoder_fields(model),
        context_length=places.context_length,
        position_offset=places.offset,
    )


BART = Family(
    "bart",
    "BartForConditionalGeneration",
    "bart",
    _read,
    write_shape,
    _recover,
    _rows,
    _extras,
    prefix="model.",
)
