"""Hugging Face folders: config.json, model.safetensors and the tokenizer's files.

`reading` and `writing` put the parts together. Each part has a module: `config`;
`names`, `shards` and `h5_weights` for the weights; `tokenizer` reads and
`tokenizer_files` writes the tokenizer; `sentence_layout` serves sentence-transformers.
torch and transformers are not needed.
"""

from bert_tf.checkpoints.hugging_face import reading
from bert_tf.checkpoints.hugging_face import writing

is_at = reading.is_at
open_source = reading.open_source
placement = writing.placement
write = writing.write
