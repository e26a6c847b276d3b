"""What the tables of encoders (BERT and after) share: fields, blocks, heads."""

import re
from collections.abc import Callable
from typing import NamedTuple

from keras_arch.checkpoints.activations import to_theirs
from keras_arch.checkpoints.table import Extra, Row, dense, norm, table
from keras_arch.models import builder, span_answers, token_vectors

#: Of a block of BERT, RoBERTa and ELECTRA.
BLOCK = [
    *dense(
        "attention/self_attention/query_key_value",
        *(f"attention.self.{name}" for name in ("query", "key", "value")),
    ),
    *dense("attention/self_attention/output_projection", "attention.output.dense"),
    *norm("attention/norm", "attention.output.LayerNorm"),
    *dense("feedforward/feedforward/up", "intermediate.dense"),
    *dense("feedforward/feedforward/down", "output.dense"),
    *norm("feedforward/norm", "output.LayerNorm"),
]


class Head(NamedTuple):
    """What a family with a head has more than that without.

    Attributes:
        name: Of the function in `keras_arch.models` that puts it on.
        architecture: As in `Family`.
        put: Function of our encoder and its config that returns the model.
        rows: Of the head.
        copies: Tensors that repeat the table or a row's, in heads that fill masks.
    """

    name: str
    architecture: str
    put: Callable
    rows: list[Row] = []
    copies: list[Extra] = []


def embedding(prefix, types=True):
    """Returns the rows of the tables and their norm."""
    rows = [
        *table("tokens", f"{prefix}embeddings.word_embeddings"),
        *table("position_table", f"{prefix}embeddings.position_embeddings"),
        *norm("embedding_norm", f"{prefix}embeddings.LayerNorm"),
    ]
    if types:
        rows += table("token_types", f"{prefix}embeddings.token_type_embeddings")
    return rows


def pooler(prefix):
    """Returns the rows of the pooler."""
    return dense("pooler", f"{prefix}pooler.dense")


def bare_vectors(architecture):
    """Returns the `Head` that leaves the pooler out."""
    return Head("token_vectors", architecture, lambda encoder, config: token_vectors(encoder))


def span_head(architecture):
    """Returns the `Head` that finds the spans of answers."""
    return Head(
        "span_answers",
        architecture,
        lambda encoder, config: span_answers(encoder),
        dense("span_scores/projection", "qa_outputs"),
    )


def position_ids(prefix):
    """Returns the function of a config that returns the extras of an encoder."""
    name = rf"{re.escape(prefix)}embeddings\.position_ids"
    return lambda config: [Extra(name, "0, 1, 2 and on, a constant")]


def copies_of(table, bias, copies):
    """Returns the tensors that repeat others in a head that fills masks.

    Args:
        table: Name of the table's tensor.
        bias: Name of the tensor of the tokens' biases.
        copies: Name of their layer that may hold both again.
    """
    reason = "the head is the table, and one bias"
    extras = [Extra(re.escape(f"{copies}.weight"), reason, equals=table)]
    if bias != f"{copies}.bias":
        extras.append(Extra(re.escape(f"{copies}.bias"), reason, equals=bias))
    return extras


def read_shape(fields):
    """Returns the fields that the configs of BERT, RoBERTa and ELECTRA have, by our names."""
    fields.expect("position_embedding_type", "absolute")
    return {
        "vocabulary_size": fields.need("vocab_size"),
        "width": fields.need("hidden_size"),
        "layers": fields.need("num_hidden_layers"),
        "heads": fields.need("num_attention_heads"),
        "hidden_width": fields.need("intermediate_size"),
        "activation": fields.activation("hidden_act", "gelu"),
        "norm_epsilon": fields.get("layer_norm_eps", 1e-12),
    }


def write_shape(config):
    """Returns the fields that `read_shape` reads, and the rates of dropout."""
    return {
        "vocab_size": config.vocabulary_size,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.hidden_width,
        "hidden_act": to_theirs(config.activation),
        "layer_norm_eps": config.norm_epsilon,
        **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), config.dropout),
    }


def with_heads(family, tasks, *heads):
    """Returns a family and those of its encoder under a head.

    Args:
        family: Of the encoder alone.
        tasks: Beginnings of the names of all heads' tensors.
        heads: Each a `Head`.
    """
    return [_bodied(family, tasks), *(_headed(family, tasks, head) for head in heads)]


def _bodied(family, tasks):
    def read(fields):
        fields.get("tie_word_embeddings")  # Says something of heads that are not read.
        return family.read(fields)

    def extras(config):
        return [*family.extras(config), *_of_other_heads(tasks, [])]

    missing = "; head='token_vectors' reads the encoder without its pooler"
    advice = {name: missing for row in pooler(family.prefix) for name in row.tensors}
    return family._replace(read=read, extras=extras, bare=True, advice=advice)


def _headed(family, tasks, head):
    def read(fields):
        tied = (True,) if head.copies else (True, False)
        fields.expect("tie_word_embeddings", *tied)
        return family.read(fields)

    def rows(config):
        return [row for row in family.rows(config) if row not in pooler(family.prefix)] + head.rows

    def extras(config):
        unused = [row for row in family.rows(config) if row in pooler(family.prefix)]
        unused = [row for row in unused if row not in head.rows]
        reason = "of the pooler, which the head does not read"
        return [
            *family.extras(config),
            *(Extra(re.escape(name), reason) for row in unused for name in row.tensors),
            *_of_other_heads(tasks, head.rows),
            *head.copies,
        ]

    return family._replace(
        architecture=head.architecture,
        model_name=f"{family.model_name}_{head.name}",
        read=read,
        rows=rows,
        extras=extras,
        bare=not head.rows,
        head=head.name,
        build=lambda config: head.put(builder(config)(config), config),
    )


def _of_other_heads(tasks, rows):
    """Returns the extras of all heads but that of these rows."""
    own = [name for row in rows for name in row.tensors]
    return [
        Extra(rf"{re.escape(task)}\..*", "of a head that was not asked for")
        for task in tasks
        if not any(name.startswith(f"{task}.") for name in own)
    ]
