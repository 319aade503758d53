"""The tokenizer of a Hugging Face folder, read: vocabulary, casing, what is otherwise.

What is read is the vocabulary and whether text is lower-cased. Everything else that
would give a text other ids than `FullTokenizer` does becomes a note.
"""

import dataclasses
import os

from bert_tf import files
from bert_tf.checkpoints.hugging_face import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

VOCABULARY_NAME = "vocab.txt"
NAME = "tokenizer.json"
OPTIONS_NAME = "tokenizer_config.json"
ADDED_NAME = "added_tokens.json"
# Classes of transformers that tokenize as the release does, options apart.
_CLASSES = ("BertTokenizer", "PreTrainedTokenizer", "TokenizersBackend")
_MAX_NAMED = 5
# Of options that are read.
_TYPES = {"do_lower_case": bool, "tokenizer_class": str, "never_split": list}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """What the tokenizer's files say."""

    vocabulary: vocabulary_module.Vocabulary | None  # None: there is none.
    do_lower_case: bool | None  # None: not said.
    notes: tuple[str, ...]  # What gives other ids here than there.


def read(folder):
    """Returns the `Description` of a folder's tokenizer.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is no JSON object or no vocabulary, or ids have gaps.
    """
    names = files.list_folder(folder)

    def read_json(name):
        path = os.path.join(folder, name)
        return config_module.read_json(path) if name in names else {}

    options, whole = read_json(OPTIONS_NAME), read_json(NAME)
    tokens, notes = _tokens(folder, names, whole)
    added = _added(whole, os.path.join(folder, NAME)) | read_json(ADDED_NAME)
    tokens, more = _with_added(tokens, added)
    notes += more
    for name, kind in _TYPES.items():
        if not isinstance(options.get(name), kind | None):
            raise ValueError(
                f"{os.path.join(folder, OPTIONS_NAME)}: {name} is {options[name]!r}, "
                f"expected a {kind.__name__}; copy it again."
            )
    normalizer = _part(whole, "normalizer")
    do_lower_case = options.get("do_lower_case", normalizer.get("lowercase"))
    notes += _differences(options, whole, do_lower_case)
    vocabulary = None
    if tokens:
        source = VOCABULARY_NAME if VOCABULARY_NAME in names else NAME
        vocabulary = vocabulary_module.Vocabulary(
            tokens, source=os.path.join(folder, source)
        )
    return Description(
        vocabulary=vocabulary,
        do_lower_case=None if do_lower_case is None else bool(do_lower_case),
        notes=tuple(notes),
    )


def _tokens(folder, names, whole):
    """Returns the tokens in the order of their ids, and notes."""
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
    if whole:
        return (), [
            f"The tokenizer is {model.get('type', 'unknown')} and not WordPiece: its "
            "vocabulary was not taken."
        ]
    return (), []


def _in_order(ids, path):
    is_whole = isinstance(ids, dict) and set(map(repr, ids.values())) == set(
        map(repr, range(len(ids)))
    )
    if not is_whole:
        raise ValueError(
            f"{path}: the ids of its vocabulary are not 0, 1, 2 and so on; copy it "
            f"again, or give {VOCABULARY_NAME}."
        )
    return tuple(sorted(ids, key=ids.get))


def _added(whole, path):
    try:
        added = whole.get("added_tokens") or []
        return {token["content"]: int(token["id"]) for token in added}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: added_tokens is not a list of tokens with id and content; copy "
            "it again."
        ) from error


def _with_added(tokens, added):
    """Returns the tokens with those that were added behind them, and notes."""
    known = set(tokens)
    new = sorted((i, token) for token, i in added.items() if token not in known)
    behind = [token for i, token in new if i >= len(tokens)]
    notes = []
    expected = list(range(len(tokens), len(tokens) + len(new)))
    if tokens and [i for i, _ in new] == expected:
        tokens = (*tokens, *behind)
    elif tokens:
        notes.append(
            f"Tokens were added with ids that do not follow the vocabulary's, so they "
            f"are left out: {_named([token for _, token in new])}."
        )
    special = vocabulary_module.SPECIAL_TOKENS
    kept_whole = [token for token in added if token not in special and token in tokens]
    if kept_whole:
        notes.append(
            f"Hugging Face keeps added tokens whole wherever they occur in a text: "
            f"{_named(kept_whole)}; give them to FullTokenizer as never_split."
        )
    return tokens, notes


def _differences(options, whole, do_lower_case):
    """Yields a sentence for each option that gives other ids than `FullTokenizer`."""
    normalizer = _part(whole, "normalizer")
    model = _part(whole, "model")
    said = normalizer.get("lowercase")
    if None not in (said, do_lower_case) and said != do_lower_case:
        yield (
            f"{OPTIONS_NAME} has do_lower_case {do_lower_case}, {NAME} the opposite; "
            "the former was taken."
        )
    strip = options.get("strip_accents", normalizer.get("strip_accents"))
    if strip is not None and strip != do_lower_case:
        yield (
            f"strip_accents is {strip} and do_lower_case {do_lower_case}: give "
            f"FullTokenizer strip_accents={strip} for the same ids."
        )
    chinese = options.get(
        "tokenize_chinese_chars", normalizer.get("handle_chinese_chars", True)
    )
    if not chinese:
        yield "tokenize_chinese_chars is false; here every Chinese character is a word."
    if normalizer.get("clean_text") is False:
        yield "clean_text is false; here control characters are deleted."
    limit = model.get("max_input_chars_per_word", wordpiece.MAX_INPUT_CHARS_PER_WORD)
    if limit != wordpiece.MAX_INPUT_CHARS_PER_WORD:
        yield (
            f"Words of more than {limit} characters are unknown to Hugging Face's "
            f"tokenizer, here those of more than {wordpiece.MAX_INPUT_CHARS_PER_WORD}."
        )
    if options.get("never_split"):
        yield (
            f"never_split has {_named(options['never_split'])}: give them to "
            "FullTokenizer for the same ids."
        )
    yield from _other_parts(options, whole)


def _other_parts(options, whole):
    class_name = options.get("tokenizer_class") or _CLASSES[0]
    if class_name.removesuffix("Fast") not in _CLASSES:
        yield f"The tokenizer is a {class_name}: a text may have other ids here."
    expected = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    for name, kind in expected.items():
        found = _part(whole, name).get("type")
        if whole and found != kind:
            yield f"The {name} is {found} and not {kind}: a text may have other ids."
    if options.get("do_basic_tokenize") is False:
        yield "do_basic_tokenize is false; here text is split at punctuation."


def _part(whole, name):
    part = whole.get(name)
    return part if isinstance(part, dict) else {}


def _named(tokens):
    named = ", ".join(map(repr, tokens[:_MAX_NAMED]))
    more = len(tokens) - _MAX_NAMED
    return f"{named} and {more} more" if more > 0 else named
