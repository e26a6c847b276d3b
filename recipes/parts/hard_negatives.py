"""Wrong texts that an encoder takes for right ones, found anew as it learns (Xiong et al. 2021)."""

import collections
import dataclasses
import functools
import importlib.util
from typing import Literal

import numpy as np
from parts.encoder_tuning import EncoderTuningSettings

import keras_arch as ka
from keras_arch.checks import check_count, check_positive


@dataclasses.dataclass(frozen=True)
class HardNegativeSettings(EncoderTuningSettings):
    """What a training on pairs of texts can be asked of hard negatives; it adds `splits`."""

    negatives: int = 0  # Hard negatives of each text, beside those in its batch; 0: none
    negatives_from: int = 100  # Most alike of the wrong texts, that they are drawn from
    refresh_every: int = 500  # Updates between two searches for them
    index: Literal["exact", "hnsw"] = "exact"  # How they are searched; hnsw, by faiss: nearly exact

    def check(self, strategy):
        """Raises ValueError for settings that cannot be trained with."""
        super().check(strategy)
        check_count(negatives=self.negatives)
        if not self.negatives:
            return
        check_positive(refresh_every=self.refresh_every)
        if self.refresh_every % self.evaluate_every:
            raise ValueError(
                "refresh_every must be a multiple of evaluate_every; received "
                f"refresh_every={self.refresh_every}, evaluate_every={self.evaluate_every}."
            )
        if self.index == "hnsw" and importlib.util.find_spec("faiss") is None:
            raise ValueError("index='hnsw' needs faiss: pip install 'keras-arch[search]'.")
        if self.negatives > self.negatives_from:
            raise ValueError(
                "negatives must be at most negatives_from; received "
                f"negatives={self.negatives}, negatives_from={self.negatives_from}."
            )
        needed = {"negatives_from": self.negatives_from, "negatives": self.negatives}
        for path, texts, (name, count) in zip(self.files, self.paired, needed.items(), strict=True):
            if texts.fewest_wrong < count:
                raise ValueError(
                    f"{path} must hold at least {name} wrong texts for each text; received "
                    f"{name}={count}, and one text that has {texts.fewest_wrong}."
                )

    @functools.cached_property
    def paired(self):
        """What the texts are to find, to train on and to evaluate on."""
        return [*map(PairedTexts, self.splits)]

    def stages(self, folder):
        """Returns the settings of the trainings that are left, a search before each.

        A training goes on from the last checkpoint, be it of a stage before or of a killed run.
        """
        if not self.negatives:
            return [self]
        paths = ka.training.Checkpoints(folder / "checkpoints").paths()
        reached = int(paths[-1].name.removeprefix("step-")) if paths else 0
        ends = (*range(self.refresh_every, self.steps, self.refresh_every), self.steps)
        return [dataclasses.replace(self, steps=end) for end in ends if end >= reached]


class PairedTexts:
    """The texts that the first ones of pairs are to find, and which of them are right.

    Args:
        pairs: `ka.text.Pairs`. What stands beside the same source anywhere is right.

    Attributes:
        texts: The second texts, each once.
        right: Of each pair, the numbers of its right ones among `texts`, a set.
    """

    def __init__(self, pairs):
        self.texts = list(dict.fromkeys(pairs.targets))
        number = {text: i for i, text in enumerate(self.texts)}
        right = collections.defaultdict(set)
        for source, target in zip(*pairs, strict=True):
            right[source].add(number[target])
        self.right = [right[source] for source in pairs.sources]

    @property
    def fewest_wrong(self):
        """The wrong texts that each pair has at least."""
        return len(self.texts) - max(map(len, self.right))

    def hardest(self, queries, documents, count, search):
        """Returns of each pair the numbers of the wrong texts most like it, int `[n, count]`.

        Args:
            queries: Unit vectors of the pairs' first texts, float `[n, D]`.
            documents: Those of `texts`.
            count: At most `fewest_wrong`.
            search: `exact_search`, or another. Of less than `count` that it finds some repeat.
        """
        found = search(queries, documents, count + max(map(len, self.right))).tolist()
        return np.array([np.resize(row, count) for row in self._wrong(found, count)], "int32")

    def random(self, count, seed):
        """Returns of each pair the numbers of wrong texts, each once, int `[n, count]`."""
        random, size = np.random.default_rng(seed), len(self.texts)
        drawn = (random.choice(size, count + len(right), replace=False) for right in self.right)
        return np.array(self._wrong(drawn, count), "int32")

    def _wrong(self, rows, count):
        """Returns of rows of numbers, -1 for none, the first that are wrong; at least one."""
        wrong = [
            [i for i in row if i >= 0 and i not in right][:count]
            for row, right in zip(rows, self.right, strict=True)
        ]
        numbers = range(len(self.texts))
        return [
            row or [next(i for i in numbers if i not in right)]
            for row, right in zip(wrong, self.right, strict=True)
        ]


class MinedNegatives:
    """Tables of hard negatives, each searched by the encoder as it is after some updates.

    They lie in the run folder, for a run that goes on between two searches.

    Args:
        folder: The run folder.
        every: Updates between two searches.
        mine: Function that searches, by the encoder as it is, and returns int `[n, count]`.
    """

    def __init__(self, folder, every, mine):
        self.folder, self.every, self.mine = folder, every, mine

    def at(self, step):
        """Returns the table to train with after `step` updates; the encoder is as it is then.

        Raises:
            ValueError: If the table was searched earlier, and is lost.
        """
        searched = step // self.every * self.every
        path = self.folder / f"negatives-{searched:08d}.npy"
        if not path.exists():
            if step != searched:
                raise ValueError(f"{path} is needed to go on after {step} updates; it is missing.")
            with ka.training.replacing(path) as temporary, open(temporary, "wb") as file:
                np.save(file, self.mine())
        return np.load(path)


def exact_search(queries, documents, count):
    """Returns the numbers of the documents most alike, the best first, int `[n, count]`.

    Args:
        queries: Unit vectors, float `[n, D]`.
        documents: Unit vectors, float `[m, D]`.
        count: At most m.
    """
    blocks, size = [], max(1, 2**24 // len(documents))  # 64 MiB of cosines
    for begin in range(0, len(queries), size):
        cosines = queries[begin : begin + size] @ documents.T
        best = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(cosines, best, axis=1), axis=1, kind="stable")
        blocks.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(blocks)


def hnsw_search(queries, documents, count):
    """Does nearly what `exact_search` does, in much less time where there are many documents.

    By faiss, in a graph of neighbours (Malkov & Yashunin 2018). -1 stands for what was not found.
    """
    import faiss

    index = faiss.IndexHNSWFlat(documents.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 200
    index.hnsw.efSearch = max(64, 2 * count)
    index.add(np.ascontiguousarray(documents, "float32"))
    return index.search(np.ascontiguousarray(queries, "float32"), count)[1]


SEARCHES = {"exact": exact_search, "hnsw": hnsw_search}
