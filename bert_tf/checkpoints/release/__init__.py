"""The native format: checkpoints of the 2018 release, and those of a run.

`folder` reads and writes a checkpoint with the files beside it. Below it, `bundle`
reads and writes the tensors of one checkpoint; `state_file` is the text file
`checkpoint`; `rotation` keeps the newest checkpoints of a run.
"""

from bert_tf.checkpoints.release import folder as release_folder

is_at = release_folder.is_at
open_source = release_folder.open_source
placement = release_folder.placement
write = release_folder.write
