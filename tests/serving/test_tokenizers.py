"""Every tokenizer inside an export, against the same tokenizer in Python."""

import keras
import pytest

import keras_arch as ka
from keras_arch.serving.operations import TEXT
from tests.serving.client import ask, ask_by_c

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModels are written from TensorFlow"
)

CORPUS = ["the cat sat on the mat. né 中文 naïve 猫\n" * 20]
TEXTS = ["the cat", "", " a  b\n", "né 中 naïve ☃", "<|endoftext|> [MASK] </s>", "ne\u0301"]


def composing():
    learned = ka.text.BytePairTokenizer.train(CORPUS, 300)
    return ka.text.BytePairTokenizer(learned.vocabulary, learned.merges, composes=True)


def marian():
    model = ka.text.SentencePieceTokenizer.train(CORPUS, 300).model
    vocabulary = ["<unk>", "</s>", "\u2581the", "\u2581cat", "a", "\u2581", "<pad>"]
    return ka.text.MarianTokenizer(model, vocabulary, {"unknown": "<unk>", "end": "</s>"})


MAKERS = {
    "characters": lambda: ka.text.CharacterTokenizer.from_text(CORPUS[0]),
    "bytes": ka.text.ByteTokenizer,
    "unicode": lambda: ka.text.UnicodeTokenizer(0x250),
    "byte_pair": lambda: ka.text.BytePairTokenizer.train(CORPUS, 300),
    "composing": composing,
    "word_piece": lambda: ka.text.WordPieceTokenizer.train(CORPUS, 100),
    "unigram": lambda: ka.text.SentencePieceTokenizer.train(CORPUS, 300),
    "bpe": lambda: ka.text.SentencePieceTokenizer.train(CORPUS, 300, "bpe"),
    "marian": marian,
}
# The others are made of core operations: they are served where tensorflow_text is missing, too.
WITH_TEXT_OPERATIONS = ("composing", "word_piece", "unigram", "bpe", "marian")


def test_there_is_a_case_for_every_tokenizer():
    classes = {type(make()) for make in MAKERS.values()}
    assert classes == {
        value
        for value in vars(ka.text).values()
        if isinstance(value, type) and issubclass(value, ka.text.Tokenizer)
    } - {ka.text.Tokenizer}


@pytest.mark.parametrize("name", MAKERS)
def test_a_moved_export_reads_and_writes_as_in_python(name, tmp_path):
    tokenizer = MAKERS[name]()
    config = ka.models.GPT2Config(
        vocabulary_size=tokenizer.vocabulary_size, width=8, layers=1, heads=2, context_length=64
    )
    model = ka.models.gpt2(config)
    sampler = ka.generation.Sample(ka.generation.Temperature(5.0))
    options = {"sampler": sampler, "bos_id": 1, "max_new_tokens": 16}
    path = ka.serving.export(model, tmp_path / "here", tokenizer, **options)
    assert not ka.serving.foreign_operations(path)
    assert bool(ka.serving.operations(path) & TEXT) == (name in WITH_TEXT_OPERATIONS)
    # What a SavedModel needs must be in its folder: the tokenizer's own is not kept.
    del tokenizer
    (tmp_path / "here").rename(tmp_path / "there")
    numbers = {"seed": 3, "max_new_tokens": 16, "temperature": 5.0}
    requests = ("generate", {"text": TEXTS, **numbers}), ("score", {"text": TEXTS})
    generated, scored = ask(tmp_path / "there" / "1", *requests)
    tokenizer = MAKERS[name]()
    expected = ka.generate(model, TEXTS, **options, seed=3, tokenizer=tokenizer)
    assert generated["text"] == expected.texts
    lengths = [len(tokenizer.encode(text)) for text in TEXTS]
    assert scored["token_count"] == lengths
    rows = ask_by_c(tmp_path / "there", "--signature", "score", "--text", TEXTS[3])
    assert [row["token_count"] for row in rows] == lengths[3:4]
