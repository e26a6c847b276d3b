"""What the recipes for language models share: the kinds of token, the batches, the samples."""

import dataclasses
from typing import Literal

from parts.text_model import TextModelSettings, write_texts

import keras_arch as ka
from keras_arch.checks import check_positive

TOKENIZERS = Literal["characters", "bytes", "words", "byte_pair", "sentence_piece"]


@dataclasses.dataclass(frozen=True)
class LanguageModelSettings(TextModelSettings):
    """What every recipe for language models can be asked."""

    tokenizer: TOKENIZERS = "characters"  # What a token is
    sample_tokens: int = 500  # Tokens of each text
    temperature: float = 0.8  # Temperature of the samples
    top_k: int = 200  # Most probable tokens that the samples choose from

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        check_positive(sample_tokens=self.sample_tokens)
        self.sampler()

    def least_vocabulary(self):
        """Returns the least `vocabulary_size`."""
        return {"byte_pair": 257, "sentence_piece": 260, "words": 6}.get(self.tokenizer, 1)

    def make_tokenizer(self, files):
        """Returns a tokenizer of the texts."""
        return make_tokenizer(self.tokenizer, files, self.vocabulary_size)

    def batches(self, tokenizer, ids, start_step):
        """Returns the batches to train on, from that update on, without end."""
        return ka.text.windows(ids, self.context, self.batch_size, self.seed, start_step)

    def validation(self, tokenizer, ids):
        """Returns the batches to evaluate on."""
        return ka.text.consecutive_windows(
            ids, self.context, self.evaluation_batch_size, tokenizer.vocabulary_size
        )

    def write_samples(self, model, tokenizer, validation_ids, folder):
        """Writes texts longer than the context, each part given the last half context before it."""
        half = self.context // 2
        rows = [tokenizer.encode("\n") for _ in range(self.samples)]
        for start in range(0, self.sample_tokens, half):
            prompts = [row[-half:] for row in rows]
            new = ka.generate(model, prompts, half, sampler=self.sampler(), seed=self.seed + start)
            rows = [row + ids.tolist() for row, ids in zip(rows, new.token_ids, strict=True)]
        write_texts([tokenizer.decode(row[1 : self.sample_tokens + 1]) for row in rows], folder)

    def sampler(self):
        """Returns how the sample texts are drawn."""
        return ka.generation.Sample(
            ka.generation.Temperature(self.temperature), ka.generation.TopK(self.top_k)
        )

    def max_new_tokens(self):
        """Returns how many tokens the SavedModel may write."""
        return self.context // 2

    def figures(self, tokenizer, validation_ids):
        """Returns what `keras_arch.training.write_report` is told of the data."""
        return {
            "validation_tokens": len(validation_ids) - 1,
            "tokens_per_step": self.batch_size * self.context,
            "validation_characters": len(tokenizer.decode(validation_ids[1:])),
        }


def make_tokenizer(name, files, vocabulary_size):
    """Returns a tokenizer of the texts, of one of the kinds that settings name."""
    if name == "characters":
        return ka.text.CharacterTokenizer.from_text(ka.text.read_text(files))
    if name == "bytes":
        return ka.text.ByteTokenizer()
    if name == "words":
        return ka.text.WordPieceTokenizer.from_words(files, vocabulary_size)
    return ka.text.TRAINABLE[name].train(files, vocabulary_size)
