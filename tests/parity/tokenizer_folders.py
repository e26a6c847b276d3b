"""Folders of tokenizers as `transformers`, `tokenizers` and `sentencepiece` write them."""

import base64
import functools
import io
import json

import pytest
import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from tests.text.texts import CORPUS

transformers = pytest.importorskip("transformers")

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def word_pieces(folder, lowercase=True):
    """Writes a `vocab.txt`."""
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    options = {"vocab_size": 4000, "limit_alphabet": 1500, "show_progress": False}
    trainer = trainers.WordPieceTrainer(special_tokens=special, **options)
    learner.train_from_iterator(CORPUS, trainer)
    learner.model.save(str(folder))


def byte_pairs(folder, special, splitter=None, **options):
    """Writes `vocab.json` and `merges.txt`, and returns the tokenizer."""
    learner = tokenizers.Tokenizer(models.BPE(**options))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=splitter is None)
    steps = [splitter, byte_level] if splitter else [byte_level]
    learner.pre_tokenizer = pre_tokenizers.Sequence(steps) if splitter else byte_level
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    learner.train_from_iterator(CORPUS, trainer)
    learner.model.save(str(folder))
    return learner


@functools.cache
def sentence_pieces(**options):
    """A SentencePiece model."""
    model = io.BytesIO()
    lines = "".join(CORPUS).replace("\0", "").split("\n")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for line in lines if line),
        model_writer=model,
        vocab_size=4000,
        hard_vocab_limit=False,
        character_coverage=0.98,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def bert(folder):
    word_pieces(folder)
    return transformers.BertTokenizer.from_pretrained(folder)


def cased_bert(folder):
    word_pieces(folder, lowercase=False)
    config = {
        "do_lower_case": False,
        "strip_accents": True,
        "tokenize_chinese_chars": False,
        "tokenizer_class": "BertTokenizer",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return transformers.BertTokenizer.from_pretrained(folder)


def saved_bert(folder):
    word_pieces(folder)
    theirs = transformers.BertTokenizer.from_pretrained(folder)
    (folder / "vocab.txt").unlink()
    theirs.add_special_tokens({"additional_special_tokens": ["[ENT]"]})
    theirs.save_pretrained(folder)
    return theirs


def gpt2(folder):
    byte_pairs(folder, ["<|endoftext|>"])
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    return transformers.GPT2Tokenizer.from_pretrained(folder)


def saved_roberta(folder):
    byte_pairs(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    mask = tokenizers.AddedToken("<mask>", lstrip=True, special=True)
    theirs = transformers.RobertaTokenizer.from_pretrained(folder, mask_token=mask)
    theirs.save_pretrained(folder)
    return theirs


def saved_llama3(folder):
    splitter = pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated")
    backend = byte_pairs(folder, [], splitter)
    # A word that no merges lead to, as there are some in LLaMA 3's vocabulary.
    model = json.loads(backend.to_str())["model"]
    vocabulary = model["vocab"] | {"\u0120xyzzy": len(model["vocab"])}
    merges = [tuple(pair) for pair in model["merges"]]
    backend.model = models.BPE(vocabulary, merges, ignore_merges=True)
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|begin_of_text|>",
        eos_token="<|end_of_text|>",
        additional_special_tokens=["<|eot_id|>"],
    )
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    theirs.save_pretrained(folder)
    return theirs


def saved_qwen2(folder):
    splitter = pre_tokenizers.Split(tokenizers.Regex(LLAMA3.replace("{1,3}", "")), "isolated")
    backend = byte_pairs(folder, [], splitter)
    backend.normalizer = tokenizers.normalizers.NFC()
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    end = "<|endoftext|>"
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=end, pad_token=end
    )
    options = {"special": False, "normalized": False}
    theirs.add_tokens([tokenizers.AddedToken("<tool_call>", **options)])
    theirs.save_pretrained(folder)
    return theirs


def t5(folder):
    roles = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    (folder / "spiece.model").write_bytes(sentence_pieces(model_type="unigram", **roles))
    (folder / "config.json").write_text('{"model_type": "t5"}')
    return transformers.T5Tokenizer.from_pretrained(folder)


def saved_t5(folder):
    theirs = t5(folder)
    theirs.save_pretrained(folder)
    return theirs


def t5_alone(folder):
    theirs = saved_t5(folder)
    (folder / "spiece.model").unlink()
    return theirs


def xlm_roberta_alone(folder):
    """Its pieces have other ids than in their model, and the mask takes the space before it."""
    content = json.loads(t5(folder).backend_tokenizer.to_str())
    for path in folder.iterdir():
        path.unlink()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [tuple(pair) for pair in content["model"]["vocab"] if pair[1]]
    theirs = transformers.XLMRobertaTokenizer(
        vocab=[*((name, 0.0) for name in special), *pieces, ("<mask>", 0.0)],
        mask_token=tokenizers.AddedToken("<mask>", lstrip=True, special=True),
        _spm_precompiled_charsmap=base64.b64decode(content["normalizer"]["precompiled_charsmap"]),
    )
    theirs.save_pretrained(folder)
    return theirs


def llama2_pieces():
    return sentence_pieces(
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )


def llama2(folder):
    (folder / "tokenizer.model").write_bytes(llama2_pieces())
    theirs = transformers.LlamaTokenizer.from_pretrained(folder)
    # As in the published file; the class writes another, which takes a space before the text away.
    backend = theirs.backend_tokenizer
    backend.normalizer = tokenizers.normalizers.Sequence(
        [
            tokenizers.normalizers.Prepend("\u2581"),
            tokenizers.normalizers.Replace(" ", "\u2581"),
        ]
    )
    content = json.loads(backend.to_str()) | {"pre_tokenizer": None}
    backend = tokenizers.Tokenizer.from_str(json.dumps(content))
    roles = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **roles)
    theirs.save_pretrained(folder)
    return theirs


def llama2_alone(folder):
    theirs = llama2(folder)
    (folder / "tokenizer.model").unlink()
    return theirs


def resaved_llama2_alone(folder):
    """What the class of version 5 makes of the model."""
    (folder / "tokenizer.model").write_bytes(llama2_pieces())
    theirs = transformers.LlamaTokenizer.from_pretrained(folder)
    (folder / "tokenizer.model").unlink()
    theirs.save_pretrained(folder)
    return theirs


def gemma_alone(folder):
    (folder / "tokenizer.model").write_bytes(llama2_pieces())
    llama = transformers.LlamaTokenizer.from_pretrained(folder)
    (folder / "tokenizer.model").unlink()
    model = json.loads(llama.backend_tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    roles = {"bos_token": "<s>", "eos_token": "</s>"}
    theirs = transformers.GemmaTokenizer(vocab=model["vocab"], merges=merges, **roles)
    theirs.save_pretrained(folder)
    return theirs


MAKERS = [
    bert,
    cased_bert,
    saved_bert,
    gpt2,
    saved_roberta,
    saved_llama3,
    saved_qwen2,
    t5,
    saved_t5,
    t5_alone,
    xlm_roberta_alone,
    llama2,
    llama2_alone,
    resaved_llama2_alone,
    gemma_alone,
]
