"""What the recipes that pretrain an encoder, and that fine-tune one, share: shape, tokens, rows."""

import dataclasses
import itertools
from typing import Literal

import tensorflow as tf

import keras_arch as ka
from keras_arch.text.pipeline import finish

#: Role -> name, of the special tokens of a RoBERTa; those of the others are WordPiece's own.
ROBERTA_TOKENS = {"begin": "<s>", "end": "</s>", "pad": "<pad>", "mask": "<mask>"}


@dataclasses.dataclass(frozen=True)
class EncoderSettings:
    """The shape of an encoder."""

    model: Literal["bert", "roberta", "electra"] = "bert"  # Kind of model; RoBERTa reads byte pairs
    width: int = 256  # Width of the residual stream
    layers: int = 4  # Blocks
    heads: int = 4  # Attention heads; divide the width
    initializer_range: float = 0.02  # Deviation of the initial matrices and tables
    context: int = 128  # Tokens of a row, the special ones included
    dropout: float = 0.1  # Dropout rate

    def config(self, vocabulary_size):
        """Returns the model's configuration."""
        config_class, _ = ka.models.catalog[self.model]
        return config_class(
            vocabulary_size=vocabulary_size,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            context_length=self.context,
            dropout=self.dropout,
            initializer_range=self.initializer_range,
        )


def pack(tokenizer, texts, length, names):
    """Lays texts, lists of ids, into rows between the tokenizer's special tokens.

    Args:
        tokenizer: With the special tokens of an encoder.
        texts: Lists of ids.
        length: T, tokens of a row; what goes beyond is cut.
        names: Inputs to return: those of the model.

    Returns:
        Arrays `[B, T]` by name.
    """
    first, separator = tokenizer.edge_ids
    rows = ka.objectives.pack_texts(
        texts, length=length, classification_id=first, separator_id=separator
    )
    return {name: rows[name] for name in names}


def input_names(config):
    """Returns the names of the inputs of a config's encoder."""
    has_types = isinstance(config, ka.models.BERTConfig | ka.models.ELECTRAConfig)
    return ("token_ids", "valid", "type_ids") if has_types else ("token_ids", "valid")


def separators_between(config):
    """Returns how many separators stand between two texts in a row of a config's encoder."""
    return 2 if isinstance(config, ka.models.RoBERTaConfig) else 1


def dataset_of(make, start_step=0, steps=None):
    """Returns batches as a dataset: from a step on without end, or a number of them.

    Args:
        make: Function of the step to a batch of arrays, always of the same shapes.
        start_step: The first step.
        steps: Batches; None: without end.
    """
    specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), make(start_step))
    numbers = itertools.count(start_step) if steps is None else range(steps)
    dataset = tf.data.Dataset.from_generator(lambda: map(make, numbers), output_signature=specs)
    if steps is not None:
        # Keras warns of the end of a dataset whose length it does not know.
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(steps))
    return finish(dataset)
