"""KerasHub presets of BERT: a folder with an encoder and possibly a classifier.

`reading` and `writing` use `library`, the only module that imports keras_hub.

KerasHub's masked-word head is neither read nor written: it computes exact GELU and
a different epsilon on top of a tanh-GELU encoder, and a bert_config.json has one
activation and one epsilon, so the converted head would silently compute something
different. The encoder of such a preset can be read.
"""

from bert_tf.checkpoints.keras_hub import reading
from bert_tf.checkpoints.keras_hub import writing

is_at = reading.is_at
open_source = reading.open_source
placement = writing.placement
write = writing.write
library_outputs = writing.library_outputs
