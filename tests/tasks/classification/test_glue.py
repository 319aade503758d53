import pytest

from bert_tf.tasks.classification import glue

# The first lines of each task's files, in the form that GLUE hands them out.
FILES = {
    "cola": {
        "train": "gj04\t1\t\tHe slept.\nbc01\t0\t*\tHim slept.\n",
        "dev": "gj04\t0\t*\tSlept he the.\n",
        "test": "index\tsentence\n0\tShe slept.\n",
    },
    "mrpc": {
        "train": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        '1\t7\t8\tHe said "yes.\tYes, he said.\n',
        "dev": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tA.\tB.\n",
        "test": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tC.\tD.\n",
    },
    "sst-2": {
        "train": "sentence\tlabel\na fine film \t1\n",
        "dev": "sentence\tlabel\ndull \t0\n",
        "test": "index\tsentence\n0\tuneasy mishmash .\n",
    },
    "sts-b": {
        "train": "index\tgenre\tsentence1\tsentence2\tscore\n0\tn\tA.\tB.\t3.800\n",
        "dev": "index\tgenre\tsentence1\tsentence2\tscore\n0\tn\tC.\tD.\t0.000\n",
        "test": "index\tgenre\tsentence1\tsentence2\n7\tn\tE.\tF.\n",
    },
    "qqp": {
        # The third line is torn in two by a line break in a question.
        "train": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "5\t1\t2\tHow?\tWhy?\t0\n6\t3\t4\tWho\n?\tWhen?\t1\n",
        "dev": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n9\t1\t2\tA\tB\t1\n",
        "test": "id\tquestion1\tquestion2\n0\tWhere?\tWhere to?\n",
    },
    "mnli": {
        "train": "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
        "0\tfiction\tA.\tB.\tneutral\tneutral\n",
        "dev_matched": "index\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n"
        "0\tC.\tD.\tneutral\tneutral\tentailment\n",
        "dev_mismatched": "index\tsentence1\tsentence2\tgold_label\n"
        "0\tE.\tF.\tcontradiction\n",
        "test_matched": "index\tsentence1\tsentence2\n0\tG.\tH.\n",
        "test_mismatched": "index\tsentence1\tsentence2\n0\tI.\tJ.\n",
    },
    "qnli": {
        "train": "index\tquestion\tsentence\tlabel\n0\tA?\tB.\tentailment\n",
        "dev": "index\tquestion\tsentence\tlabel\n0\tC?\tD.\tnot_entailment\n",
        "test": "index\tquestion\tsentence\n0\tE?\tF.\n",
    },
    "rte": {
        "train": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tnot_entailment\n",
        "dev": "index\tsentence1\tsentence2\tlabel\n0\tC.\tD.\tentailment\n",
        "test": "index\tsentence1\tsentence2\n0\tE.\tF.\n",
    },
    "wnli": {
        "train": "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\t1\n",
        "dev": "index\tsentence1\tsentence2\tlabel\n0\tC.\tD.\t0\n",
        "test": "index\tsentence1\tsentence2\n0\tE.\tF.\n",
    },
}


@pytest.fixture
def folder_of(tmp_path):
    def write_files(task_name):
        for set_type, text in FILES[task_name].items():
            (tmp_path / f"{set_type}.tsv").write_text(text, encoding="utf-8")
        return str(tmp_path)

    return write_files


# The first rows: text, second text, label.
@pytest.mark.parametrize(
    "task_name, rows",
    [
        ("cola", ["He slept. | 1", "Slept he the. | 0", "She slept."]),
        ("mrpc", ['He said "yes. | Yes, he said. | 1', "A. | B. | 0", "C. | D."]),
        ("sst-2", ["a fine film  | 1", "dull  | 0", "uneasy mishmash ."]),
        ("sts-b", ["A. | B. | 3.800", "C. | D. | 0.000", "E. | F."]),
        ("qqp", ["How? | Why? | 0", "A | B | 1", "Where? | Where to?"]),
        # The label is that of the last column, not label1.
        ("mnli", ["A. | B. | neutral", "C. | D. | entailment", "G. | H."]),
        ("qnli", ["A? | B. | entailment", "C? | D. | not_entailment", "E? | F."]),
        ("rte", ["A. | B. | not_entailment", "C. | D. | entailment", "E. | F."]),
        ("wnli", ["A. | B. | 1", "C. | D. | 0", "E. | F."]),
    ],
)
def test_a_task_reads_its_files(folder_of, task_name, rows):
    folder = folder_of(task_name)
    processor = glue.PROCESSORS[task_name]()
    firsts = [
        processor.get_train_examples(folder)[0],
        processor.get_dev_examples(folder)[0],
        processor.get_test_examples(folder)[0],
    ]
    fields = [filter(None, (e.text_a, e.text_b, e.label)) for e in firsts]
    assert [" | ".join(one) for one in fields] == rows
    assert [e.label is None for e in firsts] == [False, False, True]
    first = 0 if task_name == "cola" else 1  # Without a header, rows count from 0.
    names = [f"train-{first}", f"dev-{first}", "test-1"]
    assert [example.guid for example in firsts] == names


@pytest.mark.parametrize(
    "task_name, labels",
    [
        ("cola", ["0", "1"]),
        ("sts-b", []),  # Numbers.
        ("mnli", ["contradiction", "entailment", "neutral"]),  # As in the release.
        ("rte", ["entailment", "not_entailment"]),
    ],
)
def test_classes_are_in_the_order_of_the_outputs(task_name, labels):
    assert glue.PROCESSORS[task_name]().get_labels() == labels


def test_mnli_has_two_sets_to_evaluate_on_and_two_to_predict(folder_of):
    folder, processor = folder_of("mnli"), glue.MnliProcessor()
    dev, test = (processor.read_sets(folder, kind) for kind in ("dev", "test"))
    texts = {part: rows[0].text_a for part, rows in (dev | test).items()}
    assert texts == {
        "dev": "C.",
        "dev_mismatched": "E.",
        "test": "G.",
        "test_mismatched": "I.",
    }


def test_rows_that_glue_broke_are_left_out_of_qqp_with_a_warning(folder_of, caplog):
    folder = folder_of("qqp")
    assert len(glue.QqpProcessor().get_train_examples(folder)) == 1
    [record] = caplog.records
    assert "train.tsv:3: expected 6 columns" in record.getMessage()
    assert "Skipped 2 rows with such errors" in record.getMessage()


@pytest.mark.parametrize(
    "line, message",
    [
        ("gj04\t2\t\tHe slept.\n", r"train\.tsv:1: the label '2' is not one of 0, 1"),
        ("gj04\t1\tHe slept.\n", r"train\.tsv:1: expected 4 columns .*, got 3"),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_line(tmp_path, line, message):
    (tmp_path / "train.tsv").write_text(line)
    with pytest.raises(ValueError, match=message):
        glue.ColaProcessor().get_train_examples(str(tmp_path))


@pytest.mark.parametrize(
    "task_name, folder, counts",
    [
        ("cola", "CoLA", (8551, 1043, 1063)),
        ("mrpc", "MRPC", (3668, 408, 1725)),
        ("sst-2", "SST-2", (67349, 872, 1821)),
        ("sts-b", "STS-B", (5749, 1500, 1379)),
        ("rte", "RTE", (2490, 277, 3000)),
        ("wnli", "WNLI", (635, 71, 146)),
    ],
)
def test_the_real_files_have_the_published_numbers_of_examples(
    shared, task_name, folder, counts
):
    folder = str(shared / "data" / "glue" / folder)
    processor = glue.PROCESSORS[task_name]()
    lengths = [
        len(processor.get_train_examples(folder)),
        len(processor.get_dev_examples(folder)),
        len(processor.get_test_examples(folder)),
    ]
    assert tuple(lengths) == counts


# Any language to train on, any to evaluate on.
XNLI_HEADER = "language\tgold_label\tsentence1_parse\tsentence1\tsentence2\tpromptID\n"


@pytest.fixture
def xnli(tmp_path):
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
    (tmp_path / "xnli.dev.tsv").write_text(XNLI_HEADER + rows)
    (tmp_path / "xnli.test.tsv").write_text(XNLI_HEADER + rows)
    return str(tmp_path)


def test_the_language_of_2018_is_the_default(xnli):
    processor = glue.XnliProcessor(())
    assert processor.languages == ("zh",)
    assert processor.get_files(xnli)["train"] == (
        f"{xnli}/multinli/multinli.train.zh.tsv",
    )
    rows = processor.get_train_examples(xnli)
    assert [(row.text_a, row.text_b, row.label) for row in rows] == [
        ("是。", "No.", "contradiction"),  # The file says "contradictory".
        ("是。", "Why?", "neutral"),
    ]
    with pytest.raises(ValueError, match="the language 'zh'; its languages are de, en"):
        processor.get_dev_examples(xnli)


@pytest.mark.parametrize(
    "languages, sets",
    [
        (("de",), {"dev": ["Nein.", "Nie."]}),
        (("de", "en"), {"dev_de": ["Nein.", "Nie."], "dev_en": ["Yes."]}),
    ],
)
def test_one_language_is_one_set_and_several_are_several(xnli, languages, sets):
    processor = glue.XnliProcessor(languages)
    evaluated = processor.read_sets(xnli, "dev")
    assert {p: [row.text_b for row in rows] for p, rows in evaluated.items()} == sets
    tested = processor.read_sets(xnli, "test")
    assert set(tested) == {part.replace("dev", "test") for part in sets}
    assert {row.label for rows in tested.values() for row in rows} == {None}


def test_training_languages_follow_one_another(xnli):
    rows = glue.XnliProcessor(("en", "zh")).get_train_examples(xnli)
    assert [row.text_a for row in rows] == ["Yes.", "Yes.", "是。", "是。"]
