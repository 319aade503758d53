"""Checks in sentence-transformers the folders that bert_tf writes.

    pip install -e .                                  # in one environment
    python tests/checkpoints/foreign/check_sentence_transformers.py write /tmp/written

    pip install sentence-transformers                 # in another
    python tests/checkpoints/foreign/check_sentence_transformers.py check /tmp/written

The first reads the recorded folders of sentence-transformers and writes them again. The
second loads what was written and compares vectors and scores with the recorded ones. It
prints one line per folder, and fails if a cosine is at most 0.999999 or a number
differs by more than 1e-5 of the largest one.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import sentence_transformers_folders as folders

SMALLEST_COSINE = 0.999999
TOLERANCE = 1e-5


def write(target):
    """Reads every recorded folder that bert_tf understands, and writes it again."""
    from bert_tf.checkpoints import hugging_face

    for version in (folders.NEW, folders.OLD):
        recorded = np.load(folders.FOLDER / version / "expected.npz")
        for name in folders.variants(version):
            if name not in recorded:
                continue  # It is refused.
            folder = target / f"{version}-{name}"
            folder.mkdir(parents=True)
            read = folders.create(target / "read" / folder.name, name, version)
            hugging_face.write(hugging_face.open_source(read), str(folder))


def check(target):
    """Prints a line for each folder; returns how many failed."""
    num_failed = 0
    for folder in sorted(target.glob("*-*")):
        version, _, name = folder.name.partition("-")
        expected = folders.expected(name, version)
        found, cosine = computed(folder, name, version, expected)
        difference = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
        is_good = cosine > SMALLEST_COSINE and difference < TOLERANCE
        num_failed += not is_good
        verdict = "ok" if is_good else "FAILED"
        print(f"{folder.name:24} {cosine:.7f} {difference:.1e}  {verdict}")
    return num_failed


def computed(folder, name, version, expected):
    """Returns the vectors or scores of a folder, and the least cosine of vectors."""
    import sentence_transformers

    texts = folders.texts(version)
    if name.startswith("ranker"):
        model = sentence_transformers.CrossEncoder(str(folder), device="cpu")
        return model.predict(texts["pairs"]), 1.0
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    vectors = model.encode(texts["texts"])
    return vectors, folders.least_cosine(vectors, expected)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    sys.exit({"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2])))
