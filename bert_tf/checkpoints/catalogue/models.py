"""Models by name: the URL of each released model's zip, and the model in this package.

Files and folders of the same name come first; see `formats.open_source`.
"""

import dataclasses
import pathlib

from bert_tf.modeling import released

BASE_URL = "https://storage.googleapis.com/bert_models"
_SMALL_RELEASE = "2020_02_20"
# The model in this package; its README.md says what it learned.
SHIPPED = "bert-tf-mini"
SHIPPED_FOLDER = str(pathlib.Path(__file__).with_name(SHIPPED))
# Name -> path of its zip below the URL, without ".zip". The small models follow a rule.
_PATHS = {
    "bert-base-uncased": "2018_10_18/uncased_L-12_H-768_A-12",
    "bert-large-uncased": "2018_10_18/uncased_L-24_H-1024_A-16",
    "bert-base-cased": "2018_10_18/cased_L-12_H-768_A-12",
    "bert-large-cased": "2018_10_18/cased_L-24_H-1024_A-16",
    "bert-large-uncased-whole-word-masking": (
        "2019_05_30/wwm_uncased_L-24_H-1024_A-16"
    ),
    "bert-large-cased-whole-word-masking": "2019_05_30/wwm_cased_L-24_H-1024_A-16",
    "bert-base-multilingual-cased": "2018_11_23/multi_cased_L-12_H-768_A-12",
    "bert-base-multilingual-uncased": "2018_11_03/multilingual_L-12_H-768_A-12",
    "bert-base-chinese": "2018_11_03/chinese_L-12_H-768_A-12",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """A released model and its zip."""

    model: released.ReleasedModel  # Its name, size and casing.
    path: str  # Of the zip below `BASE_URL`, and of its folder in the cache.

    @property
    def url(self) -> str:
        """URL of the zip."""
        return f"{BASE_URL}/{self.path}.zip"

    @property
    def folder(self) -> str:
        """Name of the released folder, which shows the casing."""
        return self.path.rpartition("/")[2]


# Name -> entry of all 33 models.
MODELS = {
    name: Entry(model=model, path=_PATHS.get(name, f"{_SMALL_RELEASE}/{name}"))
    for name, model in released.MODELS.items()
}
# Any known name -> name: names of released folders, and those in the README of the
# small models. The folder uncased_L-12_H-768_A-12 was released twice. Here the name
# means the model of 2020, like the names of all small models; that of 2018 is
# bert-base-uncased.
ALIASES = {
    **{entry.folder: name for name, entry in MODELS.items()},
    **{name: name for name in MODELS},
    **released.ALIASES,
}


def is_name(name: str) -> bool:
    """Returns whether a text names a released model or its folder."""
    return name in ALIASES


def find(name: str) -> Entry:
    """Returns the `Entry` of a released model.

    Args:
        name: such as "bert-base-uncased", "bert-tiny", or the name of a released
            folder, such as "cased_L-12_H-768_A-12".

    Raises:
        ValueError: no released model has this name.
    """
    if name not in ALIASES:
        released.find(name)  # Raises an error that lists the names.
    return MODELS[ALIASES[name]]
