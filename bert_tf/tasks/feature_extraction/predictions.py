"""A text's extracted vectors as a line of JSON."""

import json
from typing import Any

import numpy as np

from bert_tf.tasks.feature_extraction import extraction
from bert_tf.tokenization import vocabulary as vocabulary_module

# extract_features.py, 2018: round(float(x), 6).
DECIMALS = 6


def json_line(
    extracted: extraction.Extracted,
    *,
    index: int,
    layers: tuple[int, ...],
    vocabulary: vocabulary_module.Vocabulary,
) -> str:
    """Returns the line of one text, with its line end.

    Without pooling it is the release's: `linex_index` (its spelling), and `features`
    with `token` and `layers` (`index` as in `layers`, and `values`) for every piece.
    With pooling there are `values` instead of features. Attention weights follow as
    `attention_weights`: for each layer `index` and `heads` [N][from][to].

    Args:
        extracted: the text's vectors.
        index: number of the line, from 0.
        layers: the requested layers.
        vocabulary: for the tokens.
    """
    record: dict[str, Any] = {"linex_index": index}
    if extracted.vector is not None:
        record["values"] = rounded(extracted.vector)
    elif extracted.vectors is not None:
        record["features"] = [
            {
                "token": vocabulary.token_of(int(token_id)),
                "layers": [
                    {"index": layer, "values": values}
                    for layer, values in zip(layers, rows, strict=True)
                ],
            }
            for token_id, rows in zip(
                extracted.input_ids, rounded(extracted.vectors), strict=True
            )
        ]
    if extracted.attention_weights is not None:
        by_layer = extracted.attention_weights.transpose(1, 2, 0, 3)  # [L, N, S, S]
        record["attention_weights"] = [
            {"index": layer, "heads": heads}
            for layer, heads in zip(layers, rounded(by_layer), strict=True)
        ]
    return json.dumps(record) + "\n"


def rounded(values: np.ndarray) -> list:
    """Returns float32 values as lists of Python floats with six decimals.

    The product of a float32 and 10^6 has at most 38 significant bits, so it is exact in
    float64, and the result equals that of Python's `round`, even for halves.
    """
    return np.round(values.astype(np.float64), DECIMALS).tolist()
