"""Tokenizers of Hugging Face folders give the ids of `transformers`, in Python and in a graph."""

import re

import pytest
import sentencepiece
import tensorflow as tf
from tokenizers import models

import keras_arch as ka
from tests.parity.tokenizer_folders import MAKERS
from tests.text.texts import TEXTS

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.once

ROLES = {
    "begin": "bos_token_id",
    "end": "eos_token_id",
    "unknown": "unk_token_id",
    "pad": "pad_token_id",
    "mask": "mask_token_id",
    "separator": "sep_token_id",
    "classification": "cls_token_id",
}


@pytest.fixture(scope="module", params=MAKERS, ids=lambda maker: maker.__name__)
def pair(request, tmp_path_factory):
    """Theirs, and what we read of their folder."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    theirs = request.param(folder)
    return theirs, ka.text.read_tokenizer(folder)


def special_texts(ours):
    """Texts with names of special tokens."""
    names = dict.fromkeys(ours.special_tokens.values())
    names = [name for name in names if not re.fullmatch(r"<extra_id_\d\d>", name)]
    forms = ("{0}", "a {0} B", "{0}{0}", " \n{0} \u3000{0}x", "xyzzy xyzzy{0}, 12345")
    return [form.format(name) for name in names for form in forms]


def alike(theirs, ours):
    """Texts of which `tokenizers` makes what `sentencepiece` makes, before there are pieces."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=ours.model)
    normalizer = theirs.backend_tokenizer.normalizer
    texts = []
    for text in TEXTS:
        normalized = normalizer.normalize_str(text)
        words = normalized.split()
        if "".join(f"\u2581{word}" for word in words) == processor.normalize(text):
            texts.append(text)
    assert len(texts) > 800
    return texts


def their_ids(theirs, texts, **options):
    return theirs(texts, add_special_tokens=False, **options)["input_ids"]


def our_ids(ours, texts, **options):
    """Ids in Python, which are those in a graph."""
    ids = [ours.encode(text, **options) for text in texts]
    assert ours.encode_tensor(tf.constant(texts), **options).to_list() == ids
    return ids


def test_texts_have_the_same_ids(pair):
    theirs, ours = pair
    is_unigram = isinstance(theirs.backend_tokenizer.model, models.Unigram)
    texts = alike(theirs, ours) if is_unigram else TEXTS
    assert our_ids(ours, texts) == their_ids(theirs, texts, split_special_tokens=True)
    names = special_texts(ours)
    assert our_ids(ours, names, parse_special=True) == their_ids(theirs, names)
    if not is_unigram:  # Theirs takes the name for the token, though it is told not to.
        names = [text for text in names if "<tool_call>" not in text]  # As this one's.
        assert our_ids(ours, names) == their_ids(theirs, names, split_special_tokens=True)


def test_sentence_pieces_are_those_of_the_library(pair):
    _, ours = pair
    if hasattr(ours, "model") and ours.prepend_scheme != "first":
        library = sentencepiece.SentencePieceProcessor(model_proto=ours.model)
        assert [ours.encode(text) for text in TEXTS] == [library.encode(text) for text in TEXTS]


def test_special_tokens_have_the_same_ids(pair):
    theirs, ours = pair
    assert ours.vocabulary_size == len(theirs)
    for role, name in ROLES.items():
        assert ours.special_ids.get(role) == getattr(theirs, name), role
    names = ours.special_tokens
    assert {*names.values()} >= {*theirs.all_special_tokens}
    for role, token in ours.special_ids.items():
        assert theirs.convert_ids_to_tokens(token) == names[role]
        assert ours.decode([token]) == names[role]


def test_it_is_saved_and_loaded(pair, tmp_path):
    _, ours = pair
    ours.save(tmp_path)
    loaded = ka.text.load_tokenizer(tmp_path)
    texts = [*TEXTS[:50], *special_texts(ours)]
    assert our_ids(loaded, texts, parse_special=True) == our_ids(ours, texts, parse_special=True)
