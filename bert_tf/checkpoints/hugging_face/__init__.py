"""Hugging Face folders: config.json, model.safetensors and the tokenizer's files.

`reading` and `writing` put the parts together. Each part has a module: `config`;
`names` and `shards` for the weights; `tokenizer` reads and `tokenizer_files` writes the
tokenizer; `sentence_layout` serves sentence-transformers. torch and transformers are
not needed.
"""

from bert_tf.checkpoints.hugging_face import reading as hugging_face_reading
from bert_tf.checkpoints.hugging_face import writing as hugging_face_writing

is_at = hugging_face_reading.is_at
open_source = hugging_face_reading.open_source
placement = hugging_face_writing.placement
write = hugging_face_writing.write
