"""ELECTRA's checkpoints, of generators and discriminators."""

from keras_arch.checkpoints.encoder_heads import (
    Head,
    bare_vectors,
    class_head,
    span_head,
    tag_head,
    with_heads,
)
from keras_arch.checkpoints.encoders import (
    BLOCK,
    copies_of,
    embedding,
    position_ids,
    read_shape,
    write_shape,
)
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import encoder_fields, stack
from keras_arch.checkpoints.table import Row, dense, norm, repeated
from keras_arch.models import ELECTRAConfig, masked_lm, replaced_tokens, with_pooler


def _rows(config):
    projected = config.embedding_width != config.width
    return [
        *embedding("electra."),
        *(dense("embedding_projection", "electra.embeddings_project") if projected else []),
        *repeated(config.layers, "block_{}", "electra.encoder.layer.{}", BLOCK),
    ]


def _read(fields):
    return ELECTRAConfig(
        **read_shape(fields),
        context_length=fields.need("max_position_embeddings"),
        embedding_width=fields.need("embedding_size"),
        types=fields.get("type_vocab_size", 2),
    )


def _write(config):
    return write_shape(config) | {
        "max_position_embeddings": config.context_length,
        "embedding_size": config.embedding_width,
        "type_vocab_size": config.types,
    }


def _recover(model):
    attention, types = (
        stack(model, "block_{}")[0].attention.sublayer,
        model.get_layer("token_types"),
    )
    fields = encoder_fields(model)
    embedding_width, width = fields.pop("width"), attention.heads * attention.head_width
    return ELECTRAConfig(
        **fields, width=width, embedding_width=embedding_width, types=types.vocabulary_size
    )


_REPLACED = Head(
    "replaced_tokens",
    "ElectraForPreTraining",
    lambda encoder, config: replaced_tokens(encoder, config.activation),
    [
        *dense("replaced_dense", "discriminator_predictions.dense"),
        *dense("replaced_score", "discriminator_predictions.dense_prediction"),
    ],
)
_MASKED_LM = Head(
    "masked_lm",
    "ElectraForMaskedLM",
    # Theirs has this activation whatever the encoder's.
    lambda encoder, config: masked_lm(encoder, "gelu"),
    [
        *dense("prediction_dense", "generator_predictions.dense"),
        *norm("prediction_norm", "generator_predictions.LayerNorm"),
        Row("prediction_bias/bias", ("generator_lm_head.bias",)),
    ],
    copies_of(
        "electra.embeddings.word_embeddings.weight",
        "generator_lm_head.bias",
        "generator_lm_head",
    ),
)

#: Without a head, then with each.
ELECTRAS = with_heads(
    Family(
        "electra",
        "ElectraModel",
        "electra",
        _read,
        _write,
        _recover,
        _rows,
        position_ids("electra."),
        prefix="electra.",
    ),
    (
        "discriminator_predictions",
        "generator_predictions",
        "generator_lm_head",
        "sequence_summary",
        "classifier",
        "qa_outputs",
    ),
    bare_vectors("ElectraModel"),
    _REPLACED,
    _MASKED_LM,
    span_head("ElectraForQuestionAnswering"),
    class_head(
        "ElectraForSequenceClassification",
        [*dense("pooler", "classifier.dense"), *dense("classes", "classifier.out_proj")],
        # Theirs has this activation whatever the encoder's.
        lambda encoder: with_pooler(encoder, "gelu"),
    ),
    tag_head("ElectraForTokenClassification"),
)
