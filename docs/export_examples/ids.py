"""Classifies texts with an exported ONNX model."""

import json
import pathlib

import onnxruntime

import bert_tf

folder = pathlib.Path("models/topics/1")
task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
tokenizer = bert_tf.FullTokenizer(folder)
session = onnxruntime.InferenceSession(str(folder / "model.onnx"))

texts = ["Plant the bulbs before the first frost."]
features = bert_tf.pack(tokenizer, texts, max_seq_length=task["max_seq_length"])
[probabilities] = session.run(["probabilities"], features)
answer = dict(zip(task["labels"], probabilities[0], strict=True))
# {"gardening": 0.98, ...}
