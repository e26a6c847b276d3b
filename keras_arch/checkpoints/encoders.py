"""What the tables of encoders (BERT and after) share: fields, tables, blocks."""

import re

from keras_arch.checkpoints.activations import to_theirs
from keras_arch.checkpoints.table import Extra, dense, norm, table

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
