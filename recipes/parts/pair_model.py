"""The road that the recipes for pairs of texts share: from the pairs to a finished run folder."""

import dataclasses
import hashlib

import keras
from export_model import export_model
from parts.encoder_decoder import SPECIAL_TOKENS
from parts.pair_report import evaluate, write_predictions
from parts.training_run import TrainingSettings, fit, make_model, save_model, train_in_folder

import keras_arch as ka
from keras_arch.checks import check_positive


@dataclasses.dataclass(frozen=True)
class PairModelSettings(TrainingSettings):
    """What every recipe that trains on pairs can be asked.

    A recipe adds `data`, and the methods that raise NotImplementedError.
    """

    vocabulary_size: int = 8000  # Tokens of sources and targets together
    tokens: int = 1536  # Positions of a batch on either side
    patience: int = 4  # Evaluations without improvement before it stops; 0: never
    label_smoothing: float = 0.1  # Probability spread over the vocabulary in the training targets
    beams: int = 5  # Width of the beam search
    length_penalty: float = 1.0  # Its exponent of the length

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        self.check_devices(strategy, strategy.replicas * self.accumulate)
        check_positive(tokens=self.tokens)
        if self.vocabulary_size < 258:
            raise ValueError(
                "vocabulary_size must be at least 258, all bytes, begin and end; received "
                f"vocabulary_size={self.vocabulary_size}."
            )
        self.config(self.vocabulary_size)
        self.search()

    def search(self):
        """Returns the beam search."""
        return ka.generation.BeamSearch(self.beams, length_penalty=self.length_penalty)

    def find_pairs(self):
        """Returns the pairs to train on, to validate on and to test on."""
        raise NotImplementedError

    def source_text(self, source):
        """Returns what the model reads of a source."""
        return source

    def source_end(self, tokenizer):
        """Returns the ids that each source ends with."""
        return []

    def describe(self):
        """Returns what a run can only go on with, besides the pairs: at least "files"."""
        raise NotImplementedError

    def max_new_tokens(self):
        """Returns the most tokens of a prediction."""
        raise NotImplementedError

    def lengths(self):
        """Returns what rows of tokens are padded to."""
        raise NotImplementedError

    def make_tokenizer(self, train):
        """Returns the tokenizer of sources and targets."""
        texts = [*train.sources, *train.targets]
        return ka.text.BytePairTokenizer.train(texts, self.vocabulary_size, SPECIAL_TOKENS)

    def figures(self, model, tokenizer, test, predictions, folder):
        """Returns more figures of the predictions, by the kind of search, and draws what it can."""
        return {}


def main(settings):
    """Trains, or goes on, or prints the report of a finished run."""
    strategy = ka.training.strategy(settings.strategy)
    settings.check(strategy)
    splits = settings.find_pairs()
    train_in_folder(
        settings,
        strategy,
        settings.describe() | {"sha256": digest(splits)},
        lambda folder: run(settings, strategy, folder, splits),
    )


def digest(splits):
    """Returns a SHA-256 of all pairs."""
    found = hashlib.sha256()
    for pairs in splits:
        for texts in pairs:
            found.update("\n".join([*texts, ""]).encode())
    return found.hexdigest()


def run(settings, strategy, folder, splits):
    """Trains in the run folder; the chief worker writes the results and returns the report."""
    ka.training.keep_freed_memory()
    keras.utils.set_random_seed(settings.seed)
    train, validation, test = (
        ka.text.Pairs([*map(settings.source_text, sources)], targets) for sources, targets in splits
    )
    tokenizer = load_tokenizer(settings, strategy.chief, folder, train)
    rows = strategy.replicas * settings.accumulate
    train_batches = batches(settings, tokenizer, train, settings.seed, rows)
    validation_batches = batches(settings, tokenizer, validation, None, rows)
    schedule = settings.schedule()
    model, trained = make_model(settings, strategy, schedule, tokenizer.vocabulary_size)
    progress, row = fit(
        settings,
        strategy,
        folder,
        trained,
        schedule,
        train_batches.dataset,
        validation_batches.dataset(epochs=1),
    )
    if not strategy.chief:
        return None
    save_model(model, progress, folder)
    search, longest = settings.search(), settings.max_new_tokens()
    end = settings.source_end(tokenizer)
    figures, predictions = evaluate(model, tokenizer, test, search, longest, end)
    write_predictions(test, predictions, folder / "predictions.tsv")
    figures |= settings.figures(model, tokenizer, test, predictions, folder)
    export_model(
        folder.path,
        max_new_tokens=longest,
        beams=settings.beams,
        length_penalty=settings.length_penalty,
        source_end=end,
    )
    return ka.training.write_report(
        folder / "report.json",
        model,
        progress,
        seed=settings.seed,
        row=row,
        validation_tokens=sum(map(len, validation_batches.targets)) + len(validation.targets),
        tokens_per_step=settings.tokens,
        replicas=strategy.replicas,
        corpus=folder.settings["corpus"],
        **figures,
    )


def load_tokenizer(settings, chief, folder, train):
    """Returns the tokenizer of sources and targets: the run folder's, or a new one."""
    if folder.has_begun():
        return ka.text.load_tokenizer(folder / "tokenizer")
    tokenizer = settings.make_tokenizer(train)
    if chief:
        tokenizer.save(folder / "tokenizer")
    return tokenizer


def batches(settings, tokenizer, pairs, seed, multiple):
    """Returns the `PairBatches` of a split."""
    return ka.text.PairBatches(
        [tokenizer.encode(text) + settings.source_end(tokenizer) for text in pairs.sources],
        [tokenizer.encode(text) for text in pairs.targets],
        start_id=tokenizer.special_ids["begin"],
        end_id=tokenizer.special_ids["end"],
        tokens=settings.tokens,
        seed=seed,
        multiple=multiple,
        lengths=settings.lengths(),
    )
