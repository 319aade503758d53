"""KerasHub presets of BERT: a folder with an encoder and possibly a classifier.

`reading` and `writing` use `library`, the only module that imports keras_hub.

KerasHub's masked-word head is neither read nor written: it computes exact GELU and
another epsilon on top of a tanh-GELU encoder, and a bert_config.json has one activation
and one epsilon, so the converted head would silently compute something else. The
encoder of such a preset is read.
"""

from bert_tf.checkpoints.keras_hub import reading as keras_hub_reading
from bert_tf.checkpoints.keras_hub import writing as keras_hub_writing

is_at = keras_hub_reading.is_at
open_source = keras_hub_reading.open_source
placement = keras_hub_writing.placement
write = keras_hub_writing.write
library_outputs = keras_hub_writing.library_outputs
