"""Puts together the folders that make_sentence_transformers.py wrote in parts."""

import json
import pathlib
import shutil

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "sentence_transformers"
NEW, OLD = "6.2.0", "4.1.0"


def variants(version=NEW):
    """Returns {name of a folder: {file: text}} of a version of the library."""
    return json.loads((FOLDER / version / "variants.json").read_text())


def create(target, name, version=NEW):
    """Creates a folder as the library wrote it; returns its path."""
    is_ranker = name.startswith("ranker")
    shared = FOLDER / version / ("shared_ranker" if is_ranker else "shared")
    shutil.copytree(shared, target)
    for place, text in variants(version)[name].items():
        path = pathlib.Path(target) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(target)


def expected(name, version=NEW):
    """Returns what the library computes: vectors of texts, or scores of pairs."""
    return np.load(FOLDER / version / "expected.npz")[name]


def texts(version=NEW):
    """Returns {"texts": texts, "pairs": pairs of texts}."""
    return json.loads((FOLDER / version / "texts.json").read_text())


def least_cosine(vectors, others):
    """Returns the least cosine of two vectors in the same row."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(others, axis=1)
    return float(np.min(np.sum(vectors * others, axis=1) / lengths))
