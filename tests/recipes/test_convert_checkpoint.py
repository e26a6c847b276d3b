import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

import keras_arch as ka
from keras_arch.text.byte_symbols import SYMBOLS
from recipes.convert_checkpoint import convert
from recipes.export_model import export_model
from tests.checkpoints.hand_made import in_any_order, tensors, write
from tests.serving.client import ask

pytestmark = pytest.mark.once

PROJECT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "given").mkdir()
    return write(tmp_path / "given", tensors(), alibi=True)


def test_there_and_back(folder, tmp_path, capsys):
    convert(folder, tmp_path / "my.keras", dropout=0.1, ignore_fields=("alibi",))
    assert "tokens/table <- transformer.wte.weight" in capsys.readouterr().out
    convert(tmp_path / "my.keras", tmp_path / "back", fields='{"eos_token_id": 7}')
    assert f"Converted to {tmp_path / 'back'}." in capsys.readouterr().out
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert (config["resid_pdrop"], config["eos_token_id"]) == (0.1, 7)
    found = load_file(tmp_path / "back" / "model.safetensors")
    for name, tensor in tensors().items():
        np.testing.assert_array_equal(found[name], tensor)


def test_a_file_is_there_as_a_whole_or_not_at_all(folder, tmp_path, monkeypatch):
    output = tmp_path / "new" / "folder" / "my.keras"

    def half(self, path):
        pathlib.Path(path).write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(keras.Model, "save", half)
        with pytest.raises(KeyboardInterrupt):
            convert(folder, output, ignore_fields=("alibi",))
    assert not any(output.parent.iterdir())
    convert(folder, output, ignore_fields=("alibi",))
    assert keras.saving.load_model(output).count_params() > 0


def test_the_tokenizer_goes_along_and_serves(tmp_path, capsys):
    given = tmp_path / "given"
    given.mkdir()
    vocabulary = ["<|endoftext|>", *SYMBOLS, "he"]
    shapes = tensors()
    shapes["transformer.wte.weight"] = np.ones((len(vocabulary), 8), "float32")
    write(given, shapes, vocab_size=len(vocabulary))
    (given / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(vocabulary)}))
    (given / "merges.txt").write_text("#version: 0.2\nh e\n")
    convert(given, tmp_path / "model.keras")
    written = tmp_path / "tokenizer"
    assert f"byte_pair of 258 tokens: {written}." in capsys.readouterr().out
    tokenizer = ka.text.load_tokenizer(written)
    assert tokenizer.encode("<|endoftext|>he", parse_special=True) == [0, 257]
    assert tokenizer.special_ids["end"] == 0
    export_model(tmp_path, max_new_tokens=2)
    (answer,) = ask(tmp_path / "export" / "1", ("serving_default", {"text": ["he"]}))
    (ids,) = answer["token_ids"]
    assert answer["text"] == [tokenizer.decode(ids)]


def test_the_names_of_classes_go_along_and_back(tmp_path, capsys):
    shape = {"vocabulary_size": 9, "width": 8, "layers": 1, "heads": 2, "context_length": 6}
    encoder = ka.models.distilbert(ka.models.DistilBERTConfig(**shape))
    model = ka.models.token_classification(encoder, 2)
    ka.checkpoints.save(model, tmp_path / "given", labels=["O", "FARBE"])
    convert(tmp_path / "given", tmp_path / "model.keras", head="token_classification")
    names = tmp_path / "labels.txt"
    assert f"The names of its 2 classes: {names}." in capsys.readouterr().out
    assert names.read_text() == "O\nFARBE\n"
    convert(tmp_path / "given", tmp_path / "again.keras", head="token_classification")
    assert f"{names} is there already" in capsys.readouterr().out
    convert(tmp_path / "model.keras", tmp_path / "back")
    configs = [(tmp_path / x / "config.json").read_text() for x in ("given", "back")]
    assert configs[0] == configs[1]


def test_both_tokenizers_of_a_translator_go_along_and_serve(tmp_path, capsys, monkeypatch):
    """With a T5's weights, which any tokenizers of as many tokens do for."""
    learned = [ka.text.SentencePieceTokenizer.train([x * 9], 300) for x in ("ab ", "ba ")]
    pieces = ["\u2581", "a", "b", "ab", "ba", "\u2581a", "\u2581b", "\u2581ab", "\u2581ba"]
    vocabulary = ["</s>", "<unk>", *pieces, "<pad>"]
    shape = {"vocabulary_size": 12, "width": 8, "encoder_layers": 1, "decoder_layers": 1}
    config = ka.models.T5Config(**shape, heads=2)
    given = tmp_path / "given"
    ka.checkpoints.save(ka.models.t5(config), given)
    for side, model in zip(("source", "target"), learned, strict=True):
        (given / f"{side}.spm").write_bytes(model.model)
    (given / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(vocabulary)}))
    convert(given, tmp_path / "model.keras")
    source, target = (tmp_path / name for name in ("source_tokenizer", "tokenizer"))
    said = capsys.readouterr().out
    assert all(f"marian of 12 tokens: {folder}." in said for folder in (source, target))
    tokenizers = [ka.text.load_tokenizer(folder) for folder in (source, target)]
    assert [tokenizer.model for tokenizer in tokenizers] == [model.model for model in learned]
    assert tokenizers[1].start_id == vocabulary.index("<pad>")
    exported = {}
    monkeypatch.setattr(ka.serving, "export", lambda *_, **options: exported.update(options))
    export_model(tmp_path, source_end=(0,))
    assert exported["source_tokenizer"].model == learned[0].model
    assert exported["source_edges"] == ((), (0,))


def test_a_tokenizer_that_is_not_written_is_spoken_of(folder, tmp_path, capsys):
    convert(folder, tmp_path / "my.keras", ignore_fields=("alibi",))
    assert "No tokenizer written" in capsys.readouterr().out
    assert not (tmp_path / "tokenizer").exists()
    (folder / "vocab.txt").write_text("[UNK]\n")
    (tmp_path / "tokenizer").mkdir()
    convert(folder, tmp_path / "other.keras", ignore_fields=("alibi",))
    assert f"{tmp_path / 'tokenizer'} is there already" in capsys.readouterr().out
    assert not any((tmp_path / "tokenizer").iterdir())


def test_faults_are_one_line(folder, tmp_path):
    command = [sys.executable, str(PROJECT / "recipes" / "convert_checkpoint.py"), str(folder)]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "my.keras")],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "convert_checkpoint: config.json has fields that are not known here" in done.stderr
    assert not (tmp_path / "my.keras").exists()


@pytest.mark.parametrize(
    ("source", "output", "options", "words"),
    [
        ("given", "new", {}, ["one must be a .keras file"]),
        ("a.keras", "b.keras", {}, ["one must be a .keras file"]),
        ("a.keras", "new", {}, ["source must be there", "a.keras"]),
        ("given", "b.keras", {"fields": '{"a": 1}'}, ["fields={"]),
        ("given", "there.keras", {}, ["must not be there yet", "there.keras"]),
        ("given", "b.keras", {"head": "masked_lm"}, ["[None] for gpt2", "head='masked_lm'"]),
        ("there.keras", "new", {"dropout": 0.1}, ["dropout=0.1"]),
        ("there.keras", "new", {"fields": "{"}, ["JSON object", "fields='{'"]),
        ("there.keras", "new", {"fields": "[1]"}, ["JSON object", "fields='[1]'"]),
        ("there.keras", "new", {"head": "masked_lm"}, ["head='masked_lm'"]),
    ],
)
def test_what_makes_no_sense_is_refused(source, output, options, words, folder, tmp_path):
    (tmp_path / "there.keras").touch()
    with pytest.raises(ValueError, match=in_any_order(*words)):
        convert(tmp_path / source, tmp_path / output, **options)


def test_its_command_line_is_the_tools_too():
    tool = (PROJECT / "tools" / "convert").read_text(encoding="utf-8")
    assert 'exec "$python" "$repository/recipes/convert_checkpoint.py"' in tool
