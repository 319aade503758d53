"""Hugging Face's folders: config.json, model.safetensors and the tokenizer's files.

Read in this order: names, shards, config, tokenizer, reading, tokenizer_files,
sentence_layout, writing.
"""

from bert_tf.checkpoints.hugging_face import reading
from bert_tf.checkpoints.hugging_face import writing

is_at = reading.is_at
open_source = reading.open_source
placement = writing.placement
write = writing.write
