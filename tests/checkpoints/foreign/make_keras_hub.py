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
import letters
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "keras_hub"
SIZES = {
    "vocabulary_size": len(letters.TOKENS),
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "max_sequence_length": 24,
}


def main():
    """Rewrites everything."""
    models = keras_hub.models
    shutil.rmtree(HERE, ignore_errors=True)
    tokenizer = models.BertTokenizer(vocabulary=letters.TOKENS, lowercase=True)
    cased = models.BertTokenizer(vocabulary=letters.TOKENS, lowercase=False)

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
    features = {n: np.asarray(rows, np.int32) for n, rows in letters.BATCH.items()}
    features["masked_lm_positions"] = np.asarray(letters.POSITIONS, np.int32)
    inputs = {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
    }
    outputs = {key: np.asarray(value) for key, value in backbone(inputs).items()}
    if name == "masked_lm":
        inputs["mask_positions"] = features["masked_lm_positions"]
        outputs["masked_lm_logits"] = np.asarray(model(inputs))
    if name == "classification":
        outputs["logits"] = np.asarray(model(inputs))
    np.savez(HERE / name / "expected.npz", **features, **outputs)


if __name__ == "__main__":
    main()
