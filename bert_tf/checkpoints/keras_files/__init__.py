"""Keras's own files: `.keras` and `.weights.h5`.

`reading` builds the model that a file belongs to and lets Keras load the weights;
`writing` lets Keras save a model. `settings` is what a file says besides its weights,
and `archive` opens the files.
"""

from bert_tf.checkpoints.keras_files import reading as keras_files_reading
from bert_tf.checkpoints.keras_files import writing as keras_files_writing

is_at = keras_files_reading.is_at
open_source = keras_files_reading.open_source
placement = keras_files_writing.placement
write = keras_files_writing.write
