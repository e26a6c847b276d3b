import io
import subprocess
import sys

import pytest
import sentencepiece
import tensorflow as tf

from keras_arch.text import SentencePieceTokenizer, load_tokenizer
from tests.text.texts import CORPUS, TEXTS

pytestmark = pytest.mark.once

ALGORITHMS = ("unigram", "bpe")
LINES = ["the fox and the hound", "the hound ate the fox [MASK] <x>", "caf\u00e9"] * 5


def published_model(**options):
    """A model as others train them: NFKC, spaces joined, a space before the text, no bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"vocab_size": 60, **options},
    )
    return model.getvalue()


@pytest.fixture(params=ALGORITHMS)
def trained(request, tokenizers):
    return tokenizers[request.param]


def test_ids_are_those_of_the_library(trained):
    library = sentencepiece.SentencePieceProcessor(model_proto=trained.model)
    texts = [text for text in TEXTS if "\u2581" not in text]
    assert [trained.encode(text) for text in texts] == [library.encode(text) for text in texts]


def test_the_symbol_for_spaces_is_not_a_space(trained):
    text = "a\u2581 \u2581\u2581b"
    ids = trained.encode(text)
    assert trained.decode(ids) == text
    assert trained.encode_tensor(tf.constant([text])).to_list() == [ids]
    assert ids != trained.encode(text.replace("\u2581", " "))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_learns_pieces_of_words_and_spells_the_rest_in_bytes(algorithm):
    tokenizer = SentencePieceTokenizer.train(["low lower lowest low " * 20], 300, algorithm)
    assert len(tokenizer.encode("lower")) < len("lower")
    assert len(tokenizer.encode("\u4e2d")) == len("\u4e2d".encode())


def test_special_ids_come_first_in_their_order():
    assert SentencePieceTokenizer.train(LINES, 300).special_ids == {
        "unknown": 0,
        "begin": 1,
        "end": 2,
    }
    special = {"pad": "<pad>", "end": "</s>", "mask": "[MASK]", "separator": "</s>"}
    tokenizer = SentencePieceTokenizer.train(LINES, 300, special_tokens=special)
    assert tokenizer.special_ids == {
        "unknown": 0,
        "pad": 1,
        "end": 2,
        "mask": 3,
        "separator": 2,
    }
    text = "fox [MASK]</s>"
    assert not {1, 2, 3} & set(tokenizer.encode(text))
    assert tokenizer.encode(text, parse_special=True) == [*tokenizer.encode("fox "), 3, 2]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_is_the_same_in_every_process_and_streams_files(tmp_path, algorithm):
    path = tmp_path / "a.txt"
    path.write_bytes(CORPUS[0].encode())
    options = {"algorithm": algorithm, "character_coverage": 0.98}
    from_text = SentencePieceTokenizer.train([CORPUS[0]], 4000, **options)
    assert SentencePieceTokenizer.train([path], 4000, **options).model == from_text.model
    program = (
        "import pathlib, sys\n"
        "import tensorflow\n"
        "from keras_arch.text import SentencePieceTokenizer\n"
        f"options = {options}\n"
        "path, folder = map(pathlib.Path, sys.argv[1:])\n"
        "SentencePieceTokenizer.train([path], 4000, **options).save(folder)\n"
    )
    command = [sys.executable, "-c", program, path, tmp_path / "saved"]
    subprocess.run(command, check=True, capture_output=True)
    assert load_tokenizer(tmp_path / "saved").model == from_text.model


def test_long_lines_are_not_dropped():
    line = "x" * 5000 + " ".join(f"{i:05d}" for i in range(2000))
    tokenizer = SentencePieceTokenizer.train([line], 300)
    in_bytes = [3 + ord(digit) for digit in "7"]
    assert tokenizer.encode("7") != in_bytes


class TestPublishedModel:
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_ids_are_those_of_the_library(self, algorithm):
        model = published_model(model_type=algorithm)
        library = sentencepiece.SentencePieceProcessor(model_proto=model)
        tokenizer = SentencePieceTokenizer(model)
        texts = [*TEXTS[:300], *LINES]
        ids = [tokenizer.encode(text) for text in texts]
        assert ids == [library.encode(text) for text in texts]
        assert tokenizer.encode_tensor(tf.constant(texts)).to_list() == ids

    def test_the_space_before_the_text_goes_again(self):
        tokenizer = SentencePieceTokenizer(published_model())
        ids = tokenizer.encode("  the   fox ")
        assert tokenizer.decode(ids) == "the fox"
        assert tokenizer.decode_tensor(tf.constant([ids])).numpy()[0] == b"the fox"
        assert tokenizer.decode_tensor(tf.ragged.constant([[], ids], tf.int32)).numpy()[0] == b""

    def test_roles_come_from_the_model(self):
        tokenizer = SentencePieceTokenizer(published_model())
        assert tokenizer.special_tokens == {"unknown": "<unk>", "begin": "<s>", "end": "</s>"}
        assert tokenizer.special_ids == {"unknown": 0, "begin": 1, "end": 2}
        model = published_model(pad_id=0, unk_id=1, bos_id=-1, eos_id=2)
        assert SentencePieceTokenizer(model).special_ids == {"pad": 0, "unknown": 1, "end": 2}

    @pytest.mark.parametrize("kind", ["user_defined_symbols", "control_symbols"])
    def test_named_pieces_are_special_whatever_their_kind(self, kind):
        model = published_model(**{kind: ["[MASK]", "<x>"]})
        tokenizer = SentencePieceTokenizer(model, {"mask": "[MASK]"})
        mask = tokenizer.special_ids["mask"]
        text = "the [MASK] fox"
        assert mask not in tokenizer.encode(text)
        assert mask not in tokenizer.encode_tensor(tf.constant([text])).to_list()[0]
        parsed = [*tokenizer.encode("the "), mask, *tokenizer.encode(" fox")]
        assert tokenizer.encode(text, parse_special=True) == parsed
        assert tokenizer.encode_tensor(tf.constant([text]), True).to_list() == [parsed]
        # What nobody named stays as the model has it.
        library = sentencepiece.SentencePieceProcessor(model_proto=model)
        assert tokenizer.encode("a <x>") == library.encode("a <x>")

    def test_the_named_pieces_are_kept(self, tmp_path):
        tokenizer = SentencePieceTokenizer(
            published_model(user_defined_symbols=["[MASK]"]), {"mask": "[MASK]"}
        )
        tokenizer.save(tmp_path)
        loaded = load_tokenizer(tmp_path)
        assert loaded.model == tokenizer.model
        assert loaded.special_ids == tokenizer.special_ids
        assert loaded.encode("the [MASK]") == tokenizer.encode("the [MASK]")

    def test_a_file_beside_a_written_settings_file_loads(self, tmp_path):
        (tmp_path / "sentencepiece.model").write_bytes(published_model())
        (tmp_path / "tokenizer.json").write_text('{"tokenizer": "sentence_piece"}')
        tokenizer = load_tokenizer(tmp_path)
        assert tokenizer.decode(tokenizer.encode("the fox")) == "the fox"

    def test_a_name_that_is_no_piece_is_refused(self):
        with pytest.raises(ValueError, match=r"pieces of the model; received \['\[MASK\]'\]"):
            SentencePieceTokenizer(published_model(), {"mask": "[MASK]"})


@pytest.mark.parametrize(
    ("scheme", "texts"),
    [
        (
            "first",
            {"a": " a", " a": " a", "\u2581a": " a", "": "", "<s>a": "<s>a", "a<s>a": " a<s>a"},
        ),
        ("always", {"a": " a", " a": " a", "": "", "<s>a": "<s> a", "a<s>\u2581a": " a<s> a"}),
        ("never", {"a": "a", " a": " a", "\u2581a": " a", "a<s>a": "a<s>a"}),
    ],
)
def test_a_space_comes_where_the_scheme_says(tokenizers, tmp_path, scheme, texts):
    SentencePieceTokenizer(tokenizers["bpe"].model, prepend_scheme=scheme).save(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    ids = [tokenizer.encode(text, parse_special=True) for text in texts]
    # The model itself puts no space anywhere.
    assert ids == [tokenizers["bpe"].encode(text, parse_special=True) for text in texts.values()]
    assert tokenizer.encode_tensor(tf.constant([*texts]), True).to_list() == ids
    plain = [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_tensor(tf.constant([*texts])).to_list() == plain
    decoded = tokenizer.decode(tokenizer.encode("a <s> b"))
    assert decoded == "a <s> b"


def test_an_unknown_scheme_is_refused(tokenizers):
    with pytest.raises(ValueError, match=r"one of .* received prepend_scheme='last'"):
        SentencePieceTokenizer(tokenizers["bpe"].model, prepend_scheme="last")


def test_what_is_no_model_is_refused():
    model = published_model()
    for wrong in (
        b"",
        b"\x12\x00",
        b"\xff" * 20,
        b"text",
        model[: len(model) // 2],
        model[:-1],
        model[5:],
    ):
        with pytest.raises(ValueError, match="must be a SentencePiece model; received"):
            SentencePieceTokenizer(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 259}, r"at least 260, .* received vocabulary_size=259"),
        ({"vocabulary_size": 261}, "cannot train on these sources: .*required_chars"),
        ({"sources": "abc"}, "must be a list of texts and paths; received 'abc'"),
        ({"sources": []}, "must hold some text"),
        ({"sources": ["\n\n"]}, "cannot train on these sources"),
        ({"algorithm": "word"}, "algorithm must be one of .* received 'word'"),
        ({"character_coverage": 0.5}, "received character_coverage=0.5"),
        ({"character_coverage": 1.1}, "received character_coverage=1.1"),
        ({"special_tokens": {"end": ""}}, "must map roles to names"),
    ],
)
def test_wrong_training_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(**{"sources": LINES, "vocabulary_size": 300, **arguments})
