"""XNLI: any language to train on, any to evaluate on."""

import pytest

from bert_tf.tasks.classification import glue

HEADER = "language\tgold_label\tsentence1_parse\tsentence1\tsentence2\tpromptID\n"


@pytest.fixture
def folder(tmp_path):
    """As both zip files unpack into one folder."""
    (tmp_path / "multinli").mkdir()
    for language, text in (("en", "Yes."), ("zh", "是。")):
        (tmp_path / "multinli" / f"multinli.train.{language}.tsv").write_text(
            f"premise\thypo\tlabel\n{text}\tNo.\tcontradictory\n{text}\tWhy?\tneutral\n"
        )
    rows = (
        "de\tneutral\t(p)\tJa.\tNein.\t1\n"
        "en\tentailment\t(p)\tYes.\tYes.\t1\n"
        "de\tcontradiction\t(p)\tJa.\tNie.\t2\n"
    )
    (tmp_path / "xnli.dev.tsv").write_text(HEADER + rows)
    (tmp_path / "xnli.test.tsv").write_text(HEADER + rows)
    return str(tmp_path)


def test_the_language_of_2018_is_the_default(folder):
    processor = glue.XnliProcessor(())
    assert processor.languages == ("zh",)
    assert processor.get_files(folder)["train"] == (
        f"{folder}/multinli/multinli.train.zh.tsv",
    )
    rows = processor.get_train_examples(folder)
    assert [(row.text_a, row.text_b, row.label) for row in rows] == [
        ("是。", "No.", "contradiction"),  # The file says "contradictory".
        ("是。", "Why?", "neutral"),
    ]
    with pytest.raises(ValueError, match="the language 'zh'; its languages are de, en"):
        processor.get_dev_examples(folder)


@pytest.mark.parametrize(
    "languages, sets",
    [
        (("de",), {"dev": ["Nein.", "Nie."]}),
        (("de", "en"), {"dev_de": ["Nein.", "Nie."], "dev_en": ["Yes."]}),
        (("all",), {"dev_de": ["Nein.", "Nie."], "dev_en": ["Yes."]}),
    ],
)
def test_one_language_is_one_set_and_several_are_several(folder, languages, sets):
    processor = glue.XnliProcessor(languages)
    evaluated = processor.read_sets(folder, "dev")
    assert {p: [row.text_b for row in rows] for p, rows in evaluated.items()} == sets
    tested = processor.read_sets(folder, "test")
    assert set(tested) == {part.replace("dev", "test") for part in sets}
    assert {row.label for rows in tested.values() for row in rows} == {None}


def test_training_languages_follow_one_another(folder):
    rows = glue.XnliProcessor(("en", "zh")).get_train_examples(folder)
    assert [row.text_a for row in rows] == ["Yes.", "Yes.", "是。", "是。"]
