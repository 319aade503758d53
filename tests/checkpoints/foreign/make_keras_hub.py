"""Writes small KerasHub presets, and what KerasHub computes with them.

    pip install keras-hub==0.32.0 keras==3.15.1 tensorflow==2.21.0
    python make_keras_hub.py                 # fills keras_hub/

Nothing of this package takes part.
"""

import os
import pathlib
import shutil

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras_hub
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "keras_hub"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
TOKENS += [f"##{letter}" for letter in LETTERS] + ["the", "cat", "sat"]  # V = 60
SIZES = {
    "vocabulary_size": len(TOKENS),
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "max_sequence_length": 24,
}
# Two segments, and the second row padded.
BATCH = {
    "token_ids": [[2, 57, 58, 4, 3, 6, 35, 3], [2, 20, 4, 3, 9, 3, 0, 0]],
    "padding_mask": [[1] * 8, [1] * 6 + [0] * 2],
    "segment_ids": [[0] * 5 + [1] * 3, [0] * 4 + [1] * 2 + [0] * 2],
}
POSITIONS = [[3, 1], [2, 4]]


def main():
    """Rewrites everything."""
    models = keras_hub.models
    shutil.rmtree(HERE, ignore_errors=True)
    tokenizer = models.BertTokenizer(vocabulary=TOKENS, lowercase=True)
    cased = models.BertTokenizer(vocabulary=TOKENS, lowercase=False)

    backbone = models.BertBackbone(**SIZES)
    _write("encoder", backbone, backbone)
    cased.save_to_preset(str(HERE / "encoder"))

    backbone = models.BertBackbone(**SIZES)
    preprocessor = models.BertMaskedLMPreprocessor(tokenizer, sequence_length=24)
    _write("masked_lm", models.BertMaskedLM(backbone, preprocessor), backbone)

    backbone = models.BertBackbone(**SIZES)
    preprocessor = models.BertTextClassifierPreprocessor(tokenizer, sequence_length=24)
    classifier = models.BertTextClassifier(
        backbone, num_classes=3, preprocessor=preprocessor
    )
    _write("classification", classifier, backbone)

    sizes = SIZES | {"hidden_dim": 8, "intermediate_dim": 8}
    models.RobertaBackbone(**sizes).save_to_preset(str(HERE / "roberta"))


def _write(name, model, backbone):
    random = np.random.default_rng(20180817)
    for weight in model.weights:
        mean = float("gamma" in weight.path)
        weight.assign(random.normal(mean, 0.15, weight.shape))
    model.save_to_preset(str(HERE / name))
    inputs = {key: np.asarray(rows, np.int32) for key, rows in BATCH.items()}
    outputs = {key: np.asarray(value) for key, value in backbone(inputs).items()}
    if name == "masked_lm":
        inputs["mask_positions"] = np.asarray(POSITIONS, np.int32)
        outputs["masked_lm_logits"] = np.asarray(model(inputs))
    if name == "classification":
        outputs["logits"] = np.asarray(model(inputs))
    np.savez(
        HERE / name / "expected.npz",
        input_ids=inputs["token_ids"],
        input_mask=inputs["padding_mask"],
        segment_ids=inputs["segment_ids"],
        masked_lm_positions=np.asarray(POSITIONS, np.int32),
        **outputs,
    )


if __name__ == "__main__":
    main()
