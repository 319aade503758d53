import fnmatch

import pytest

import bert_tf
from bert_tf import notebook


def test_a_notebook_keeps_its_files_in_the_given_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("BERT_TF_TINY", raising=False)
    monkeypatch.setenv("BERT_TF_ENCODER", "models/own")
    setup = notebook.prepare("retrieval", str(tmp_path))
    assert setup.path("run") == str(tmp_path / "retrieval" / "run")
    assert (tmp_path / "retrieval").is_dir()
    assert (setup.device, setup.dtype) == ("cpu", "float32")
    assert "encoder" not in setup.last_run_on()
    assert setup.encoder("bert-mini") == "models/own"
    assert "with the encoder models/own" in setup.last_run_on()
    monkeypatch.delenv("BERT_TF_ENCODER")
    assert setup.encoder("bert-mini") == "bert-mini"
    assert "full form" in setup.last_run_on()


@pytest.mark.parametrize(
    "file, device",
    [
        ("/dev/accel0", "tpu"),  # Up to v4.
        ("/dev/vfio/0", "tpu"),  # v5e and v6e.
        ("/dev/vfio/vfio", "cpu"),  # Any machine with Linux's module vfio.
    ],
)
def test_a_tpu_is_found_by_the_files_of_its_chips(file, device, tmp_path, monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    monkeypatch.setattr(
        notebook.glob, "glob", lambda pattern: fnmatch.filter([file], pattern)
    )
    assert notebook.prepare("retrieval", str(tmp_path)).device == device


# Keras saves its model with an older convention of NumPy's.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_test_starts_from_a_tiny_encoder_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_TINY", "1")
    setup = notebook.prepare("retrieval", str(tmp_path))
    model, tokenizer = bert_tf.from_pretrained(setup.encoder("bert-mini"))
    assert model(tokenizer(["Stir the soup."]))["pooled_output"].shape == (1, 64)
    assert "tiny" in str(setup)


def test_the_masked_word_is_a_frequent_content_word_that_is_one_piece(tmp_path):
    (tmp_path / "train.txt").write_text("the on cat sat\n" * 9 + "the on mat cow\n" * 3)
    (tmp_path / "vocab.txt").write_text("the\non\ncat\nsat\nmat\n")
    lines = ["The mat.", "", "The cow lay on the mat in the evening."]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    masked = notebook.masked_texts(
        tmp_path / "t.txt",
        5,
        train_file=tmp_path / "train.txt",
        vocab_file=tmp_path / "vocab.txt",
    )
    # The first sentence is too short, "the" is too frequent, and "cow" is no piece.
    assert masked == [("The cow lay [MASK] the mat in the evening.", "on")]
