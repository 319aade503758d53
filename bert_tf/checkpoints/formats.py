"""Every format by its name: which one a path is of, and its `Source`."""

import dataclasses
import importlib
import os

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.checkpoints.catalogue import models


@dataclasses.dataclass(frozen=True, kw_only=True)
class Format:
    """Where a format is read and written, and how it is known."""

    module: str  # Has is_at, open_source; placement and write where it is written.
    shown_by: str  # What is looked for at a path; for messages.


# In the order in which a path is looked at. Modules are imported when they are
# needed: some need a package that is not there without an extra.
FORMATS = {
    "bert": Format(
        module="bert_tf.checkpoints.release.folder",
        shown_by="bert_model.ckpt.index, or a file named checkpoint",
    ),
    "hugging_face": Format(
        module="bert_tf.checkpoints.hugging_face",
        shown_by="config.json with model.safetensors",
    ),
    "keras_hub": Format(
        module="bert_tf.checkpoints.keras_hub.preset",
        shown_by="config.json with model.weights.h5",
    ),
    "keras": Format(
        module="bert_tf.checkpoints.keras_files.reading",
        shown_by="a file that ends in .keras or .weights.h5",
    ),
    "saved_model": Format(
        module="bert_tf.checkpoints.tf2.saved_model", shown_by="saved_model.pb"
    ),
    "model_garden": Format(
        module="bert_tf.checkpoints.tf2.model_garden",
        shown_by="an object-based TensorFlow 2 checkpoint",
    ),
}
# A place of the name in every BERT: its rows are the vocabulary's pieces.
_WORD_EMBEDDINGS = "bert/embeddings/word_embeddings"
# Tables are padded to multiples of 8, 64 or 128.
_MAX_PADDING = 128
WRITTEN_FORMATS = ("bert", "hugging_face", "keras_hub", "keras", "saved_model")


def module_of(name):
    """Returns the module of a format.

    Raises:
        ValueError: there is no such format.
        ImportError: it needs a package that is not installed; the message names the
            extra.
    """
    if name not in FORMATS:
        raise ValueError(
            f"Unknown format {name!r}; expected one of {', '.join(FORMATS)}."
        )
    return importlib.import_module(FORMATS[name].module)


def is_catalogue_name(path):
    """Returns whether a path is the name of a released model, and nothing is there."""
    path = os.fspath(path)
    is_name = models.is_name(path)
    return is_name and not files.exists(path) and not files.exists(f"{path}.index")


def detect(path):
    """Returns the name of the format that a path is of.

    Args:
        path: a checkpoint's prefix, a file or a folder.

    Raises:
        FileNotFoundError: there is nothing of this name.
        ValueError: what is there is of no known format.
    """
    path = os.fspath(path)
    for name in FORMATS:
        if module_of(name).is_at(path):
            return name
    looked_for = "; ".join(f"{one.shown_by} ({name})" for name, one in FORMATS.items())
    if files.exists(path):
        kind = "folder" if files.is_folder(path) else "file"
        raise ValueError(
            f"{path} is a {kind} of no known format; looked for {looked_for}."
        )
    raise FileNotFoundError(
        f"There is no checkpoint {path}, and no released model of that name (such as "
        f"bert-base-uncased); expected a folder, a file or a prefix: {looked_for}."
    )


def open_source(path, format_name=None, *, progress=progress_module.silent):
    """Returns the `Source` of a checkpoint of any format.

    Args:
        path: a checkpoint's prefix, a file, a folder, or the name of a released model
            such as "bert-base-uncased", which is fetched where there is no such path.
        format_name: a key of `FORMATS`; None finds it out.
        progress: told about a download.

    Raises:
        OSError: there is no such checkpoint, or it cannot be read or fetched.
        ValueError: it is of no known format, damaged, or no BERT.
        ImportError: its format needs a package that is not installed.
    """
    path = os.fspath(path)
    if is_catalogue_name(path):
        folder = fetching.fetch(path, progress=progress)
        source = open_source(folder, "bert")
        do_lower_case = models.find(path).model.do_lower_case
        return dataclasses.replace(source, do_lower_case=do_lower_case)
    return module_of(format_name or detect(path)).open_source(path)


def check_vocabulary(source: source_module.Source) -> None:
    """Checks a source's own vocabulary against its embedding table.

    Raises:
        ValueError: it has more or fewer pieces than the table has rows; a Hugging
            Face table may be padded to a multiple of 8, by less than 128 rows.
    """
    if source.vocabulary is None or _WORD_EMBEDDINGS not in source.shapes:
        return
    num_rows = source.shapes[_WORD_EMBEDDINGS][0]
    if len(source.vocabulary) != num_rows and not _is_padded(source, num_rows):
        raise ValueError(
            f"The vocabulary of {source.path} has {len(source.vocabulary)} pieces, but "
            f"its embedding table has {num_rows} rows, so ids would be wrong; give the "
            "vocabulary that belongs to it as --vocab_file. (One named so may be the "
            "shorter one: a table can be padded.)"
        )


def _is_padded(source, num_rows):
    """Returns whether a table was made longer to suit an accelerator, as is usual
    with Hugging Face; elsewhere a shorter vocabulary has most likely lost lines."""
    num_extra = num_rows - len(source.vocabulary)
    is_usual = source.format == "hugging_face" and num_rows % 8 == 0
    return is_usual and 0 < num_extra < _MAX_PADDING
