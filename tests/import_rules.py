"""Which part of the project may import what, checked on source text."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "keras_arch"

_CORE = frozenset({"keras", "numpy"})
_TENSORFLOW = _CORE | {"tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"}


@dataclass(frozen=True)
class Rule:
    """What a part of the package may import: other parts of it, and packages of others."""

    parts: frozenset[str]
    others: frozenset[str]


def _rule(parts: str, others: frozenset[str]) -> Rule:
    return Rule(frozenset(parts.split()), others)


# The direction is layers -> models -> generation -> serving; objectives and analysis are leaves,
# text adds only the shift of next-token targets. Only the parts that read text, serve or train may
# know TensorFlow.
RULES = {
    "checks": _rule("", frozenset()),
    "backend": _rule("", _CORE | {"tensorflow", "jax", "torch"}),
    "layers": _rule("checks backend", _CORE),
    "models": _rule("checks backend layers", _CORE),
    "generation": _rule("checks backend layers models", _CORE),
    "serving": _rule("checks backend layers models generation text", _TENSORFLOW),
    "objectives": _rule("checks backend", _CORE),
    "text": _rule("checks backend objectives", _TENSORFLOW | {"tokenizers", "sentencepiece"}),
    "analysis": _rule("checks backend layers models generation", _CORE | {"matplotlib", "scipy"}),
    "checkpoints": _rule("checks backend layers models", _CORE | {"safetensors"}),
    "training": _rule(
        "checks backend objectives text", _TENSORFLOW | {"jax", "torch", "matplotlib"}
    ),
}
# These may be imported inside functions only: keras_arch works without them.
_LAZY = {"backend": {"tensorflow", "jax", "torch"}, "text": {"tokenizers", "sentencepiece"}}
_LAZY |= {"analysis": {"matplotlib", "scipy"}}
_LAZY |= {"training": {"jax", "torch", "matplotlib"}, "checkpoints": {"safetensors"}}
# Files of one backend, which are themselves imported inside functions.
_OF_ONE_BACKEND = {"keras_arch/backend/torch_program.py": {"torch"}}
# Here one code serves all backends.
_ONE_CODE = {"layers", "models"}


@dataclass(frozen=True)
class Import:
    """One imported module, absolute, and whether the import stands inside a function."""

    module: str
    lazy: bool
    line: int


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[Import]:
    """Every import in the tree of `module`; names after `from x import` count as modules of x."""
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module or "").split(".")] if node.module else base
            names = [".".join([*base, alias.name]) for alias in node.names]
        else:
            continue
        for name in names:
            yield Import(name, id(node) in inside, node.lineno)


def faults(source: str, path: Path) -> list[str]:
    """What a file at this path, relative to the project, does wrong: one sentence each."""
    parts = path.with_suffix("").parts
    is_package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if is_package else parts)
    tree = ast.parse(source)
    entries = list(imports(tree, module, is_package))
    found = [
        f"{path}:{node.lineno} uses keras.src, which is private to Keras"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "keras.src"
    ]
    found += [
        f"{path}:{entry.line} imports {entry.module}, which is private to Keras"
        for entry in entries
        if f"{entry.module}.".startswith("keras.src.")
    ]
    if parts[0] == PACKAGE and module != PACKAGE:
        part = parts[1]
        for entry in entries:
            reason = _wrong(entry, part, _OF_ONE_BACKEND.get(path.as_posix(), set()))
            if reason:
                found.append(f"{path}:{entry.line} imports {entry.module}: {reason}")
        if part in _ONE_CODE:
            found += [
                f"{path}:{node.lineno} asks for the backend: {part} has one code for all of them"
                for node in ast.walk(tree)
                if isinstance(node, ast.Call)
                and ast.unparse(node.func).rpartition(".")[2] == "backend"
            ]
    return found


def _wrong(entry: Import, part: str, own: set[str]) -> str | None:
    if part not in RULES:
        return f"{PACKAGE}/{part} has no rule; add one"
    root, _, rest = entry.module.partition(".")
    if root == PACKAGE:
        other = rest.partition(".")[0]
        if other != part and other not in RULES[part].parts:
            return f"{part} may import {sorted(RULES[part].parts)} of {PACKAGE}"
    elif root not in RULES[part].others and root not in sys.stdlib_module_names:
        return f"{part} may import {sorted(RULES[part].others)} and the standard library"
    elif root in _LAZY.get(part, set()) - own and not entry.lazy:
        return f"{part} may import {root} inside functions only"
    return None
