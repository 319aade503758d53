"""What sentence-transformers and text-embeddings-inference read beside an encoder.

Both then take the mean of a text's vectors as the vector of the text.
"""

import os

from bert_tf.checkpoints.hugging_face import tokenizer_files

_POOLING = "1_Pooling"
_CLASSES = "sentence_transformers.models"


def write(folder, config):
    """Writes modules.json, sentence_bert_config.json and 1_Pooling/config.json.

    Args:
        folder: path of a folder that exists.
        config: BertConfig.

    Raises:
        OSError: a file cannot be written.
    """
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{_CLASSES}.Transformer"},
        {"idx": 1, "name": "1", "path": _POOLING, "type": f"{_CLASSES}.Pooling"},
    ]
    # Lower-casing is the tokenizer's; this one would come before it.
    options = {"max_seq_length": config.max_position_embeddings, "do_lower_case": False}
    pooling = {
        "word_embedding_dimension": config.hidden_size,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    for name, values in (
        ("modules.json", modules),
        ("sentence_bert_config.json", options),
        (os.path.join(_POOLING, "config.json"), pooling),
    ):
        tokenizer_files.write_json(os.path.join(folder, name), values)
