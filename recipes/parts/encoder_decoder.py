"""What the recipes that pretrain T5 and BART, and that fine-tune them, build."""

import dataclasses
from typing import Literal

import keras_arch as ka

#: Role -> name, of the special tokens that every such model has.
SPECIAL_TOKENS = {"begin": "<s>", "end": "</s>"}


@dataclasses.dataclass(frozen=True)
class EncoderDecoderSettings:
    """The shape of an encoder-decoder, whatever it is trained on."""

    model: Literal["t5", "bart"] = "t5"  # Kind of model
    width: int = 256  # Width of the residual stream
    layers: int = 3  # Blocks of the encoder, and of the decoder
    heads: int = 4  # Attention heads; divide the width
    initializer_range: float = 0.05  # Deviation of the initial matrices and tables
    context: int = 128  # Most tokens of a source, and of a target with its end
    dropout: float = 0.1  # Dropout rate

    def config(self, vocabulary_size):
        """Returns the model's configuration."""
        config_class, _ = ka.models.catalog[self.model]
        positions = {"context_length": self.context} if self.model == "bart" else {}
        return config_class(
            vocabulary_size=vocabulary_size,
            width=self.width,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            heads=self.heads,
            dropout=self.dropout,
            initializer_range=self.initializer_range,
            **positions,
        )

    def source_end(self, tokenizer):
        """Returns the ids that each source ends with, as T5's and BART's do."""
        return [tokenizer.special_ids["end"]]
