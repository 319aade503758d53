"""The tokenizer's files of a Hugging Face folder, written.

They give the ids of `FullTokenizer`, in transformers, in the library tokenizers and in
the servers that read tokenizer.json. Where they cannot: special tokens in a text are
kept whole there, a capital sigma at the end of a word is not made final, private-use
characters are deleted, and marks and punctuation younger than that library's tables of
characters (accents and full stops of rare scripts) are letters to it.
"""

import json
import os

from bert_tf import files
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


def write(folder, vocabulary, do_lower_case, max_length):
    """Writes vocab.txt, tokenizer.json, tokenizer_config.json and the special tokens.

    Args:
        folder: path of a folder that exists.
        vocabulary: `Vocabulary`.
        do_lower_case: bool.
        max_length: int, the longest sequence that the model takes.

    Raises:
        OSError: a file cannot be written.
    """
    vocabulary.save(os.path.join(folder, tokenizer.VOCABULARY_NAME))
    options = {
        # transformers 5 builds a BertTokenizer anew, with a limit of 100 characters a
        # word; this class takes tokenizer.json as it is, in versions 4 and 5.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "do_lower_case": do_lower_case,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": max_length,
        **_SPECIAL,
    }
    write_json(os.path.join(folder, tokenizer.OPTIONS_NAME), options)
    write_json(os.path.join(folder, _SPECIAL_NAME), _SPECIAL)
    whole = tokenizer_json(vocabulary, do_lower_case)
    write_json(os.path.join(folder, tokenizer.NAME), whole)


def write_json(path, values):
    """Writes values as JSON, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    with files.complete_or_absent(path) as file:
        file.write(json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def tokenizer_json(vocabulary, do_lower_case):
    """Returns the values of a tokenizer.json: how text becomes ids, step by step.

    Args:
        vocabulary: `Vocabulary`.
        do_lower_case: bool; accents go with it, as in 2018.
    """
    special = sorted(_SPECIAL.values(), key=vocabulary.id_of)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(vocabulary, token) for token in special],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
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


def _added_token(vocabulary, token):
    return {
        "id": vocabulary.id_of(token),
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _post_processor(vocabulary):
    """Returns the step that makes [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""
    cls, sep = vocabulary_module.CLS, vocabulary_module.SEP

    def special(token, segment_id):
        return {"SpecialToken": {"id": token, "type_id": segment_id}}

    def text(name, segment_id):
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
