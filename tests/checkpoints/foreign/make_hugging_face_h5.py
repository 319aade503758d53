"""Writes the folders of hugging_face_h5/ with the TensorFlow classes of transformers 4.

    python3.11 -m venv venv
    venv/bin/pip install transformers==4.46.3 tensorflow-cpu==2.18.1 tf-keras==2.18.0
    venv/bin/python tests/checkpoints/foreign/make_hugging_face_h5.py

Every folder has tf_model.h5, config.json, vocab.txt, and an expected.npz: a batch with
padding and two segments, and what the model of transformers gives for it.
"""

import os
import pathlib
import shutil

import numpy as np

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf
import transformers

FOLDER = pathlib.Path(__file__).parent / "hugging_face_h5"
TEXT = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat un ##want ##ed , ."
TOKENS = TEXT.split()
SIZES = {
    "vocab_size": len(TOKENS),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 10,
}
BATCH = {
    "input_ids": [[2, 5, 6, 7, 3, 8, 9, 3], [2, 11, 12, 3, 6, 3, 0, 0]],
    "attention_mask": [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0]],
    "token_type_ids": [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 0, 0]],
}
MODELS = {
    "encoder": (transformers.TFBertModel, {"num_hidden_layers": 2}),
    "pretraining": (transformers.TFBertForPreTraining, {}),
    "masked_lm": (transformers.TFBertForMaskedLM, {}),
    "classification": (
        transformers.TFBertForSequenceClassification,
        {"id2label": {0: "bad", 1: "so so", 2: "good"}},
    ),
    "question_answering": (transformers.TFBertForQuestionAnswering, {}),
    "token_classification": (
        transformers.TFBertForTokenClassification,
        {"id2label": {0: "O", 1: "B-PER", 2: "I-PER"}},
    ),
    "multiple_choice": (transformers.TFBertForMultipleChoice, {}),
}


def main():
    for number, (name, (model_class, changes)) in enumerate(MODELS.items()):
        tf.keras.utils.set_random_seed(number)
        model = model_class(transformers.BertConfig(**SIZES | changes))
        batch = {key: tf.constant(rows) for key, rows in BATCH.items()}
        if name == "multiple_choice":
            batch = {k: tf.stack([v, v[::-1]], axis=1) for k, v in batch.items()}
        model(batch)
        # No bias of 0 and no scale of 1, which would hide mistakes.
        for weight in model.weights:
            noise = 0.3 * tf.random.normal(weight.shape)
            weight.assign(1 + noise if "gamma" in weight.name else noise)
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
        outputs = model(batch)
        found = {f"input/{key}": rows.numpy() for key, rows in batch.items()}
        found |= {key: value.numpy() for key, value in outputs.items()}
        np.savez(folder / "expected.npz", **found)
    # With names of TensorFlow, which no PyTorch model has.
    folder = FOLDER / "safe_serialization"
    shutil.rmtree(folder, ignore_errors=True)
    config = transformers.BertConfig(**SIZES)
    model = transformers.TFBertModel(config)
    model({key: tf.constant(rows) for key, rows in BATCH.items()})
    model.save_pretrained(folder, safe_serialization=True)


if __name__ == "__main__":
    main()
