"""all-MiniLM-L6-v2: real weights here, in transformers and in sentence-transformers."""

import json
import os
import subprocess

import numpy as np
import pytest

from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints import loading
from bert_tf.checkpoints.conversion import verification
from bert_tf.data import packing
from bert_tf.modeling import pooling as pooling_module
from bert_tf.tokenization import full

RECORD = "tests/checkpoints/foreign/record_sentence_encoder.py"
NUM_TEXTS = 200
LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ja", "ru", "th", "tr", "vi", "zh")
TOLERANCE = 1e-5

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def texts(shared):
    """Paragraphs of all languages, from all parts of their files, taking turns."""
    of_language = []
    for language in LANGUAGES:
        path = shared / "data" / "multilingual" / f"{language}.txt"
        lines = [line for line in path.read_text().split("\n") if line.strip()]
        of_language.append(lines[:: len(lines) // 17][:17])
    drawn = [lines[i] for i in range(17) for lines in of_language]
    return drawn[:NUM_TEXTS]


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory, texts, sentence_encoder, transformers_python, project_root
):
    """What transformers and sentence-transformers compute for the texts."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "texts.json").write_text(json.dumps(texts))
    script = project_root / RECORD
    arguments = [sentence_encoder, folder / "texts.json", folder / "result.npz"]
    done = subprocess.run(
        [transformers_python, script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return np.load(folder / "result.npz")


@pytest.fixture(scope="module")
def source(sentence_encoder):
    return hugging_face.open_source(sentence_encoder)


@pytest.fixture(scope="module")
def model(sentence_encoder):
    return loading.load_model(sentence_encoder)


def test_all_hidden_states_are_those_of_transformers(recorded, model):
    num_texts = num_padded = 0
    largest = {"layers": 0.0, "last": 0.0, "pooled": 0.0, "ours": 0.0, "theirs": 0.0}
    for number in range(NUM_TEXTS // 25):
        ids, mask = recorded[f"ids/{number}"], recorded[f"mask/{number}"]
        features = {
            "input_ids": ids.astype(np.int32),
            "input_mask": mask.astype(np.int32),
        }
        outputs = model(features)
        ours = np.stack([outputs["embedding_output"], *outputs["all_encoder_layers"]])
        theirs, exact = recorded[f"states/{number}"], recorded[f"exact/{number}"]
        is_real = mask == 1
        found = {
            # Of values up to 10: in parts of the largest of each layer.
            "layers": max(map(verification.difference, theirs, ours)),
            "last": np.max(np.abs(ours[-1] - theirs[-1])[is_real]),
            "pooled": np.max(
                np.abs(outputs["pooled_output"] - recorded[f"pooled/{number}"])
            ),
            "ours": np.max(np.abs(ours - exact)),
            "theirs": np.max(np.abs(theirs - exact)),
        }
        largest = {name: max(found[name], value) for name, value in largest.items()}
        num_texts += len(ids)
        num_padded += int(np.sum(mask[:, -1] == 0))
    print(largest)
    assert num_texts == NUM_TEXTS
    assert num_padded > 20  # The comparison has padding in it.
    assert max(largest["layers"], largest["last"], largest["pooled"]) <= TOLERANCE
    # Only rounding remains, no larger here than there.
    assert largest["ours"] <= largest["theirs"]


def test_ids_are_those_of_its_own_tokenizer(recorded, texts, source):
    tokenizer = full.FullTokenizer(source.vocabulary, source.do_lower_case)
    for number, text in enumerate(texts):
        batch, row = divmod(number, 25)
        theirs = recorded[f"ids/{batch}"][row]
        theirs = theirs[recorded[f"mask/{batch}"][row] == 1].tolist()
        pieces = ["[CLS]", *tokenizer.tokenize(text)[:126], "[SEP]"]
        assert tokenizer.convert_tokens_to_ids(pieces) == theirs, text


def test_vectors_of_texts_are_those_of_sentence_transformers(
    recorded, texts, source, model
):
    tokenizer = full.FullTokenizer(source.vocabulary, source.do_lower_case)
    features = packing.pack(
        tokenizer, texts, max_seq_length=int(recorded["max_length"])
    )
    vectors = []
    for start in range(0, NUM_TEXTS, 20):
        batch = {name: rows[start : start + 20] for name, rows in features.items()}
        pooled = pooling_module.pool(model(batch), batch["input_mask"], "mean")
        vectors.append(np.asarray(pooling_module.normalize(pooled)))
    cosines = np.sum(np.concatenate(vectors) * recorded["vectors"], axis=1)
    print(cosines.min())
    assert cosines.min() > 0.99999
