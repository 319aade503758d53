"""Writes the tokenizer's files of a Hugging Face folder.

With these files, transformers, the library tokenizers and servers that read
tokenizer.json give the same ids as `FullTokenizer`, with four exceptions: they keep
special tokens in a text whole; they lowercase a capital sigma at the end of a word to
the non-final form; they delete private-use characters; and they treat marks and
punctuation that are newer than their Unicode tables as letters.
"""

import os
from collections.abc import Sequence
from typing import Any

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints.hugging_face import tokenizer
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

_SPECIAL = {
    "unk_token": vocabulary_module.UNK,
    "sep_token": vocabulary_module.SEP,
    "pad_token": vocabulary_module.PAD,
    "cls_token": vocabulary_module.CLS,
    "mask_token": vocabulary_module.MASK,
}
_SPECIAL_NAME = "special_tokens_map.json"


def write(
    folder: str,
    vocabulary: vocabulary_module.Vocabulary,
    do_lower_case: bool,
    max_length: int,
    *,
    strip_accents: bool | None = None,
    never_split: Sequence[str] = (),
) -> None:
    """Writes vocab.txt, tokenizer.json, tokenizer_config.json and the special tokens.

    Args:
        folder: an existing folder.
        vocabulary: `Vocabulary`.
        do_lower_case: whether text is lowercased.
        max_length: the longest sequence that the model accepts, in word pieces.
        strip_accents: as for `FullTokenizer`.
        never_split: as for `FullTokenizer`.

    Raises:
        OSError: a file cannot be written.
    """
    vocabulary.save(os.path.join(folder, tokenizer.VOCABULARY_NAME))
    special = _special(vocabulary)
    options = {
        # transformers 5 rebuilds a BertTokenizer with a limit of 100 characters per
        # word. This class uses tokenizer.json as it is, in versions 4 and 5.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "do_lower_case": do_lower_case,
        "strip_accents": strip_accents,
        "tokenize_chinese_chars": True,
        "model_max_length": max_length,
        **special,
    }
    companion_files.write_json(os.path.join(folder, tokenizer.OPTIONS_NAME), options)
    companion_files.write_json(os.path.join(folder, _SPECIAL_NAME), special)
    companion_files.write_json(
        os.path.join(folder, tokenizer.NAME),
        tokenizer_json(
            vocabulary,
            do_lower_case,
            strip_accents=strip_accents,
            never_split=never_split,
        ),
    )


def tokenizer_json(
    vocabulary: vocabulary_module.Vocabulary,
    do_lower_case: bool,
    *,
    strip_accents: bool | None = None,
    never_split: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the content of a tokenizer.json: how text becomes ids, step by step.

    Args:
        vocabulary: `Vocabulary`.
        do_lower_case: whether to lowercase.
        strip_accents: whether to strip accents; None: only if lowercasing, as in 2018.
        never_split: tokens that are kept whole wherever they occur in a text.
    """
    special = _special(vocabulary).values()
    added = sorted({*special, *never_split}, key=vocabulary.id_of)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocabulary.id_of(token),
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
            "strip_accents": strip_accents,
            "lowercase": do_lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _post_processor(vocabulary),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": vocabulary_module.UNK,
            "continuing_subword_prefix": wordpiece.CONTINUATION,
            "max_input_chars_per_word": wordpiece.MAX_INPUT_CHARS_PER_WORD,
            "vocab": dict(vocabulary.ids),
        },
    }


def _special(vocabulary: vocabulary_module.Vocabulary) -> dict[str, str]:
    """Returns the vocabulary's special tokens. Others get ids beyond the table."""
    return {name: token for name, token in _SPECIAL.items() if token in vocabulary}


def _post_processor(vocabulary: vocabulary_module.Vocabulary) -> dict[str, Any]:
    """Returns the step that builds [CLS] A [SEP] or [CLS] A [SEP] B [SEP]."""
    cls, sep = vocabulary_module.CLS, vocabulary_module.SEP

    def special(token: str, segment_id: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": segment_id}}

    def text(name: str, segment_id: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment_id}}

    single = [special(cls, 0), text("A", 0), special(sep, 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), special(sep, 1)],
        "special_tokens": {
            token: {"id": token, "ids": [vocabulary.id_of(token)], "tokens": [token]}
            for token in (cls, sep)
        },
    }
