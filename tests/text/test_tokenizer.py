"""What every tokenizer must do."""

import functools
import itertools
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_arch.text import load_tokenizer
from tests.text.conftest import MAKERS
from tests.text.texts import DIFFICULT, TEXTS

pytestmark = pytest.mark.once


def encode_all(tokenizer, texts, **options):
    return [tokenizer.encode(text, **options) for text in texts]


def graph_ids(tokenizer, texts, **options):
    return tokenizer.encode_tensor(tf.constant(list(texts), tf.string), **options).to_list()


def graph_texts(tokenizer, ids):
    return [text.decode() for text in tokenizer.decode_tensor(ids).numpy()]


def named_texts(tokenizer):
    """Texts that hold the names of special tokens, and the ids of the names in each."""
    names = list(dict.fromkeys(tokenizer.special_tokens.values()))
    ids = {name: tokenizer.special_ids[role] for role, name in tokenizer.special_tokens.items()}
    pairs = list(itertools.product(names, names))
    texts = [template.format(*pair) for pair in pairs for template in ("{}{}", "a {}b {} c", "{}")]
    return {text: [ids[name] for name in find_names(text, names)] for text in texts}


def find_names(text, names):
    """The names in a text from left to right, found one character after the other."""
    found = []
    while text:
        name = next((name for name in names if text.startswith(name)), None)
        found += [name] if name else []
        text = text[len(name or "x") :]
    return found


# WordPiece loses spaces and case, and Marian's what it does not know; their own tests say what
# comes back.
@pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"word_piece", "marian"}))
def test_decode_undoes_encode(tokenizers, name):
    tokenizer = tokenizers[name]
    assert [tokenizer.decode(ids) for ids in encode_all(tokenizer, TEXTS)] == TEXTS


def test_ids_lie_in_the_vocabulary(tokenizer):
    ids = {token for text in [*TEXTS, "\u10ff never seen"] for token in tokenizer.encode(text)}
    assert min(ids) >= 0
    assert max(ids) < tokenizer.vocabulary_size
    assert all(0 <= token < tokenizer.vocabulary_size for token in tokenizer.special_ids.values())


def test_no_text_gives_a_special_id(tokenizer):
    special = {i for role, i in tokenizer.special_ids.items() if role != "unknown"}
    texts = [*TEXTS, *named_texts(tokenizer)]
    assert special.isdisjoint(itertools.chain(*encode_all(tokenizer, texts)))
    assert special.isdisjoint(itertools.chain(*graph_ids(tokenizer, texts)))


def test_names_of_special_tokens_give_their_ids_when_asked(tokenizer):
    texts = named_texts(tokenizer)
    special = set(tokenizer.special_ids.values()) - {tokenizer.special_ids.get("unknown")}
    for ids in (
        encode_all(tokenizer, texts, parse_special=True),
        graph_ids(tokenizer, texts, parse_special=True),
    ):
        kept = [[token for token in row if token in special] for row in ids]
        assert kept == [[token for token in row if token in special] for row in texts.values()]


def test_the_graph_gives_the_ids_of_python_when_special_tokens_are_parsed(tokenizer):
    texts = [*named_texts(tokenizer), *TEXTS[:200], "\ufffd"]
    expected = encode_all(tokenizer, texts, parse_special=True)
    assert graph_ids(tokenizer, texts, parse_special=True) == expected


def test_parsing_leaves_texts_without_names_alone(tokenizer):
    texts = [text for text in TEXTS[:200] if "<|endoftext|>" not in text]
    assert encode_all(tokenizer, texts, parse_special=True) == encode_all(tokenizer, texts)


def test_special_tokens_decode_to_their_names(tokenizer):
    for role, name in tokenizer.special_tokens.items():
        token = tokenizer.special_ids[role]
        assert tokenizer.decode([token]) == name
        assert graph_texts(tokenizer, tf.constant([[token]])) == [name]


def test_empty_text_has_no_tokens(tokenizer):
    assert tokenizer.encode("") == tokenizer.encode("", parse_special=True) == []
    assert tokenizer.decode([]) == ""


def test_the_graph_gives_the_ids_of_python(tokenizer):
    ids = tf.function(tokenizer.encode_tensor)(tf.constant(TEXTS))
    assert ids.dtype == tf.int32
    assert ids.to_list() == encode_all(tokenizer, TEXTS)


def test_the_first_call_may_come_while_a_graph_is_traced(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    new = load_tokenizer(tmp_path)
    expected = encode_all(tokenizer, TEXTS[:9])
    for encode in (tf.function(new.encode_tensor), new.encode_tensor):
        assert encode(tf.constant(TEXTS[:9])).to_list() == expected
    again = tf.function(lambda texts: new.encode_tensor(texts, parse_special=True))
    assert again(tf.constant(TEXTS[:9])).to_list() == encode_all(
        tokenizer, TEXTS[:9], parse_special=True
    )


def test_the_graph_gives_the_text_of_python(tokenizer):
    ids = encode_all(tokenizer, TEXTS)
    texts = tf.function(tokenizer.decode_tensor)(tf.ragged.constant(ids, tf.int32)).numpy()
    assert [text.decode() for text in texts] == [tokenizer.decode(row) for row in ids]


def test_the_graph_decodes_dense_ids(tokenizer):
    ids = np.random.default_rng(0).integers(tokenizer.vocabulary_size, size=(20, 7))
    texts = graph_texts(tokenizer, tf.constant(ids, tf.int32))
    assert texts == [tokenizer.decode(row) for row in ids]


def test_the_graph_works_in_a_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(list(DIFFICULT)).batch(4)
    batches = list(dataset.map(tokenizer.encode_tensor))
    ids = [row for batch in batches for row in batch.to_list()]
    assert ids == encode_all(tokenizer, DIFFICULT)


def test_the_graph_takes_empty_texts_and_batches(tokenizer):
    for texts in ([], [""], ["", ""], ["", "a", ""]):
        ids = tokenizer.encode_tensor(tf.constant(texts, tf.string))
        assert ids.to_list() == encode_all(tokenizer, texts)
        assert graph_texts(tokenizer, ids) == texts
        assert graph_ids(tokenizer, texts, parse_special=True) == ids.to_list()


def test_the_graph_reads_broken_utf8_as_replacement_characters(tokenizer):
    broken = [b"a\xffb", b"\xc3", b"\xed\xa0\x80"[:1] + b" a"]
    replaced = ["a\ufffdb", "\ufffd", "\ufffd a"]
    for options in ({}, {"parse_special": True}):
        assert graph_ids(tokenizer, broken, **options) == encode_all(tokenizer, replaced)


def test_seeding_between_building_and_calling_does_no_harm(tokenizer):
    encode = tf.function(tokenizer.encode_tensor)
    expected = encode(tf.constant(DIFFICULT)).to_list()
    keras.utils.set_random_seed(1)
    tf.random.set_seed(2)
    assert encode(tf.constant(DIFFICULT)).to_list() == expected
    assert graph_ids(tokenizer, DIFFICULT) == expected


@pytest.mark.parametrize("outside", [-1, 10**7])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, outside):
    with pytest.raises(ValueError, match=rf"received ids\[1\]={outside}"):
        tokenizer.decode([1, outside])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tokenizer.decode_tensor(tf.constant([[1, outside]]))


@pytest.mark.parametrize("text", [None, b"a", ["a", "b"]])
def test_a_text_is_a_string(tokenizer, text):
    with pytest.raises(ValueError, match="text must be a string; received text="):
        tokenizer.encode(text)


@pytest.mark.parametrize("ids", [None, "1", [1.0], [[1]], np.ones(2)])
def test_ids_are_integers(tokenizer, ids):
    with pytest.raises(ValueError, match="ids must be a list of integers; received ids="):
        tokenizer.decode(ids)
    assert tokenizer.decode(np.array([1], "int64")) == tokenizer.decode([1])


def test_a_saved_tokenizer_comes_back(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new" / "tokenizer")
    loaded = load_tokenizer(tmp_path / "new" / "tokenizer")
    assert type(loaded) is type(tokenizer)
    assert loaded.vocabulary_size == tokenizer.vocabulary_size
    assert loaded.special_ids == tokenizer.special_ids
    ids = encode_all(tokenizer, TEXTS)
    assert encode_all(loaded, TEXTS) == ids
    assert [loaded.decode(row) for row in ids] == [tokenizer.decode(row) for row in ids]


def test_every_file_of_a_saved_tokenizer_is_needed_and_whole(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        for damaged in (b"", content[: len(content) // 2], content[:-3], b"\xff" + content):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=path.name):
                load_tokenizer(tmp_path)
        path.unlink()
        with pytest.raises(FileNotFoundError, match=path.name):
            load_tokenizer(tmp_path)
        path.write_bytes(content)
    load_tokenizer(tmp_path)


@pytest.mark.parametrize("value", [None, 3, "end", ["end"], {"end": 3}, {"end": ""}, {"": "x"}])
@pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"characters"}))
def test_special_tokens_of_another_kind_are_refused(tokenizers, tmp_path, name, value):
    tokenizers[name].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "special_tokens": value}))
    with pytest.raises(ValueError, match=f"{tmp_path} holds no .*special_tokens must map"):
        load_tokenizer(tmp_path)


FRESH_PROCESS = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
tf.random.set_seed(1)
answers = {}
for name, texts in json.load(sys.stdin).items():
    encode, decode = getattr(model, name + "_encode"), getattr(model, name + "_decode")
    texts = tf.constant(texts)
    ids = encode(texts)
    assert encode(texts[-1:]).to_list() == ids.to_list()[-1:]
    assert encode(texts[:0]).to_list() == []
    parsed = getattr(model, name + "_parse")(texts)
    decoded = [text.decode() for text in decode(ids).numpy()]
    answers[name] = [ids.to_list(), parsed.to_list(), decoded]
assert not {"keras_arch", "keras_nlp", "keras_hub", "sentencepiece"} & sys.modules.keys()
json.dump(answers, sys.stdout)
"""


def exported_texts(tokenizer):
    # Backwards, so that no text was seen before the export.
    return [*(text[::-1] for text in DIFFICULT), *named_texts(tokenizer)]


@pytest.fixture(scope="module")
def saved_model(tokenizers, tmp_path_factory):
    """A SavedModel of all tokenizers that was moved."""
    module = tf.Module()
    text = tf.TensorSpec([None], tf.string)
    ids = tf.RaggedTensorSpec([None, None], tf.int32)
    for name in MAKERS:
        tokenizer = tokenizers[name]
        parse = functools.partial(tokenizer.encode_tensor, parse_special=True)
        setattr(module, f"{name}_encode", tf.function(tokenizer.encode_tensor, [text]))
        setattr(module, f"{name}_parse", tf.function(parse, [text]))
        setattr(module, f"{name}_decode", tf.function(tokenizer.decode_tensor, [ids]))
        setattr(module, f"{name}_resources", tokenizer.resources)
    folder = tmp_path_factory.mktemp("saved")
    tf.saved_model.save(module, str(folder / "there"))
    return (folder / "there").rename(folder / "here")


@pytest.fixture(scope="module")
def answers(tokenizers, saved_model):
    """What a process with TensorFlow alone answers."""
    texts = {name: exported_texts(tokenizers[name]) for name in MAKERS}
    process = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS, str(saved_model)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.parametrize("name", MAKERS)
def test_a_saved_model_carries_the_tokenizer(tokenizers, answers, name):
    tokenizer = tokenizers[name]
    texts = exported_texts(tokenizer)
    ids, parsed, decoded = answers[name]
    assert ids == encode_all(tokenizer, texts)
    assert parsed == encode_all(tokenizer, texts, parse_special=True)
    assert decoded == [tokenizer.decode(row) for row in ids]


def test_a_saved_model_has_operations_of_tensorflow_and_tensorflow_text_only(saved_model):
    content = (saved_model / "saved_model.pb").read_bytes()
    graph = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].graph_def
    functions = {function.signature.name for function in graph.library.function}
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    operations = {node.op for node in nodes} - functions
    core = {name for name in operations if hasattr(tf.raw_ops, name)}
    assert not {name for name in core if "PyFunc" in name}
    assert operations - core == {
        "FastWordpieceTokenizeWithOffsets",
        "SentencepieceOp",
        "SentencepieceTokenizeOp",
    }
