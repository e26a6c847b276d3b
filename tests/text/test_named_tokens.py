import json

import pytest

from keras_arch.text.named_tokens import read_named_tokens

pytestmark = pytest.mark.once

VOCABULARY = ["<s>", "</s>", "a"]


def named(folder, config=None, names=None, added=None, tokens=()):
    for name, content in (
        ("tokenizer_config.json", config),
        ("special_tokens_map.json", names),
        ("added_tokens.json", added),
    ):
        if content is not None:
            (folder / name).write_text(json.dumps(content))
    return read_named_tokens(folder, tokens)


def test_roles_come_from_both_files(tmp_path):
    config = {"bos_token": "<s>", "pad_token": None, "tokenizer_class": "GPT2TokenizerFast"}
    found = named(tmp_path, config, {"eos_token": {"content": "</s>", "lstrip": False}})
    assert found.roles == {"begin": "<s>", "end": "</s>"}
    assert found.kind == "gpt2"
    assert found.complete(VOCABULARY, True, None) == (VOCABULARY, found.roles)


@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", "TokenizersBackend", None])
def test_a_class_that_says_nothing_leaves_it_to_the_model(tmp_path, name):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert named(tmp_path, {"tokenizer_class": name}).kind == "llama"


def test_tokens_behind_the_vocabulary(tmp_path):
    tokens = [{"id": 4, "content": "<extra_id_0>", "special": True}]
    added = {"5": {"content": "<x>", "special": True, "lstrip": True}}
    found = named(tmp_path, {"added_tokens_decoder": added}, added={"+s": 3}, tokens=tokens)
    with pytest.raises(ValueError, match=r"'\+s' with \['special=false'\]"):
        found.complete(["</s>", "a", "b"], True, None)
    found = found._replace(special=[*found.special, "+s"])
    tokens, special = found.complete(["</s>", "a", "b"], True, 7)
    assert tokens == ["</s>", "a", "b", "+s", "<extra_id_0>", "<x>", "<|unused_6|>"]
    unused = {"<|unused_6|>": "<|unused_6|>"}
    assert special == {"sentinel_0": "<extra_id_0>", "<x>": "<x>", "+s": "+s", **unused}
    assert found.taking_space() == ["<x>"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rstrip": True}, r"received '<x>' with \['rstrip'\]"),
        ({"single_word": True}, r"with \['single_word'\]"),
        ({"content": "x", "special": False}, r"'x' with \['special=false'\]"),
        ({"content": "<x y>", "special": False}, r"'<x y>' with \['special=false'\]"),
        ({"normalized": True}, r"with \['normalized'\]"),
        ({"id": 9}, "'<x>' with id 9, and ids up to 2"),
        ({"id": 0}, "'<x>' with id 0"),
    ],
)
def test_tokens_found_in_another_way_are_refused(tmp_path, fields, message):
    token = {"id": 3, "content": "<x>", "special": True, **fields}
    with pytest.raises(ValueError, match=message):
        named(tmp_path, tokens=[token]).complete(VOCABULARY, True, None)


def test_markup_is_special_whatever_its_file_says(tmp_path):
    token = {"id": 3, "content": "<tool_call>", "special": False}
    found = named(tmp_path, tokens=[token])
    assert found.complete(VOCABULARY, True, None)[1] == {"<tool_call>": "<tool_call>"}


def test_where_nothing_is_normalized_it_does_not_matter(tmp_path):
    token = {"id": 3, "content": "<x>", "special": True, "normalized": True}
    tokens, _ = named(tmp_path, tokens=[token]).complete(VOCABULARY, False, None)
    assert tokens == [*VOCABULARY, "<x>"]


def test_contradictions_are_refused(tmp_path):
    with pytest.raises(ValueError, match="the eos_token '</s>' and '<s>'"):
        named(tmp_path, {"eos_token": "</s>"}, {"eos_token": "<s>"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"pad_token": "<pad>"}, r"must have ids; received \['<pad>'\]"),
        ({"eos_token": "</s>", "extra_special_tokens": ["end"]}, "the name of a role; .* 'end'"),
    ],
)
def test_special_tokens_need_ids_and_names_of_their_own(tmp_path, config, message):
    with pytest.raises(ValueError, match=message):
        named(tmp_path, config).complete(VOCABULARY, True, None)
