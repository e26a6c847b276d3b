"""ELECTRA (Clark et al. 2020): BERT's network on token vectors of a width of their own."""

import dataclasses

import keras

from keras_arch.checks import check_positive
from keras_arch.models.decoder_only import normal, token_inputs, token_positions
from keras_arch.models.encoder_only import (
    EncoderConfig,
    embedded,
    embedding_layers,
    encoder_stack,
    type_inputs,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ELECTRAConfig(EncoderConfig):
    """The shape of an ELECTRA, generator or discriminator; fields as in `EncoderConfig`, and:

    Attributes:
        embedding_width: Of the vectors of tokens, positions and types; default `width`. Where it is
            another than `width`, a matrix leads from one to the other.
        types: Types of token: the texts of a row.
    """

    embedding_width: int | None = None
    types: int = 2

    def __post_init__(self):
        super().__post_init__()
        if self.embedding_width is None:
            object.__setattr__(self, "embedding_width", self.width)
        check_positive(embedding_width=self.embedding_width, types=self.types)


def _published(width, depth, heads, embedding_width):
    return ELECTRAConfig(
        vocabulary_size=30522,
        width=width,
        layers=depth,
        heads=heads,
        context_length=512,
        embedding_width=embedding_width,
    )


#: The published discriminators, without their dropout: 13,483,008, 108,891,648 and 334,092,288
#: parameters, without their heads.
SIZES = {
    "small": _published(256, 12, 4, 128),
    "base": _published(768, 12, 12, 768),
    "large": _published(1024, 24, 16, 1024),
}


def electra(config, tables_of=None):
    """Builds an ELECTRA without a head.

    Args:
        config: An `ELECTRAConfig`.
        tables_of: Another ELECTRA, with or without a head, whose tables of tokens, types and
            positions this one reads, too: a generator those of its discriminator (section 3.2).

    Returns:
        A functional model from `token_ids` int32 `[B, T]`, `valid` bool `[B, T]` and `type_ids`
        int32 `[B, T]` to a dict: `hidden` `[B, T, D]`, the vectors of the tokens.

    Raises:
        ValueError: If the tables of the other are not of this one's shapes.
    """
    inputs = token_inputs() | type_inputs()
    positions = token_positions(inputs)
    tables = embedding_layers(config, config.types, width=config.embedding_width)
    if tables_of is not None:
        tables = {name: _shared(tables_of, name, table) for name, table in tables.items()}
    x = embedded(config, tables, inputs["token_ids"], positions, inputs["type_ids"])
    if config.embedding_width != config.width:
        matrix = keras.layers.Dense(
            config.width, kernel_initializer=normal(config), name="embedding_projection"
        )
        x = matrix(x)
    outputs = {"hidden": encoder_stack(config, x, positions, inputs["valid"])}
    return keras.Model(inputs, outputs, name="electra")


def _shared(model, name, own):
    """Returns a model's table instead of one's own, of the same rows and columns."""
    table = model.get_layer(name)
    for field in ("vocabulary_size", "context_length", "width"):
        theirs, ours = (getattr(layer, field, None) for layer in (table, own))
        if theirs != ours:
            raise ValueError(
                f"tables_of must have tables of the config's shapes; received one whose {name!r} "
                f"has {field}={theirs}, not {ours}."
            )
    return table
