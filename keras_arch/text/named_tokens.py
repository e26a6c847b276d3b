"""The special tokens that the files of a Hugging Face folder name, with their roles and ids."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_arch.text.files import read_json
from keras_arch.text.special_tokens import END_OF_TEXT
from keras_arch.text.word_piece import BERT_TOKENS

CONFIG_FILE = "tokenizer_config.json"
MAP_FILE = "special_tokens_map.json"
ADDED_FILE = "added_tokens.json"
ROLES = {
    "unk_token": "unknown",
    "bos_token": "begin",
    "eos_token": "end",
    "pad_token": "pad",
    "mask_token": "mask",
    "sep_token": "separator",
    "cls_token": "classification",
}
ROBERTA_TOKENS = {
    "unknown": "<unk>",
    "begin": "<s>",
    "end": "</s>",
    "pad": "<pad>",
    "mask": "<mask>",
    "separator": "</s>",
    "classification": "<s>",
}
#: Kind of folder -> the roles that go without saying. Source: the classes of `transformers`.
DEFAULTS = {
    "bert": BERT_TOKENS,
    "distilbert": BERT_TOKENS,
    "electra": BERT_TOKENS,
    "roberta": ROBERTA_TOKENS,
    "bart": ROBERTA_TOKENS,
    "gpt2": dict.fromkeys(("unknown", "begin", "end"), END_OF_TEXT["end"]),
    "t5": {"unknown": "<unk>", "end": "</s>", "pad": "<pad>"},
    "marian": {"unknown": "<unk>", "end": "</s>", "pad": "<pad>"},
}
# Their names say nothing of what they do.
ANY_KIND = ("", "pretrained", "pretrainedtokenizer", "tokenizersbackend")
SENTINEL = re.compile(r"<extra_id_(\d+)>")
# Added tokens that need not be special by their files: Qwen2's <tool_call>.
MARKUP = re.compile(r"<\S+>")


class NamedTokens(NamedTuple):
    """What the files name.

    Attributes:
        kind: What kind of tokenizer they say it is, such as "bert"; or None.
        config: The content of `tokenizer_config.json`.
        roles: Role to name.
        special: Names of the special tokens, with a role or without.
        added: Id to the fields of a token that was added to the vocabulary, `"content"` its name.
    """

    kind: str | None
    config: dict
    roles: dict[str, str]
    special: list[str]
    added: dict[int, dict]

    def complete(
        self, vocabulary: Sequence[str], has_normalizer: bool, size: int | None
    ) -> tuple[list[str], dict[str, str]]:
        """Returns all tokens by id, and role to name of the special ones among them.

        A sentinel of T5, `<extra_id_3>`, has the role `sentinel_3`; what else has no role of its
        own has its name for a role.

        Args:
            vocabulary: Tokens by id, without those that were added.
            has_normalizer: Whether texts are normalized; added tokens must be found before that.
            size: Number of tokens, which others fill up that no text gives; None: no more.

        Raises:
            ValueError: If a special token has no id, there are more than `size`, or an added token
                has another id than its name or is looked for in a way that is not ours.
        """
        tokens = [*vocabulary]
        for i, fields in sorted(self.added.items()):
            name = fields["content"]
            if i == len(tokens):
                tokens.append(name)
            if i > len(tokens) or name != tokens[i]:
                raise ValueError(
                    "added tokens must have the ids that follow the vocabulary, or those of their "
                    f"names in it; received {name!r} with id {i}, and ids up to {len(tokens) - 1}."
                )
            self._check(fields, has_normalizer)
        unused = [f"<|unused_{i}|>" for i in range(len(tokens), size or 0)]
        tokens += unused
        if size is not None and len(tokens) > size:
            raise ValueError(
                "vocabulary_size must be at least the number of tokens; received "
                f"vocabulary_size={size} and {len(tokens)} tokens."
            )
        return tokens, self._special_tokens(tokens, unused)

    def taking_space(self) -> list[str]:
        """Returns the names of the special tokens that take the white space before them."""
        return [fields["content"] for fields in self.added.values() if fields.get("lstrip")]

    def refuse(self, **fields) -> None:
        """Raises ValueError if `tokenizer_config.json` has a field with another of these values."""
        for name, values in fields.items():
            if self.config.get(name) not in (None, *values):
                raise ValueError(
                    f"{CONFIG_FILE} must have {name} of {[*values]}, which is all that can be done "
                    f"here; received {name}={self.config[name]!r}."
                )

    def _special_tokens(self, tokens, more):
        known = set(tokens)
        defaults = {r: name for r, name in DEFAULTS.get(self.kind, {}).items() if name in known}
        special = defaults | self.roles
        for name in (*self.special, *more):
            if name not in special.values():
                sentinel = SENTINEL.fullmatch(name)
                role = f"sentinel_{sentinel[1]}" if sentinel else name
                if special.setdefault(role, name) != name:
                    raise ValueError(
                        f"special tokens must not have the name of a role; received {name!r}."
                    )
        missing = [name for name in special.values() if name not in known]
        if missing:
            raise ValueError(f"special tokens must have ids; received {missing} without one.")
        return special

    def _check(self, fields, has_normalizer):
        wrong = [name for name in ("rstrip", "single_word") if fields.get(name)]
        if not fields.get("special") and fields["content"] not in self.special:
            wrong.append("special=false")
        if fields.get("normalized") and has_normalizer:
            wrong.append("normalized")
        if wrong:
            raise ValueError(
                "added tokens must be special or named as <this>, and found in the text as it is, "
                f"white space after them left alone; received {fields['content']!r} with {wrong}."
            )


def read_named_tokens(folder: Path, added_tokens: Sequence[Mapping] = ()) -> NamedTokens:
    """Reads what `tokenizer_config.json` and its neighbours say.

    Args:
        folder: Where they may be.
        added_tokens: What `tokenizer.json` says under this name.

    Raises:
        ValueError: If two files contradict each other.
    """
    config, names = (_read(folder / file) for file in (CONFIG_FILE, MAP_FILE))
    roles, special = {}, []
    for fields in (config, names):
        for key, role in ROLES.items():
            name = _name(fields.get(key))
            if name is not None and roles.setdefault(role, name) != name:
                raise ValueError(
                    f"{CONFIG_FILE} and {MAP_FILE} must agree; received the {key} "
                    f"{roles[role]!r} and {name!r}."
                )
        for key in ("additional_special_tokens", "extra_special_tokens"):
            more = fields.get(key) or []
            special += map(_name, more.values() if isinstance(more, dict) else more)
    added = {int(i): fields for i, fields in config.get("added_tokens_decoder", {}).items()}
    for name, i in _read(folder / ADDED_FILE).items():
        added.setdefault(i, {"content": name, "special": name in {*special, *roles.values()}})
    added |= {fields["id"]: fields for fields in added_tokens}
    special += [
        fields["content"]
        for fields in added.values()
        if fields.get("special") or MARKUP.fullmatch(fields["content"])
    ]
    return NamedTokens(_kind(folder, config), config, roles, [*roles.values(), *special], added)


def _read(path):
    return read_json(path) if path.exists() else {}


def _name(token):
    """Returns the name of a token, which may be written with its fields."""
    return token["content"] if isinstance(token, dict) else token


def _kind(folder, config):
    """Returns what `tokenizer_class` or else the `model_type` of `config.json` says, or None."""
    name = config.get("tokenizer_class") or ""
    kind = name.removesuffix("Fast").removesuffix("Tokenizer").lower()
    if kind in ANY_KIND:
        kind = _read(folder / "config.json").get("model_type")
    return kind
