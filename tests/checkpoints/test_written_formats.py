"""What every format that is written promises: the same model, or one clear error."""

import dataclasses
import shutil

import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from tests import ring
from tests.checkpoints import sources

# Name of the target -> its format, and its files with weights.
TARGETS = {
    "release": ("bert", ["bert_model.ckpt.index", "bert_model.ckpt.data-*"]),
    "transformers": ("hugging_face", ["model.safetensors"]),
    "preset": ("keras_hub", ["model.weights.h5"]),
    "model.keras": ("keras", None),
}
HEADS = [
    *((kind, "single_label") for kind in checkpoint_heads.KINDS),
    ("classification", "multi_label"),
    ("classification", "regression"),
]
KERAS_HUB_KINDS = ("encoder", "classification")


def write(source, target, folder):
    """Writes a source and returns the path, and the source's placement."""
    format_name, weight_files = TARGETS[target]
    if format_name == "keras_hub":
        pytest.importorskip("keras_hub")
    module = formats.module_of(format_name)
    path = folder / target
    if weight_files is not None:
        path.mkdir()
    module.write(source, str(path))
    return path, module.placement(source)


def is_quick(target, kind, label_kind):
    """Every format writes a setting alike."""
    return label_kind == "single_label" or target == "transformers"


@pytest.mark.parametrize(
    "target, kind, label_kind",
    [
        (target, kind, label_kind)
        if is_quick(target, kind, label_kind)
        else ring.slow(target, kind, label_kind)
        for target in TARGETS
        for kind, label_kind in HEADS
        if target != "preset" or kind in KERAS_HUB_KINDS
    ],
)
def test_a_model_is_read_back_bit_by_bit(tmp_path, target, kind, label_kind):
    source = sources.create(kind, label_kind)
    path, placement = write(source, target, tmp_path)
    assert formats.detect(path) == TARGETS[target][0]
    read = formats.open_source(path)
    before, after = sources.arrays_of(source), sources.arrays_of(read)
    assert set(after) == set(placement.places)
    # The classes of transformers for words and answers have no pooler.
    assert all("bert/pooler/" in name for name in before.keys() - after.keys())
    for name, array in after.items():
        assert (array.dtype, array.tobytes()) == ("float32", before[name].tobytes())
        assert read.shapes[name] == source.shapes[name]
    has_labels = target != "preset"
    labels = source.head.labels if has_labels else None
    assert read.head == dataclasses.replace(source.head, labels=labels)
    assert (read.config, read.unmapped, read.optimizer) == (source.config, (), ())
    assert read.vocabulary.tokens == sources.TOKENS
    assert read.notes == read.warnings == ()
    assert read.do_lower_case is True


def test_a_preset_of_several_numbers_is_refused(tmp_path):
    head = checkpoint_heads.Head(
        kind="classification", num_labels=3, label_kind="regression"
    )
    with pytest.raises(ValueError, match="cannot record that 3 outputs are numbers"):
        write(sources.create("classification", head=head), "preset", tmp_path)


SETTINGS = {
    "encoder": {
        "strip_accents": False,
        "never_split": ("b",),
        "max_seq_length": 9,
        "pooling": "max",
        "normalize": True,
        "prompts": {"query": "query: ", "passage": ""},
        "default_prompt_name": "query",
        "similarity": "dot",
    },
    "regression": {"max_seq_length": 9, "output_activation": "sigmoid"},
}


@pytest.mark.parametrize("target", sorted(TARGETS.keys() - {"preset"}))
@pytest.mark.parametrize("name", SETTINGS)
def test_how_text_becomes_vectors_and_scores_is_read_back(tmp_path, target, name):
    source = sources.create()
    if name == "regression":
        source = sources.create("classification", name)
    text = dataclasses.replace(source.text, **SETTINGS[name])
    path, placement = write(dataclasses.replace(source, text=text), target, tmp_path)
    assert placement.unsaid == ()
    read = formats.open_source(path)
    assert read.text.to_dict() == text.to_dict()
    assert read.vocabulary.tokens == text.vocabulary.tokens


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Returns the path of a written classifier, each written once."""
    paths = {}

    def find(target):
        if target not in paths:
            folder = tmp_path_factory.mktemp("written")
            source = sources.create("classification")
            paths[target], _ = write(source, target, folder)
        return paths[target]

    return find


@pytest.mark.parametrize("share", [0, 0.5, 0.999])
@pytest.mark.parametrize(
    "target, name",
    [(target, n) for target, (_, names) in TARGETS.items() for n in names or [None]],
)
def test_a_file_that_was_cut_short_is_named_in_one_line(
    tmp_path, written, target, name, share
):
    copy = tmp_path / target
    copy_path = shutil.copy if name is None else shutil.copytree
    copy_path(written(target), copy)
    file = copy if name is None else next(copy.glob(name))
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    with pytest.raises(ValueError, match=r"truncated|damaged") as error:
        sources.arrays_of(formats.open_source(copy))
    assert str(copy) in str(error.value)
    assert "\n" not in str(error.value)


# The release's format takes any weights.
@pytest.mark.parametrize("target", [one for one in TARGETS if one != "release"])
def test_a_model_without_some_weights_is_refused_and_nothing_is_written(
    tmp_path, target
):
    source = sources.create()
    shapes = {n: s for n, s in source.shapes.items() if "layer_1/output" not in n}
    with pytest.raises(ValueError, match=r"elsewhere lacks 4 of the .*layer_1/output"):
        write(dataclasses.replace(source, shapes=shapes), target, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
