"""RoBERTa's checkpoints."""

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
from keras_arch.models import RoBERTaConfig, masked_lm


def _rows(config):
    return [
        *embedding("roberta."),
        *repeated(config.layers, "block_{}", "roberta.encoder.layer.{}", BLOCK),
        *pooler("roberta."),
    ]


def _read(fields):
    fields.expect("type_vocab_size", 1)
    # The first token's position is the row after that of the pad's id.
    offset = fields.need("pad_token_id") + 1
    return RoBERTaConfig(
        **read_shape(fields),
        context_length=fields.need("max_position_embeddings") - offset,
        position_offset=offset,
    )


def _write(config):
    # No pad's id makes an offset of 0.
    offset = max(config.position_offset, 1)
    return write_shape(config) | {
        "max_position_embeddings": config.context_length + offset,
        "pad_token_id": offset - 1,
        "type_vocab_size": 1,
    }


def _recover(model):
    offset = model.get_layer("position_table").offset
    return RoBERTaConfig(**encoder_fields(model), position_offset=offset)


_MASKED_LM = Head(
    "masked_lm",
    "RobertaForMaskedLM",
    # Theirs has this activation whatever the encoder's.
    lambda encoder, config: masked_lm(encoder, "gelu"),
    [
        *dense("prediction_dense", "lm_head.dense"),
        *norm("prediction_norm", "lm_head.layer_norm"),
        Row("prediction_bias/bias", ("lm_head.bias",)),
    ],
    copies_of("roberta.embeddings.word_embeddings.weight", "lm_head.bias", "lm_head.decoder"),
)

#: Without a head, then with each.
ROBERTAS = with_heads(
    Family(
        "roberta",
        "RobertaModel",
        "roberta",
        _read,
        _write,
        _recover,
        _rows,
        position_ids("roberta."),
        prefix="roberta.",
    ),
    ("lm_head", "classifier", "qa_outputs"),
    bare_vectors("RobertaModel"),
    _MASKED_LM,
    span_head("RobertaForQuestionAnswering"),
    class_head(
        "RobertaForSequenceClassification",
        [*dense("pooler", "classifier.dense"), *dense("classes", "classifier.out_proj")],
    ),
    tag_head("RobertaForTokenClassification"),
)
