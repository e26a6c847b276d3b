"""Marian's checkpoints, of the OPUS-MT translators."""

from keras_arch.checkpoints.bart import DECODER_BLOCK, ENCODER_BLOCK, read_shape, write_shape
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import encoder_decoder_fields, has_layer
from keras_arch.checkpoints.table import Extra, Row, repeated, table
from keras_arch.models import MarianConfig


def _rows(config):
    encoder, decoder = config.encoder_layers, config.decoder_layers
    tables = table("tokens", "model.shared")
    if config.source_vocabulary_size is not None:
        tables = [
            *table("source_tokens", "model.encoder.embed_tokens"),
            *table("tokens", "model.decoder.embed_tokens"),
        ]
    return [
        *tables,
        *repeated(encoder, "encoder_block_{}", "model.encoder.layers.{}", ENCODER_BLOCK),
        *repeated(decoder, "decoder_block_{}", "model.decoder.layers.{}", DECODER_BLOCK),
        Row("logits_bias/bias", ("final_logits_bias",), row=True),
    ]


def _extras(config):
    shared = config.source_vocabulary_size is None
    table = "model.shared.weight" if shared else "model.decoder.embed_tokens.weight"
    extras = [
        Extra(r"lm_head\.weight", "the head is the target's table", equals=table),
        Extra(r"model\.(en|de)coder\.embed_positions\.weight", "sinusoids, a constant"),
    ]
    if shared:
        copy = "source and target share one table"
        extras.append(Extra(r"model\.(en|de)coder\.embed_tokens\.weight", copy, equals=table))
    return extras


#: Fields of fairseq's kin and what they are in Marian.
_FIXED = {
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "scale_embedding": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}


def _read(fields):
    # Nobody reads them.
    fields.get("add_bias_logits")
    fields.get("extra_pos_embeddings")
    # Not scaled, where the file says nothing.
    fields.need("scale_embedding")
    shape, source = read_shape(fields, _FIXED), None
    size = fields.get("decoder_vocab_size")
    if not fields.get("share_encoder_decoder_embeddings", True):
        source = shape["vocabulary_size"]
        shape["vocabulary_size"] = source if size is None else size
    return MarianConfig(**shape, source_vocabulary_size=source)


def _write(config):
    shared = config.source_vocabulary_size is None
    source = config.vocabulary_size if shared else config.source_vocabulary_size
    return write_shape(config) | {
        "vocab_size": source,
        "decoder_vocab_size": config.vocabulary_size,
        "share_encoder_decoder_embeddings": shared,
        "scale_embedding": True,
    }


def _recover(model):
    own = has_layer(model, "source_tokens")
    return MarianConfig(
        **encoder_decoder_fields(model),
        context_length=model.get_layer("positions").context_length,
        source_vocabulary_size=model.get_layer("source_tokens").vocabulary_size if own else None,
    )


MARIAN = Family(
    "marian",
    "MarianMTModel",
    "marian",
    _read,
    _write,
    _recover,
    _rows,
    _extras,
    prefix="model.",
)
