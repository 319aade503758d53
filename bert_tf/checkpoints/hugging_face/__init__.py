"""Hugging Face's folders: config.json, model.safetensors and the tokenizer's files.

Read in this order: names, shards, config, tokenizer, reading, tokenizer_files,
sentence_layout, writing.
"""

from bert_tf.checkpoints.hugging_face import reading as hugging_face_reading
from bert_tf.checkpoints.hugging_face import writing as hugging_face_writing

is_at = hugging_face_reading.is_at
open_source = hugging_face_reading.open_source
placement = hugging_face_writing.placement
write = hugging_face_writing.write
