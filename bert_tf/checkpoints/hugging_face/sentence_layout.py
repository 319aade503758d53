"""What sentence-transformers and text-embeddings-inference read beside an encoder.

Both then make the vector of a text of those of its pieces: their mean, unless the
checkpoint says that it was trained otherwise.
"""

import os
import re

from bert_tf import files
from bert_tf.checkpoints.hugging_face import config as config_module
from bert_tf.checkpoints.hugging_face import tokenizer_files

_POOLING = "1_Pooling"
_POOLING_CONFIG = os.path.join(_POOLING, "config.json")
_MODES = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}
# Further modules have a folder each, such as 2_Normalize or 2_Dense.
_MODULE = re.compile(r"[2-9]_[A-Za-z]+")
_CLASSES = "sentence_transformers.models"


def write(folder, config, pooling=None):
    """Writes modules.json, sentence_bert_config.json and 1_Pooling/config.json.

    Args:
        folder: path of a folder that exists.
        config: BertConfig.
        pooling: "cls", "mean" or "max"; None: not known, so the mean.

    Raises:
        OSError: a file cannot be written.
    """
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{_CLASSES}.Transformer"},
        {"idx": 1, "name": "1", "path": _POOLING, "type": f"{_CLASSES}.Pooling"},
    ]
    # Lower-casing is the tokenizer's; this one would come before it.
    options = {"max_seq_length": config.max_position_embeddings, "do_lower_case": False}
    modes = {mode: kind == (pooling or "mean") for kind, mode in _MODES.items()}
    modes |= {"pooling_mode_mean_sqrt_len_tokens": False}
    sizes = {"word_embedding_dimension": config.hidden_size}
    for name, values in (
        ("modules.json", modules),
        ("sentence_bert_config.json", options),
        (_POOLING_CONFIG, sizes | modes),
    ):
        tokenizer_files.write_json(os.path.join(folder, name), values)


def pooling(folder):
    """Returns how texts' vectors are made in a folder: "cls", "mean" or "max".

    None where nothing is said, or something else.

    Raises:
        OSError: a file cannot be read.
        ValueError: the pooling's configuration is no JSON object.
    """
    path = os.path.join(folder, _POOLING_CONFIG)
    if not files.exists(path):
        return None
    chosen = _chosen(config_module.read_json(path))
    kinds = [kind for kind, mode in _MODES.items() if chosen == (mode,)]
    return kinds[0] if kinds else None


def notes(folder):
    """Returns sentences on what is not kept of how a folder makes texts' vectors.

    Raises:
        OSError: a file cannot be read.
        ValueError: the pooling's configuration is no JSON object.
    """
    found = []
    path = os.path.join(folder, _POOLING_CONFIG)
    if files.exists(path):
        chosen = _chosen(config_module.read_json(path))
        if chosen and pooling(folder) is None:
            found.append(
                f"sentence-transformers pools with {', '.join(chosen)} here; bert_tf "
                "does not keep that, and writes the mean."
            )
    others = files.list_folder(folder)
    others = [name for name in others if _MODULE.fullmatch(name)]
    if others:
        found.append(
            f"sentence-transformers has more modules here: {', '.join(others)}; they "
            "are not kept (bert_tf.modeling.pooling.normalize is the Normalize one)."
        )
    return found


def _chosen(modes):
    chosen = [key for key, value in modes.items() if value is True]
    return tuple(key for key in chosen if key.startswith("pooling_mode_"))
