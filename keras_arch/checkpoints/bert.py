"""BERT's checkpoints."""

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
    pooler,
    position_ids,
    read_shape,
    write_shape,
)
from keras_arch.checkpoints.family import Family
from keras_arch.checkpoints.recover import encoder_fields
from keras_arch.checkpoints.table import Row, dense, norm, repeated
from keras_arch.models import BERTConfig, bert_pretraining, masked_lm, next_sentence


def _rows(config):
    return [
        *embedding("bert."),
        *repeated(config.layers, "block_{}", "bert.encoder.layer.{}", BLOCK),
        *pooler("bert."),
    ]


def _read(fields):
    # Of the pooler, in Google's files; the code that wrote them reads none of the sizes.
    fields.expect("directionality", "bidi")
    fields.expect("pooler_type", "first_token_transform")
    for name in ("fc_size", "num_attention_heads", "num_fc_layers", "size_per_head"):
        fields.get(f"pooler_{name}")
    return BERTConfig(
        **read_shape(fields),
        context_length=fields.need("max_position_embeddings"),
        types=fields.get("type_vocab_size", 2),
    )


def _write(config):
    return write_shape(config) | {
        "max_position_embeddings": config.context_length,
        "type_vocab_size": config.types,
    }


def _recover(model):
    types = model.get_layer("token_types").vocabulary_size
    return BERTConfig(**encoder_fields(model), types=types)


_MASKED_LM = Head(
    "masked_lm",
    "BertForMaskedLM",
    lambda encoder, config: masked_lm(encoder, config.activation),
    [
        *dense("prediction_dense", "cls.predictions.transform.dense"),
        *norm("prediction_norm", "cls.predictions.transform.LayerNorm"),
        Row("prediction_bias/bias", ("cls.predictions.bias",)),
    ],
    copies_of(
        "bert.embeddings.word_embeddings.weight",
        "cls.predictions.bias",
        "cls.predictions.decoder",
    ),
)
_NEXT_SENTENCE = Head(
    "next_sentence",
    "BertForNextSentencePrediction",
    lambda encoder, config: next_sentence(encoder),
    [*pooler("bert."), *dense("next_sentence", "cls.seq_relationship")],
)
_PRETRAINING = Head(
    "bert_pretraining",
    "BertForPreTraining",
    lambda encoder, config: bert_pretraining(encoder, config.activation),
    _MASKED_LM.rows + _NEXT_SENTENCE.rows,
    _MASKED_LM.copies,
    "pretraining",
)

#: Without a head, then with each.
BERTS = with_heads(
    Family(
        "bert",
        "BertModel",
        "bert",
        _read,
        _write,
        _recover,
        _rows,
        position_ids("bert."),
        prefix="bert.",
    ),
    ("cls.predictions", "cls.seq_relationship", "classifier", "qa_outputs"),
    bare_vectors("BertModel"),
    _MASKED_LM,
    span_head("BertForQuestionAnswering"),
    _NEXT_SENTENCE,
    _PRETRAINING,
    class_head(
        "BertForSequenceClassification", [*pooler("bert."), *dense("classes", "classifier")]
    ),
    tag_head("BertForTokenClassification"),
)
