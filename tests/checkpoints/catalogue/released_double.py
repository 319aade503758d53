"""A test double of a released model: tiny, and zipped like the real ones."""

import io
import zipfile

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.catalogue import fetching
from bert_tf.checkpoints.release import bundle
from bert_tf.modeling import bert
from bert_tf.modeling import released
from tests.modeling import small_config

NAME = "bert-double"
PATH = "2018_10_18/uncased_L-1_H-8_A-2"
TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##c", "d")
CONFIG = small_config.create(vocab_size=len(TOKENS), intermediate_size=32)
MODEL = released.ReleasedModel(
    name=NAME,
    num_layers=CONFIG.num_hidden_layers,
    hidden_size=CONFIG.hidden_size,
    vocab_size=CONFIG.vocab_size,
)
# The zips of 2018 have a folder around the files, those of 2020 have none.
FOLDER = "uncased_L-1_H-8_A-2/"
FILES = (
    "bert_config.json",
    "bert_model.ckpt.data-00000-of-00001",
    "bert_model.ckpt.index",
    "vocab.txt",
)


def list_in_catalogue(base_url, *, patch=setattr, patch_item=None):
    """Makes the double a released model; a test passes monkeypatch's functions."""
    patch_item = patch_item or dict.__setitem__
    patch(fetching, "BASE_URL", base_url)
    patch_item(fetching.PATHS, NAME, PATH)
    patch_item(released.MODELS, NAME, MODEL)
    patch_item(fetching.ALIASES, NAME, NAME)
    patch_item(fetching.ALIASES, FOLDER.rstrip("/"), NAME)


def write_files(folder):
    """Writes what a released folder has into one that is there."""
    model = bert.BertModel(CONFIG)
    bundle.save(
        folder / "bert_model.ckpt", checkpoint_names.checkpoint_variables(model)
    )
    (folder / "bert_config.json").write_text(CONFIG.to_json_string())
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))


def read_files(folder):
    """Returns {name in a zip: bytes} of what `write_files` wrote."""
    return {FOLDER + path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def zipped(files):
    """Returns the bytes of a zip of {name: bytes}."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()
