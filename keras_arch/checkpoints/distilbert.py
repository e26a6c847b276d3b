"""DistilBERT's checkpoints."""

from keras_arch.checkpoints.activations import to_theirs
from keras_arch.checkpoints.encoder_heads import (
    Head,
    bare_vectors,
    class_head,
    span_head,
    tag_head,
    with_heads,
)
from keras_arch.checkpoints.encoders import copies_of, embedding, position_ids
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import encoder_fields
from keras_arch.checkpoints.table import Row, dense, norm, repeated
from keras_arch.models import DistilBERTConfig, masked_lm, with_pooler

_BLOCK = [
    *dense("attention/self_attention/query_key_value", *(f"attention.{x}_lin" for x in "qkv")),
    *dense("attention/self_attention/output_projection", "attention.out_lin"),
    *norm("attention/norm", "sa_layer_norm"),
    *dense("feedforward/feedforward/up", "ffn.lin1"),
    *dense("feedforward/feedforward/down", "ffn.lin2"),
    *norm("feedforward/norm", "output_layer_norm"),
]


def _rows(config):
    return [
        *embedding("distilbert.", types=False),
        *repeated(config.layers, "block_{}", "distilbert.transformer.layer.{}", _BLOCK),
    ]


def _read(fields):
    # Tells how a table started that is in the file like any other.
    fields.get("sinusoidal_pos_embds")
    # Old files' name of another field.
    fields.get("tie_weights_")
    return DistilBERTConfig(
        vocabulary_size=fields.need("vocab_size"),
        width=fields.need("dim"),
        layers=fields.need("n_layers"),
        heads=fields.need("n_heads"),
        hidden_width=fields.need("hidden_dim"),
        context_length=fields.need("max_position_embeddings"),
        activation=fields.activation("activation", "gelu"),
    )


def _write(config):
    return {
        "vocab_size": config.vocabulary_size,
        "dim": config.width,
        "n_layers": config.layers,
        "n_heads": config.heads,
        "hidden_dim": config.hidden_width,
        "max_position_embeddings": config.context_length,
        "activation": to_theirs(config.activation),
        **dict.fromkeys(("dropout", "attention_dropout"), config.dropout),
    }


def _recover(model):
    return DistilBERTConfig(**encoder_fields(model))


_MASKED_LM = Head(
    "masked_lm",
    "DistilBertForMaskedLM",
    lambda encoder, config: masked_lm(encoder, config.activation),
    [
        *dense("prediction_dense", "vocab_transform"),
        *norm("prediction_norm", "vocab_layer_norm"),
        Row("prediction_bias/bias", ("vocab_projector.bias",)),
    ],
    copies_of(
        "distilbert.embeddings.word_embeddings.weight",
        "vocab_projector.bias",
        "vocab_projector",
    ),
)

#: Without a head, then with each.
DISTILBERTS = with_heads(
    Family(
        "distilbert",
        "DistilBertModel",
        "distilbert",
        _read,
        _write,
        _recover,
        _rows,
        position_ids("distilbert."),
        prefix="distilbert.",
    ),
    (
        "vocab_transform",
        "vocab_layer_norm",
        "vocab_projector",
        "pre_classifier",
        "classifier",
        "qa_outputs",
    ),
    bare_vectors("DistilBertModel"),
    _MASKED_LM,
    span_head("DistilBertForQuestionAnswering"),
    class_head(
        "DistilBertForSequenceClassification",
        [*dense("pooler", "pre_classifier"), *dense("classes", "classifier")],
        lambda encoder: with_pooler(encoder, "relu"),
        "seq_classif_dropout",
    ),
    # The encoder's rate of dropout is its head's.
    tag_head("DistilBertForTokenClassification", None),
)
