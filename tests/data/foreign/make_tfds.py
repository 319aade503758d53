"""Writes tfds/: small data sets prepared by the builders of TensorFlow Datasets.

The builders read the sources below, which have the published layouts, instead of
downloading them. Run it with the pinned packages (tensorflow-datasets 4.9.10):

    .venv/bin/python tests/data/foreign/make_tfds.py
"""

import itertools
import json
import pathlib
import shutil
import tempfile
from unittest import mock

import tensorflow_datasets as tfds

FOLDER = pathlib.Path(__file__).parent / "tfds"
CONTEXT = "The old mill stands in Bree. It was built in 1654 by Hob Hayward."
QUESTIONS = [
    ("q1", "Where does the mill stand?", "Bree"),
    ("q2", "Who built the mill?", "Hob Hayward"),
    ("q3", "When was it built?", "1654"),
]
SENTENCES = [
    [("Hob", "NNP", "B-NP", "B-PER"), ("lives", "VBZ", "B-VP", "O")],
    [("Bree", "NNP", "B-NP", "B-LOC"), ("sleeps", "VBZ", "B-VP", "O")],
    [("Rain", "NN", "B-NP", "O"), ("falls", "VBZ", "B-VP", "O")],
]
LABELS = ("neutral", "entailment", "contradiction")
LANGUAGES = [
    "ar",
    "bg",
    "de",
    "el",
    "en",
    "es",
    "fr",
    "hi",
    "ru",
    "sw",
    "th",
    "tr",
    "ur",
    "vi",
    "zh",
]


def squad(version):
    questions = []
    for qas_id, question, answer in QUESTIONS:
        start = CONTEXT.index(answer)
        answers = [{"text": answer, "answer_start": start}]
        entry = {"id": qas_id, "question": question, "answers": answers}
        if version == "v2.0":
            entry["is_impossible"] = qas_id == "q3"
            if entry["is_impossible"]:
                entry |= {"answers": [], "plausible_answers": answers}
        questions.append(entry)
    paragraphs = [{"context": CONTEXT, "qas": questions}]
    return {"data": [{"title": "Mill", "paragraphs": paragraphs}]}


def column_file():
    sentences = ["\n".join(map(" ".join, sentence)) for sentence in SENTENCES]
    return "-DOCSTART- -X- -X- O\n\n" + "\n\n".join(sentences) + "\n\n"


def xnli_rows():
    yield ["language", "gold_label", "sentence1", "sentence2", "pairID"]
    for number, label in enumerate(LABELS):
        for language in LANGUAGES:
            texts = [f"premise {number} {language}", f"hypothesis {number} {language}"]
            yield [language, label, *texts, str(number)]


def translated_rows(language):
    for number, label in enumerate(["neutral", "entailment", "contradictory"]):
        english = [f"premise {number} en", f"hypothesis {number} en"]
        own = [text.replace(" en", f" {language}") for text in english]
        yield [*english, *own, label]


def hellaswag_rows(split):
    kinds = itertools.product(("indomain", "zeroshot"), ("wikihow", "activitynet"))
    for number, (split_type, source) in enumerate(kinds):
        row = {
            "ctx": f"Hob takes sack {number}",
            "endings": ["and eats it.", "to the mill.", "to the moon.", "and flies."],
            "activity_label": "Milling",
            "split_type": split_type,
            "source_id": f"{source}~1",
        }
        yield row if split == "test" else row | {"label": number % 4}


def write_sources(folder):
    for version in ("v1.1", "v2.0"):
        for part in ("train", "dev"):
            (folder / f"{part}-{version}.json").write_text(json.dumps(squad(version)))
    (folder / "conll2003.zip").mkdir()
    for part in ("train", "valid", "test"):
        (folder / "conll2003.zip" / f"{part}.txt").write_text(column_file())
    (folder / "XNLI-1.0.zip" / "XNLI-1.0").mkdir(parents=True)
    for part in ("dev", "test"):
        rows = "\n".join(map("\t".join, xnli_rows()))
        path = folder / "XNLI-1.0.zip" / "XNLI-1.0" / f"xnli.{part}.tsv"
        path.write_text(rows + "\n")
    for language in LANGUAGES:
        rows = "\n".join(map("\t".join, translated_rows(language)))
        (folder / f"en-{language}-translated.tsv").write_text(rows + "\n")
    for split in ("train", "val", "test"):
        rows = "\n".join(map(json.dumps, hellaswag_rows(split)))
        (folder / f"hellaswag_{split}.jsonl").write_text(rows + "\n")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        sources = tfds.core.as_path(name)
        write_sources(pathlib.Path(name))

        def local(manager, urls):
            if isinstance(urls, dict):
                return {key: local(manager, url) for key, url in urls.items()}
            return sources / urls.rpartition("/")[2]

        manager = tfds.download.DownloadManager
        with mock.patch.object(manager, "download_and_extract", local):
            for data_set in (
                *("squad/v1.1", "squad/v2.0", "conll2003"),
                *("xnli", "xtreme_xnli", "hellaswag"),
            ):
                tfds.builder(data_set, data_dir=FOLDER).download_and_prepare()


if __name__ == "__main__":
    main()
