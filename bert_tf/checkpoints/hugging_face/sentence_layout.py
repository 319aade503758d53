"""The files that sentence-transformers and text-embeddings-inference read.

They say how the vectors of a text's pieces become one vector: by their mean, unless the
checkpoint records that it was trained otherwise.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints.hugging_face import config as hugging_face_config
from bert_tf.modeling import config as config_module

_POOLING = "1_Pooling"
_POOLING_CONFIG = os.path.join(_POOLING, "config.json")
_MODES = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}
# Each further module has a folder, such as 2_Normalize or 2_Dense.
_MODULE = re.compile(r"[2-9]_[A-Za-z]+")
_CLASSES = "sentence_transformers.models"


def write(
    folder: str, config: config_module.BertConfig, pooling: str | None = None
) -> None:
    """Writes modules.json, sentence_bert_config.json and 1_Pooling/config.json.

    Args:
        folder: an existing folder.
        config: BertConfig.
        pooling: "cls", "mean" or "max"; None: unknown, so the mean.

    Raises:
        OSError: a file cannot be written.
    """
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{_CLASSES}.Transformer"},
        {"idx": 1, "name": "1", "path": _POOLING, "type": f"{_CLASSES}.Pooling"},
    ]
    # The tokenizer lowercases; this option would lowercase the text before it.
    options = {"max_seq_length": config.max_position_embeddings, "do_lower_case": False}
    modes: dict[str, Any] = {
        mode: kind == (pooling or "mean") for kind, mode in _MODES.items()
    }
    modes |= {"pooling_mode_mean_sqrt_len_tokens": False}
    sizes = {"word_embedding_dimension": config.hidden_size}
    contents: tuple[tuple[str, Any], ...] = (
        ("modules.json", modules),
        ("sentence_bert_config.json", options),
        (_POOLING_CONFIG, sizes | modes),
    )
    for name, values in contents:
        companion_files.write_json(os.path.join(folder, name), values)


def pooling(folder: str) -> str | None:
    """Returns how a folder's encoder is pooled: "cls", "mean" or "max".

    None if nothing is stated, or something that is not supported.

    Raises:
        ValueError: the pooling's configuration is not a JSON object.
    """
    path = os.path.join(folder, _POOLING_CONFIG)
    if not files.exists(path):
        return None
    chosen = _chosen(files.read_json(path, advice=hugging_face_config.COPY_AGAIN))
    kinds = [kind for kind, mode in _MODES.items() if chosen == (mode,)]
    return kinds[0] if kinds else None


def notes(folder: str) -> list[str]:
    """Returns sentences on pooling and modules that a conversion does not keep.

    Raises:
        ValueError: the pooling's configuration is not a JSON object.
    """
    found = []
    path = os.path.join(folder, _POOLING_CONFIG)
    if files.exists(path):
        chosen = _chosen(files.read_json(path, advice=hugging_face_config.COPY_AGAIN))
        if chosen and pooling(folder) is None:
            found.append(
                f"It is pooled with {', '.join(chosen)} in sentence-transformers; "
                "bert_tf does not support that, and writes the mean."
            )
    others = files.list_folder(folder)
    others = [name for name in others if _MODULE.fullmatch(name)]
    if others:
        found.append(
            f"It has additional sentence-transformers modules: {', '.join(others)}; "
            "they are not kept (bert_tf.modeling.pooling.normalize does what "
            "Normalize does)."
        )
    return found


def _chosen(modes: Mapping[str, Any]) -> tuple[str, ...]:
    chosen = [key for key, value in modes.items() if value is True]
    return tuple(key for key in chosen if key.startswith("pooling_mode_"))
