"""Counts the n-grams of a text, smoothed by Kneser and Ney: what a neural model has to beat.

    python recipes/count_ngrams.py --data my.txt --order 6 --run-folder runs/counted

The text is split as by the recipes that train; `report.json` has the same figures.
"""

import json
import math
import pathlib
import sys
import time

import tyro
from parts.language_model import TOKENIZERS, make_tokenizer
from parts.text_model import describe, split_text

import keras_arch as ka


def count_ngrams(
    run_folder: pathlib.Path = pathlib.Path("runs/counted"),
    data: str = "shakespeare",
    tokenizer: TOKENIZERS = "characters",
    vocabulary_size: int = 1024,
    order: int = 6,
):
    """Counts, evaluates on the last tenth of the text and writes the report.

    Args:
        run_folder: Where the report goes.
        data: A text file, a folder of .txt files, "shakespeare" or "python-docs".
        tokenizer: What a token is.
        vocabulary_size: Most tokens; not for characters and bytes.
        order: Tokens of an n-gram, with the one predicted.

    Raises:
        ValueError: If there is no such text, or a number is out of range.
    """
    files = ka.text.find_corpus(data)
    tokens = make_tokenizer(tokenizer, files, vocabulary_size)
    train_ids, validation_ids = split_text(files, tokens)
    begin = time.perf_counter()
    model = ka.analysis.KneserNey(train_ids, order, tokens.vocabulary_size)
    seconds = time.perf_counter() - begin
    # The first token is no target, as in the recipes that train.
    nats = float(model.nats(validation_ids)[1:].mean())
    characters = len(tokens.decode(validation_ids[1:]))
    report = {
        "order": order,
        "parameters": model.parameters,
        "train_seconds": round(seconds, 3),
        "validation_loss": nats,
        "validation_tokens": len(validation_ids) - 1,
        "perplexity": math.exp(nats),
        "bits_per_character": nats * (len(validation_ids) - 1) / (characters * math.log(2)),
        "validation_characters": characters,
        "corpus": describe(files),
    }
    run_folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=2)
    ka.training.write_text(run_folder / "report.json", text + "\n")
    print(text)


if __name__ == "__main__":
    try:
        tyro.cli(count_ngrams, description=__doc__)
    except (ValueError, OSError) as error:
        sys.exit(f"count_ngrams: {error}")
