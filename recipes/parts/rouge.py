"""ROUGE: how many words, and pairs of words, of a reference a text has, and the reverse."""

import re

from rouge_score import rouge_scorer

KINDS = ("rouge1", "rouge2", "rougeL")


class Words:
    """Words in small letters. Those of `rouge_score` itself are of English letters alone."""

    def tokenize(self, text):
        """Returns the words of a text."""
        return re.findall(r"[^\W_]+", text.lower())


def rouge(texts, references):
    """Returns the mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L in percent, by kind; without stemming.

    Source: Lin 2004; L over the whole text, without sentences.
    """
    scorer = rouge_scorer.RougeScorer(KINDS, tokenizer=Words())
    scores = [scorer.score(*pair) for pair in zip(references, texts, strict=True)]
    return {
        kind: round(100 * sum(s[kind].fmeasure for s in scores) / len(scores), 2) for kind in KINDS
    }
