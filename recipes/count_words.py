"""Names texts by their words alone: what a fine-tuned encoder has to beat.

    python recipes/count_words.py --data spam/train.tsv --validation-data spam/validation.tsv

A line is a label, a tab and a text, as for finetune_encoder.py. Words and pairs of words, weighed
by how rare they are, in a logistic regression (scikit-learn) with the regularisation that five
folds of the training data choose. `report.json` has the figures of finetune_encoder.py.
"""

import collections
import json
import pathlib
import sys
import time

import numpy as np
import tyro
from parts import class_report
from parts.labelled_texts import Classified
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV

import keras_arch as ka

FOLDS = 5


def count_words(
    data: pathlib.Path = pathlib.Path("train.tsv"),
    validation_data: pathlib.Path = pathlib.Path("validation.tsv"),
    run_folder: pathlib.Path = pathlib.Path("runs/words"),
):
    """Fits, evaluates and writes the report and the plots.

    Args:
        data: What to train on.
        validation_data: What to evaluate on.
        run_folder: Where the report goes.

    Raises:
        ValueError: If a file has another form, the labels or the words are too few to train on, or
            there are labels to evaluate on that none was trained on.
    """
    (texts, labels), (validation_texts, validation_labels) = map(read, (data, validation_data))
    check(labels, validation_labels)
    begin = time.perf_counter()
    words, model = fitted(texts, labels)
    seconds = time.perf_counter() - begin
    names = model.classes_.tolist()
    truth = np.array([names.index(label) for label in validation_labels])
    probabilities = model.predict_proba(words.transform(validation_texts))
    figures = class_report.figures(truth, probabilities, names)
    report = {
        "parameters": model.coef_.size + model.intercept_.size,
        "regularisation": float(model.C_),
        "train_seconds": round(seconds, 3),
        "validation_texts": len(truth),
        **figures,
    }
    run_folder.mkdir(parents=True, exist_ok=True)
    class_report.write_predictions(truth, probabilities, names, run_folder)
    text = json.dumps(report, indent=2)
    ka.training.write_text(run_folder / "report.json", text + "\n")
    print(text)


def check(labels, validation_labels):
    """Raises ValueError if labels are too few to train on, or others to evaluate on."""
    counts = collections.Counter(labels)
    rarest = min(counts, key=counts.get)
    if len(counts) < 2 or counts[rarest] < FOLDS:
        raise ValueError(
            f"data must have two labels or more, each on {FOLDS} lines or more; received "
            f"{len(counts)}, {rarest!r} on {counts[rarest]}."
        )
    unknown = {*validation_labels} - {*labels}
    if unknown:
        raise ValueError(
            f"validation_data must have labels of data; received {sorted(unknown)[0]!r} too."
        )


def fitted(texts, labels):
    """Returns the vectorizer of the words and the model of its vectors.

    Raises:
        ValueError: If the texts share no words.
    """
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    model = LogisticRegressionCV(
        Cs=np.logspace(-1, 4, 6),
        l1_ratios=(0,),
        cv=FOLDS,
        scoring="neg_log_loss",
        max_iter=1000,
        use_legacy_attributes=False,
    )
    try:
        vectors = words.fit_transform(texts)
    except ValueError as error:
        raise ValueError(
            f"data must have words that two of its texts share; received {len(texts)} texts "
            f"without, the first {texts[0]!r}."
        ) from error
    return words, model.fit(vectors, labels)


def read(path):
    """Returns the texts of a file, and the label of each."""
    texts, labels = Classified.read(path)
    return texts, [label for (label,) in labels]


if __name__ == "__main__":
    try:
        tyro.cli(count_words, description=__doc__)
    except (ValueError, OSError) as error:
        sys.exit(f"count_words: {error}")
