"""Keras's own files: `.keras` and `.weights.h5`.

`reading` builds the model that a file belongs to and lets Keras load the weights;
`writing` lets Keras save a model. `settings` is what a file says besides its weights,
and `archive` opens the files.
"""

from bert_tf.checkpoints.keras_files import reading
from bert_tf.checkpoints.keras_files import writing

is_at = reading.is_at
open_source = reading.open_source
placement = writing.placement
write = writing.write
