"""Reads and writes the tokenizer's files of a Hugging Face folder.

Vocabulary, casing, accents and tokens that are never split are read. Every other
setting that would give a text different ids from `FullTokenizer` becomes a warning.

With the files that are written, transformers, the library tokenizers and servers that
read tokenizer.json give the same ids as `FullTokenizer`, with four exceptions: they
keep special tokens in a text whole; they lowercase a capital sigma at the end of a word
to the non-final form; they delete private-use characters; and they treat marks and
punctuation that are newer than their Unicode tables as letters.
"""

import dataclasses
import functools
import os
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import cast

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import foreign_keys
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.hugging_face import config as hugging_face_config
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

NAME = "tokenizer.json"
OPTIONS_NAME = "tokenizer_config.json"
_VOCABULARY_NAME = companion_files.VOCAB_FILE
_ADDED_NAME = "added_tokens.json"
_SPECIAL_NAME = "special_tokens_map.json"
_SPECIAL = {
    name: token
    for name, token in foreign_keys.EXPECTED[OPTIONS_NAME].items()
    if name.endswith("_token")
}
_CLS = {"SpecialToken": {"id": vocabulary_module.CLS, "type_id": 0}}
_A, _B = ({"Sequence": {"id": "AB"[i], "type_id": i}} for i in range(2))
_END_A, _END_B = (
    {"SpecialToken": {"id": vocabulary_module.SEP, "type_id": i}} for i in range(2)
)
# The rows of a single text and of a pair, as a post_processor describes them.
_ROWS = {"single": [_CLS, _A, _END_A], "pair": [_CLS, _A, _END_A, _B, _END_B]}
# Classes of transformers that tokenize as the release does, apart from options.
_CLASSES = ("BertTokenizer", "PreTrainedTokenizer", "TokenizersBackend")
_MAX_NAMED = 5
# Types of the options that are read; see `json_values.unexpected`.
_OPTIONS_SHAPE = {
    "do_lower_case?": bool | None,
    "strip_accents?": bool | None,
    "model_max_length?": int | float | None,  # 1e30 means that there is none.
    "tokenizer_class?": str | None,
    "never_split?": (None, [str]),
    "truncation_side?": str | None,
    "max_len?": int | float | None,  # The name of model_max_length until 2020.
    "model_input_names?": (None, [str]),
    "additional_special_tokens?": list | None,
    "extra_special_tokens?": list | dict | None,
    "added_tokens_decoder?": (None, {str: {"content": str}}),
}
# Of tokenizer.json.
_SHAPE = {
    "model?": (None, {}),
    "normalizer?": (None, {}),
    "pre_tokenizer?": (None, {}),
    "added_tokens?": (None, [{"content": str, "id": int}]),
    "truncation?": (None, {"direction?": str}),
    "post_processor?": (None, {}),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """The content of the tokenizer's files."""

    text: text_encoding.TextEncoding  # Vocabulary, casing, accents and never_split.
    max_length: float | None  # In pieces, as the file states it.
    warnings: tuple[str, ...]  # Sentences about settings that change ids.
    notes: tuple[str, ...]  # Sentences about differences that few texts show.


def read(folder: str) -> Description:
    """Returns the `Description` of a folder's tokenizer."""
    names = files.list_folder(folder)
    read_json = functools.partial(hugging_face_config.read_json, folder)
    options, whole = read_json(OPTIONS_NAME, _OPTIONS_SHAPE), read_json(NAME, _SHAPE)
    _check_truncation(folder, options, whole)
    normalizer = _part(whole, "normalizer")
    settings = {
        **read_json(_SPECIAL_NAME, _OPTIONS_SHAPE),
        "do_lower_case": normalizer.get("lowercase"),
        "strip_accents": normalizer.get("strip_accents"),
        "tokenize_chinese_chars": normalizer.get("handle_chinese_chars"),
        "clean_text": normalizer.get("clean_text"),
        **options,
    }
    lowers, strips = settings["do_lower_case"], settings["strip_accents"]
    tokens, warnings = _tokens(folder, names, whole)
    added = {one["content"]: one["id"] for one in whole.get("added_tokens") or ()}
    added |= read_json(_ADDED_NAME, {str: int})
    for number, one in (options.get("added_tokens_decoder") or {}).items():
        if number.isdecimal():
            added.setdefault(one["content"], int(number))
    tokens, sentences = _with_added(tokens, added)
    wanted = [*added, *(settings.get("never_split") or ()), *_more_special(settings)]
    possible = {*tokens}.difference(vocabulary_module.SPECIAL_TOKENS)
    never_split = tuple(dict.fromkeys(t for t in wanted if t in possible))
    warnings += sentences
    warnings += _differences(settings, whole)
    warnings += foreign_keys.unknown_keys(OPTIONS_NAME, options)
    warnings += foreign_keys.unknown_keys(NAME, whole)
    warnings += _differences_of_kept(settings, whole, never_split)
    vocabulary = None
    if tokens:
        source = _VOCABULARY_NAME if _VOCABULARY_NAME in names else NAME
        vocabulary = vocabulary_module.Vocabulary(
            tokens, source=os.path.join(folder, source)
        )
    ours = wordpiece.MAX_INPUT_CHARS_PER_WORD
    limit = _part(whole, "model").get("max_input_chars_per_word", ours)
    note = (
        f"Hugging Face's tokenizer maps words of more than {limit} characters to "
        f"[UNK], bert_tf those of more than {ours}."
    )
    return Description(
        text=text_encoding.TextEncoding(
            vocabulary=vocabulary,
            do_lower_case=None if lowers is None else bool(lowers),
            strip_accents=None if strips in (None, lowers) else bool(strips),
            never_split=never_split,
        ),
        max_length=options.get("model_max_length", options.get("max_len")),
        warnings=tuple(warnings),
        notes=() if limit == ours else (note,),
    )


def write(folder: str, text: text_encoding.TextEncoding, max_length: int) -> None:
    """Writes vocab.txt, tokenizer.json, tokenizer_config.json and the special tokens.

    Args:
        folder: an existing folder.
        text: has a vocabulary.
        max_length: the longest sequence that the model accepts, in word pieces.
    """
    vocabulary = cast(vocabulary_module.Vocabulary, text.vocabulary)
    vocabulary.save(os.path.join(folder, _VOCABULARY_NAME))
    special = _special(vocabulary)
    options = {
        # transformers 5 rebuilds a BertTokenizer with a limit of 100 characters per
        # word. This class uses tokenizer.json as it is, in versions 4 and 5.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "do_lower_case": bool(text.do_lower_case),
        "strip_accents": text.strip_accents,
        "tokenize_chinese_chars": True,
        "model_max_length": max_length,
        **special,
    }
    contents = {
        OPTIONS_NAME: options,
        _SPECIAL_NAME: special,
        NAME: tokenizer_json(text),
    }
    for name, values in contents.items():
        companion_files.write_json(os.path.join(folder, name), values)


def tokenizer_json(text: text_encoding.TextEncoding) -> dict[str, Any]:
    """Returns the content of a tokenizer.json: how text becomes ids, step by step."""
    vocabulary = cast(vocabulary_module.Vocabulary, text.vocabulary)
    special = _special(vocabulary).values()
    added = sorted({*special, *text.never_split}, key=vocabulary.__getitem__)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocabulary[token],
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": token in special,
            }
            for token in added
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": text.strip_accents,
            "lowercase": bool(text.do_lower_case),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            **_ROWS,
            "special_tokens": {
                token: {"id": token, "ids": [vocabulary[token]], "tokens": [token]}
                for token in (vocabulary_module.CLS, vocabulary_module.SEP)
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": vocabulary_module.UNK,
            "continuing_subword_prefix": wordpiece.CONTINUATION,
            "max_input_chars_per_word": wordpiece.MAX_INPUT_CHARS_PER_WORD,
            "vocab": dict(vocabulary.ids),
        },
    }


def _check_truncation(
    folder: str, options: Mapping[str, Any], whole: Mapping[str, Any]
) -> None:
    """Refuses to cut long texts at their beginning."""
    stated = options.get("truncation_side")
    side = stated or _part(whole, "truncation").get("direction", "right")
    if side.lower() == "left":
        name = OPTIONS_NAME if stated else NAME
        raise ValueError(
            f"{os.path.join(folder, name)} cuts long texts at their beginning "
            "(truncation_side left), bert_tf at their end. If your texts are short, or "
            'their beginning matters, change it to "right" in a copy of the folder.'
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
    if _VOCABULARY_NAME in names:
        source = os.path.join(folder, _VOCABULARY_NAME)
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
            f"or pass {_VOCABULARY_NAME}."
        )
    return tuple(sorted(ids, key=ids.get))


def _with_added(
    tokens: tuple[str, ...], added: Mapping[str, int]
) -> tuple[tuple[str, ...], list[str]]:
    """Returns the tokens with added ones appended, and warnings."""
    known = set(tokens)
    new = sorted((i, token) for token, i in added.items() if token not in known)
    if not tokens or not new:
        return tokens, []
    names = [token for _, token in new]
    if [i for i, _ in new] == list(range(len(tokens), len(tokens) + len(new))):
        return (*tokens, *names), []
    return tokens, [
        "The ids of some added tokens do not follow the vocabulary's, so these tokens "
        f"are left out: {_named(names)}."
    ]


def _differences(
    settings: Mapping[str, Any], whole: Mapping[str, Any]
) -> Iterator[str]:
    """Yields a sentence per setting that gives other ids or rows here.

    Args:
        settings: of all of the tokenizer's files.
        whole: tokenizer.json.
    """
    lowers = settings["do_lower_case"]
    lowercase = _part(whole, "normalizer").get("lowercase")
    if None not in (lowercase, lowers) and lowercase != lowers:
        yield (
            f"{OPTIONS_NAME} has do_lower_case {lowers}, {NAME} the opposite; the "
            "former is used."
        )
    tokens = {name: _content(settings.get(name)) for name in _SPECIAL}
    stated = {**settings, **tokens}
    yield from foreign_keys.differences(OPTIONS_NAME, stated, place="The tokenizer")
    class_name = settings.get("tokenizer_class") or _CLASSES[0]
    if class_name.removesuffix("Fast") not in _CLASSES:
        yield f"The tokenizer is a {class_name}: a text may get different ids here."
    expected = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    for name, kind in expected.items():
        other = _part(whole, name).get("type")
        if whole and other != kind:
            yield f"The {name} is {other} and not {kind}: a text may get different ids."
    if "auto_map" in settings:
        yield (
            f"{OPTIONS_NAME} names custom code (auto_map), which bert_tf does not run: "
            "a text may get different ids."
        )
    inputs = settings.get("model_input_names")
    for name in ("token_type_ids", "attention_mask"):
        if inputs and name not in inputs:
            yield (
                f"model_input_names lacks {name}, which bert_tf gives the model: pairs "
                "or padded texts get different results."
            )
    template = _part(whole, "post_processor")
    if any(template.get(part, row) != row for part, row in _ROWS.items()):
        yield "The post_processor builds other rows than [CLS] A [SEP] B [SEP]."


def _differences_of_kept(
    settings: Mapping[str, Any], whole: Mapping[str, Any], never_split: Sequence[str]
) -> Iterator[str]:
    """Yields sentences about never-split tokens that are matched differently here."""
    known = {*never_split, *vocabulary_module.SPECIAL_TOKENS}
    lost = [t for t in settings.get("never_split") or () if t not in known]
    if lost:
        yield (
            f"never_split has {_named(lost)}, which the vocabulary lacks: Hugging Face "
            "makes [UNK] of them, bert_tf splits them."
        )
    flags = {token["content"]: token for token in whole.get("added_tokens") or ()}
    if words := [t for t in never_split if flags.get(t, {}).get("single_word")]:
        yield (
            f"Hugging Face keeps {_named(words)} whole only as separate words, bert_tf "
            "also within words."
        )
    cased = [
        token
        for token in never_split
        if flags.get(token, {}).get("normalized") and token.lower() != token.upper()
    ]
    if cased and settings["do_lower_case"] is not False:
        yield (
            f"Hugging Face keeps {_named(cased)} whole in upper and lower case, "
            "bert_tf only as written."
        )


def _more_special(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yields the special tokens that a model has besides BERT's."""
    for name in ("additional_special_tokens", "extra_special_tokens"):
        tokens = settings.get(name) or ()
        tokens = tokens.values() if isinstance(tokens, dict) else tokens
        yield from (one for one in map(_content, tokens) if isinstance(one, str))


def _content(token: Any) -> Any:
    """Returns a token that is stated as such or as an object with its settings."""
    return token.get("content") if isinstance(token, dict) else token


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return whole.get(name) or {}


def _named(tokens: Sequence[str]) -> str:
    named = ", ".join(map(repr, tokens[:_MAX_NAMED]))
    more = len(tokens) - _MAX_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _special(vocabulary: vocabulary_module.Vocabulary) -> dict[str, str]:
    """Returns the vocabulary's special tokens. Others get ids beyond the table."""
    return {name: token for name, token in _SPECIAL.items() if token in vocabulary}
