"""Reads the tokenizer of a Hugging Face folder.

Vocabulary, casing, accents and tokens that are never split are read. Every other
setting that would give a text different ids from `FullTokenizer` becomes a warning.
"""

import dataclasses
import os
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.checkpoints.hugging_face import config as hugging_face_config
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

VOCABULARY_NAME = "vocab.txt"
NAME = "tokenizer.json"
OPTIONS_NAME = "tokenizer_config.json"
ADDED_NAME = "added_tokens.json"
# Classes of transformers that tokenize as the release does, apart from options.
_CLASSES = ("BertTokenizer", "PreTrainedTokenizer", "TokenizersBackend")
_MAX_NAMED = 5
# Types of the options that are read.
# See `json_values.unexpected`.
_OPTIONS_SHAPE = {
    "do_lower_case?": bool | None,
    "strip_accents?": bool | None,
    "model_max_length?": int | float | None,  # 1e30 means that there is none.
    "tokenizer_class?": str | None,
    "never_split?": (None, [str]),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """The content of the tokenizer's files."""

    vocabulary: vocabulary_module.Vocabulary | None
    do_lower_case: bool | None  # None: not stated.
    strip_accents: bool | None  # None: as `do_lower_case`.
    never_split: tuple[str, ...]  # Tokens of the vocabulary.
    max_length: float | None  # In pieces, as the file states it.
    warnings: tuple[str, ...]  # Sentences about settings that change ids.
    notes: tuple[str, ...]  # Sentences about differences that few texts show.


def read(folder: str) -> Description:
    """Returns the `Description` of a folder's tokenizer.

    Raises:
        ValueError: a file is damaged, or the ids have gaps.
    """
    names = files.list_folder(folder)

    def read_json(name: str, shape: Any = None) -> dict[str, Any]:
        if name not in names:
            return {}
        path = os.path.join(folder, name)
        advice = hugging_face_config.COPY_AGAIN
        return files.read_json(path, advice=advice, shape=shape)

    options, whole = read_json(OPTIONS_NAME, _OPTIONS_SHAPE), read_json(NAME)
    tokens, warnings = _tokens(folder, names, whole)
    added = _added(whole, os.path.join(folder, NAME)) | read_json(ADDED_NAME)
    tokens, more = _with_added(tokens, added)
    warnings += more
    normalizer = _part(whole, "normalizer")
    do_lower_case = options.get("do_lower_case", normalizer.get("lowercase"))
    strip = options.get("strip_accents", normalizer.get("strip_accents"))
    special = vocabulary_module.SPECIAL_TOKENS
    wanted = [
        t for t in (*added, *(options.get("never_split") or ())) if t not in special
    ]
    never_split = tuple(dict.fromkeys(t for t in wanted if t in set(tokens)))
    warnings += _differences(options, whole, do_lower_case)
    warnings += _differences_of_kept(options, whole, never_split, do_lower_case)
    vocabulary = None
    if tokens:
        source = VOCABULARY_NAME if VOCABULARY_NAME in names else NAME
        vocabulary = vocabulary_module.Vocabulary(
            tokens, source=os.path.join(folder, source)
        )
    return Description(
        vocabulary=vocabulary,
        do_lower_case=None if do_lower_case is None else bool(do_lower_case),
        strip_accents=None if strip in (None, do_lower_case) else bool(strip),
        never_split=never_split,
        max_length=options.get("model_max_length"),
        warnings=tuple(warnings),
        notes=tuple(_notes(whole)),
    )


def _tokens(
    folder: str, names: Sequence[str], whole: Mapping[str, Any]
) -> tuple[tuple[str, ...], list[str]]:
    """Returns the tokens in order of their ids, and warnings."""
    path = os.path.join(folder, NAME)
    model = _part(whole, "model")
    in_json = None
    if model.get("type", "WordPiece") == "WordPiece" and "vocab" in model:
        in_json = _in_order(model["vocab"], path)
    if VOCABULARY_NAME in names:
        source = os.path.join(folder, VOCABULARY_NAME)
        tokens = vocabulary_module.Vocabulary.load(source).tokens
        if in_json is not None and in_json[: len(tokens)] != tokens[: len(in_json)]:
            pairs = zip(tokens, in_json, strict=False)
            first = next(i for i, (a, b) in enumerate(pairs) if a != b)
            raise ValueError(
                f"{source} and {NAME} disagree: token {first} is {tokens[first]!r} in "
                f"one and {in_json[first]!r} in the other; remove the one that does "
                "not belong to the weights."
            )
        return max(tokens, in_json or (), key=len), []
    if in_json is not None:
        return in_json, []
    if not whole:
        return (), []
    kind = model.get("type", "unknown")
    return (), [
        f"The tokenizer is {kind} and not WordPiece; its vocabulary is ignored."
    ]


def _in_order(ids: Any, path: str) -> tuple[str, ...]:
    # As text, because the ids may be any JSON values.
    numbers = set(map(repr, ids.values())) if isinstance(ids, dict) else set()
    if numbers != set(map(repr, range(len(ids)))) or not numbers:
        raise ValueError(
            f"{path}: the ids of its vocabulary are not 0, 1, 2, ...; copy it again, "
            f"or pass {VOCABULARY_NAME}."
        )
    return tuple(sorted(ids, key=ids.get))


def _added(whole: Mapping[str, Any], path: str) -> dict[str, int]:
    try:
        added = whole.get("added_tokens") or []
        return {token["content"]: int(token["id"]) for token in added}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{path}: added_tokens is not a list of tokens with id and content; copy "
            "it again."
        ) from error


def _with_added(
    tokens: tuple[str, ...], added: Mapping[str, int]
) -> tuple[tuple[str, ...], list[str]]:
    """Returns the tokens with added ones appended, and warnings."""
    known = set(tokens)
    new = sorted((i, token) for token, i in added.items() if token not in known)
    appended = [token for i, token in new if i >= len(tokens)]
    warnings = []
    expected = list(range(len(tokens), len(tokens) + len(new)))
    if tokens and [i for i, _ in new] == expected:
        tokens = (*tokens, *appended)
    elif tokens:
        warnings.append(
            f"The ids of some added tokens do not follow the vocabulary's, so these "
            f"tokens are left out: {_named([token for _, token in new])}."
        )
    return tokens, warnings


def _differences(
    options: Mapping[str, Any], whole: Mapping[str, Any], do_lower_case: bool | None
) -> Iterator[str]:
    """Yields a sentence per setting that gives different ids from `FullTokenizer`."""
    normalizer = _part(whole, "normalizer")
    stated = normalizer.get("lowercase")
    if None not in (stated, do_lower_case) and stated != do_lower_case:
        yield (
            f"{OPTIONS_NAME} has do_lower_case {do_lower_case}, {NAME} the opposite; "
            "the former is used."
        )
    settings = {
        "tokenize_chinese_chars": normalizer.get("handle_chinese_chars"),
        "clean_text": normalizer.get("clean_text"),
        "do_basic_tokenize": None,
    } | dict(options)
    meanings = {
        "tokenize_chinese_chars": "treats every Chinese character as a word",
        "clean_text": "deletes control characters",
        "do_basic_tokenize": "splits text at punctuation",
    }
    for name, meaning in meanings.items():
        if settings[name] is False:
            yield f"{name} is false; bert_tf {meaning}."
    class_name = options.get("tokenizer_class") or _CLASSES[0]
    if class_name.removesuffix("Fast") not in _CLASSES:
        yield f"The tokenizer is a {class_name}: a text may get different ids here."
    expected = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    for name, kind in expected.items():
        other = _part(whole, name).get("type")
        if whole and other != kind:
            yield f"The {name} is {other} and not {kind}: a text may get different ids."
    if "auto_map" in options:
        yield (
            f"{OPTIONS_NAME} names custom code (auto_map), which bert_tf does not run: "
            "a text may get different ids."
        )


def _differences_of_kept(
    options: Mapping[str, Any],
    whole: Mapping[str, Any],
    never_split: Sequence[str],
    do_lower_case: bool | None,
) -> Iterator[str]:
    """Yields sentences about never-split tokens that are matched differently here."""
    known = {*never_split, *vocabulary_module.SPECIAL_TOKENS}
    lost = [t for t in options.get("never_split") or () if t not in known]
    if lost:
        yield (
            f"never_split has {_named(lost)}, which the vocabulary lacks: Hugging Face "
            "makes [UNK] of them, bert_tf splits them."
        )
    flags = {token["content"]: token for token in whole.get("added_tokens") or ()}
    words = [t for t in never_split if flags.get(t, {}).get("single_word")]
    if words:
        yield (
            f"Hugging Face keeps {_named(words)} whole only as separate words, bert_tf "
            "also within words."
        )
    cased = [
        token
        for token in never_split
        if flags.get(token, {}).get("normalized") and token.lower() != token.upper()
    ]
    if cased and do_lower_case is not False:
        yield (
            f"Hugging Face keeps {_named(cased)} whole in upper and lower case, "
            "bert_tf only as written."
        )


def _notes(whole: Mapping[str, Any]) -> Iterator[str]:
    ours = wordpiece.MAX_INPUT_CHARS_PER_WORD
    limit = _part(whole, "model").get("max_input_chars_per_word", ours)
    if limit != ours:
        yield (
            f"Hugging Face's tokenizer maps words of more than {limit} characters to "
            f"[UNK], bert_tf those of more than {ours}."
        )


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, dict) else {}


def _named(tokens: Sequence[str]) -> str:
    named = ", ".join(map(repr, tokens[:_MAX_NAMED]))
    more = len(tokens) - _MAX_NAMED
    return f"{named} and {more} more" if more > 0 else named
