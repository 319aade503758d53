"""SavedModels that fill masks: what they say about texts that they cannot fill."""

import pytest
import tensorflow as tf

import bert_tf
from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from tests import ring
from tests import runs


@pytest.fixture(scope="module")
def checkpoint(golden):
    return {
        "init_checkpoint": str(golden / "model" / "bert_model.ckpt"),
        "vocab_file": str(golden / "vocab.txt"),
    }


@pytest.fixture(scope="module")
def exported(checkpoint, tmp_path_factory):
    """Folder of the SavedModel of a released checkpoint, at most 12 pieces."""
    folder = str(tmp_path_factory.mktemp("exports") / "1")
    export.run(
        serving_options.ExportSavedModelOptions(
            export_dir=folder,
            head="masked_lm",
            top_k=3,
            max_seq_length=12,
            **checkpoint,
        )
    )
    return folder


@pytest.fixture(scope="module")
def serve(exported):
    """The signature of the SavedModel in memory."""
    return tf.saved_model.load(exported).signatures["serving_default"]


def test_every_mask_of_a_text_has_its_likeliest_words(exported, checkpoint):
    texts = ["the [MASK] of [MASK]", "[MASK]", "the\u00a0[MASK], [mask]"]
    answers = client.open_saved_model(exported).ask(text=texts)
    model = bert_tf.load(
        checkpoint["init_checkpoint"], vocab_file=checkpoint["vocab_file"]
    )
    assert [answer.pop("status") for answer in answers] == ["ok"] * 3
    runs.assert_close(answers, model.predict(texts, top_k=3))


@pytest.mark.parametrize(
    "text, num_masks, status",
    [
        ("no mask", 0, "no_mask"),
        ring.slow("", 0, "no_mask"),
        ring.slow("[mask]", 0, "no_mask"),
        # 12 pieces with [CLS] and [SEP].
        ring.slow("[MASK]" + " the" * 9, 1, "ok"),
        ("[MASK]" + " the" * 10, 1, "too_long"),  # Although the mask itself would fit.
        ring.slow("the " * 20 + "[MASK]", 1, "too_long"),
        ring.slow("the " * 20, 0, "too_long"),
    ],
)
def test_the_status_says_why_a_text_has_no_words(serve, text, num_masks, status):
    outputs = serve(text=tf.constant([text, "a [MASK] [MASK]"]))
    answers = {name: values.numpy() for name, values in outputs.items()}
    assert answers["status"].tolist() == [status.encode(), b"ok"]
    assert answers["num_masks"].tolist() == [num_masks, 2]
    assert answers["tokens"].shape == (2, 2, 3)
    for is_filled in (answers["tokens"] != b"", answers["probabilities"] > 0):
        assert is_filled.all(axis=2).tolist() == [[status == "ok", False], [True] * 2]


@pytest.mark.slow
def test_more_words_than_the_vocabulary_has_are_all_of_it(checkpoint, tmp_path):
    folder = str(tmp_path / "1")
    export.run(
        serving_options.ExportSavedModelOptions(
            export_dir=folder, head="masked_lm", top_k=10**6, **checkpoint
        )
    )
    [answer] = client.open_saved_model(folder).ask(text=["a [MASK]"])
    probabilities = [one["probability"] for one in answer["masks"][0]]
    assert sum(probabilities) == pytest.approx(1, abs=1e-4)


def test_top_k_is_only_for_models_that_fill_masks(single_run, tmp_path):
    with pytest.raises(ValueError, match=r"--top_k=3, but .* 'classification'"):
        export.export_saved_model(single_run, str(tmp_path / "1"), top_k=3)
    assert not (tmp_path / "1").exists()


def test_a_checkpoint_without_the_head_is_refused(single_run, tmp_path):
    with pytest.raises(ValueError, match=r"--head=masked_lm, but .* has no such head"):
        export.run(
            serving_options.ExportSavedModelOptions(
                export_dir=str(tmp_path / "1"),
                init_checkpoint=single_run,
                head="masked_lm",
            )
        )
