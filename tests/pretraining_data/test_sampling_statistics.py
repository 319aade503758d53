"""The samplers against that of the release, on the same text.

Every word of the text identifies its document, so the ids of a record show its
origin. What must hold for every record is counted; what is random is compared
over several runs of both samplers, whose spread says how far apart they may be.
"""

import types

import numpy as np
import pytest

from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import numpy_arrays
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import rows as rows_module
from bert_tf.pretraining_data import shard_tasks
from bert_tf.tokenization import vocabulary as vocabulary_module
from tests import ring

NUM_DOCUMENTS = 40
WORDS_A_DOCUMENT = 12  # And as many pieces that continue a word.
FIRST_WORDS = 3  # Of these; sentences begin with them, and only sentences do.
NUM_SPECIAL = 5
LENGTH = 64
MOST_MASKED = 10
RUNS = 8
# Deviations between the samplers' means that count as a difference.
TOLERANCE = 4.5


def make_vocabulary():
    words = [
        f"{kind}{document:02d}w{word:02d}"
        for document in range(NUM_DOCUMENTS)
        for kind in ("d", "##c")
        for word in range(WORDS_A_DOCUMENT)
    ]
    return vocabulary_module.Vocabulary([*vocabulary_module.SPECIAL_TOKENS, *words])


def make_text():
    numbers = np.random.default_rng(5)
    lines = []
    for document in range(NUM_DOCUMENTS):
        for _ in range(numbers.integers(15, 70)):
            words = []
            for place in range(numbers.integers(3, 14)):
                low = FIRST_WORDS if place else 0
                high = WORDS_A_DOCUMENT if place else FIRST_WORDS
                word = f"d{document:02d}w{numbers.integers(low, high):02d}"
                for _ in range(max(0, numbers.integers(-3, 3))):
                    end = numbers.integers(WORDS_A_DOCUMENT)
                    word += f"c{document:02d}w{end:02d}"
                words.append(word)
            lines.append(" ".join(words))
        lines.append("")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("statistics")
    (folder / "text.txt").write_text(make_text(), encoding="utf-8")
    make_vocabulary().save(folder / "vocab.txt")
    return folder


def sampled(inputs, sampler, **changes):
    """Returns the records of RUNS runs, each with its own draws."""
    options = pretraining_data_options.CreatePretrainingDataOptions(
        input_file=str(inputs / "text.txt"),
        output_file="none",
        vocab_file=str(inputs / "vocab.txt"),
        sampler=sampler,
        max_seq_length=LENGTH,
        max_predictions_per_seq=MOST_MASKED,
        **{"dupe_factor": 8, **changes},
    )
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    made = shard_tasks.create_sampler(options, vocabulary)
    [shard] = data_corpus.shards(options.input_file, 1.0)
    runs = []
    for run in range(RUNS):
        counts = counts_module.Counts()
        chunks = list(made.columns(shard, run, counts, lambda share: None))
        columns = {k: np.concatenate([c[k] for c in chunks]) for k in chunks[0]}
        runs.append(columns)
    return runs


def parsed(columns):
    """Returns records with their masks removed: arrays [B], [B, S]."""
    weights = columns["masked_lm_weights"] > 0
    rows, places = np.nonzero(weights)[0], columns["masked_lm_positions"][weights]
    ids = columns["input_ids"].astype(np.int64)
    original, is_chosen = ids.copy(), np.zeros(ids.shape, bool)
    original[rows, places] = columns["masked_lm_ids"][weights]
    is_chosen[rows, places] = True
    return types.SimpleNamespace(
        ids=original,
        masked_ids=ids,
        is_filled=columns["input_mask"] > 0,
        is_second=columns["segment_ids"] > 0,
        is_chosen=is_chosen,
        is_random_next=columns["next_sentence_labels"][:, 0] > 0,
        chosen=(rows, places),  # np.nonzero of is_chosen.
    )


def always(records, vocabulary, whole_words):
    """Returns the names of what must hold for every record and does not."""
    r, sep = records, vocabulary.sep_id
    lengths = r.is_filled.sum(axis=1)
    wanted = [min(MOST_MASKED, max(1, round(n * 0.15))) for n in lengths.tolist()]
    num_chosen = r.is_chosen.sum(axis=1)
    last = r.ids[np.arange(len(lengths)), lengths - 1]
    document = (r.ids - NUM_SPECIAL) // (2 * WORDS_A_DOCUMENT)
    is_piece = r.ids >= NUM_SPECIAL
    of_a = document_of(document, is_piece & ~r.is_second)
    of_b = document_of(document, is_piece & r.is_second)
    checks = {
        "frame": (r.ids[:, 0] == vocabulary.cls_id) & (last == sep),
        "two [SEP]": (r.ids == sep).sum(axis=1) == 2,
        "padding": ~(~r.is_filled & ((r.ids != 0) | r.is_second)).any(axis=1),
        "segments": (r.is_second & (r.ids == sep)).sum(axis=1) == 1,
        "both segments": (of_a >= 0) & (of_b >= 0),
        "special masked": ~(r.is_chosen & ~is_piece).any(axis=1),
        "document of B": (of_a != of_b) == r.is_random_next,
    }
    if whole_words:
        checks["number of predictions"] = num_chosen <= wanted
        checks["whole words"] = ~split_words(r, vocabulary).any(axis=1)
    else:
        checks["number of predictions"] = num_chosen == wanted
    return [name for name, holds in checks.items() if not np.all(holds)]


def document_of(document, is_piece):
    """Returns the one document of the pieces, or -1 where there are several."""
    low = np.where(is_piece, document, 10**6).min(axis=1)
    high = np.where(is_piece, document, -1).max(axis=1)
    return np.where(low == high, low, -1)


def split_words(r, vocabulary):
    """Returns bool [B, S]: a piece inside a word that is not as the one before it."""
    inside = np.array([token.startswith("##") for token in vocabulary.tokens])
    is_piece = r.ids >= NUM_SPECIAL
    goes_on = inside[r.ids] & np.roll(is_piece, 1, axis=1)
    return goes_on & (r.is_chosen != np.roll(r.is_chosen, 1, axis=1))


def statistics(records, vocabulary):
    """Returns what is random of one run, by name."""
    r = records
    lengths = r.is_filled.sum(axis=1)
    length_b = r.is_second.sum(axis=1) - 1
    length_a = lengths - length_b - 3
    now, before = r.masked_ids[r.chosen], r.ids[r.chosen]
    is_mask = now == vocabulary.mask_id
    is_random = ~is_mask & (now != before)
    split = length_a / (length_a + length_b)
    piece = (r.ids - NUM_SPECIAL) % (2 * WORDS_A_DOCUMENT)
    first_b = np.argmax(r.is_second, axis=1)
    rows = np.arange(len(lengths))
    found = {
        "records": len(lengths),
        "mask rate": len(now) / lengths.sum(),
        "share masked": is_mask.mean(),
        "share random": is_random.mean(),
        "share kept": (now == before).mean(),
        "random id": now[is_random].mean(),
        "number of predictions": r.is_chosen.sum(axis=1).mean(),
        "place of predictions": (r.chosen[1] / lengths[r.chosen[0]]).mean(),
        "predictions in B": r.is_second[r.chosen].mean(),
        "length": lengths.mean(),
        "split": split.mean(),
        "length of true B": length_b[~r.is_random_next].mean(),
        "length of random B": length_b[r.is_random_next].mean(),
        "random next": r.is_random_next.mean(),
        "random next of short": r.is_random_next[lengths < LENGTH // 2].mean(),
        "A begins a sentence": (piece[:, 1] < FIRST_WORDS).mean(),
        "B begins a sentence": (piece[rows, first_b] < FIRST_WORDS).mean(),
    }
    for low in (0, 16, 32, 48, LENGTH):
        found[f"length from {low}"] = (lengths // 16 * 16 == low).mean()
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        found[f"split from {low}"] = (np.floor(split * 5) / 5 == low).mean()
    return found


def violations(runs, reference, vocabulary, whole_words=False):
    """Returns the names of the statistics in which two samplers differ."""
    runs, reference = map(parsed, runs), map(parsed, reference)
    broken, tables = set(), []
    for records in runs:
        broken.update(always(records, vocabulary, whole_words))
        tables.append(statistics(records, vocabulary))
    expected = [statistics(records, vocabulary) for records in reference]
    for name in expected[0]:
        a, b = (np.array([t[name] for t in group]) for group in (tables, expected))
        spread = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / RUNS)
        if abs(a.mean() - b.mean()) > TOLERANCE * spread + 1e-9:
            broken.add(name)
    return broken


@pytest.fixture(scope="module")
def release(inputs):
    return sampled(inputs, "release")


WHOLE_WORDS = {"do_whole_word_mask": True, "dupe_factor": 3}


@pytest.fixture(scope="module")
def release_of_words(inputs):
    return sampled(inputs, "release", **WHOLE_WORDS)


@pytest.mark.parametrize("sampler", ["vectorized", "tf_data"])
def test_a_sampler_draws_the_distributions_of_the_release(inputs, release, sampler):
    runs = sampled(inputs, sampler)
    for both in (runs, release):
        assert sum(len(run["input_ids"]) for run in both) >= 20_000
    assert violations(runs, release, make_vocabulary()) == set()


# The tf_data sampler masks in the same way as the vectorized one; see test_rows.
def test_whole_words_are_drawn_as_in_the_release(inputs, release_of_words):
    runs = sampled(inputs, "vectorized", **WHOLE_WORDS)
    vocabulary = make_vocabulary()
    assert violations(runs, release_of_words, vocabulary, whole_words=True) == set()


@pytest.mark.parametrize("length, rows", [(511, 4000), (65_536, 300)])
def test_positions_are_chosen_evenly(length, rows):
    is_candidate = np.ones((rows, length), bool)
    wanted = np.ones(rows, np.int64)
    chosen = rows_module.choose_positions(
        numpy_arrays, is_candidate, wanted, numpy_arrays.Draws(3)
    )
    assert (chosen.sum(axis=1) == 1).all()
    mean = np.nonzero(chosen)[1].mean() / (length - 1)
    # The variance of what is even from 0 to 1 is 1/12.
    assert abs(mean - 0.5) < TOLERANCE * np.sqrt(1 / 12 / rows)


def masks_a_sep(position, end_a, end):
    return (position > 0) & (position < end)


def same_document(arrays, text, random_draws, document):
    return document


def no_coins(random_draws, counts):
    return np.zeros(len(counts), np.int64)


@pytest.mark.parametrize(
    "fault, found",
    [
        ((rows_module, "_candidates", masks_a_sep), {"special masked"}),
        ((pairs_module, "_other_documents", same_document), {"document of B"}),
        ((pairs_module, "_RANDOM_NEXT_PROB", 0.4), {"random next"}),
        ((numpy_arrays.Draws, "heads", no_coins), {"A begins a sentence"}),
    ],
)
def test_a_planted_fault_is_found(inputs, release, monkeypatch, fault, found):
    monkeypatch.setattr(*fault)
    runs = sampled(inputs, "vectorized")
    assert found <= violations(runs, release, make_vocabulary())


# The rows of Table 8 of the paper: [MASK], same, random.
@pytest.mark.parametrize("sampler", ["vectorized", "release"])
@pytest.mark.parametrize(
    "mask, same, random",
    [
        (0.8, 0.2, 0.0),
        ring.slow(0.0, 0.2, 0.8),
    ],
)
def test_chosen_pieces_become_what_the_shares_say(inputs, sampler, mask, same, random):
    shares = {"mask_share": mask, "same_share": same, "random_share": random}
    runs = sampled(inputs, sampler, **shares)
    vocabulary = make_vocabulary()
    columns = {
        name: np.concatenate([run[name] for run in runs])
        for name in ("input_ids", "masked_lm_positions", "masked_lm_ids")
    }
    is_chosen = np.concatenate([run["masked_lm_weights"] for run in runs]) > 0
    positions = columns["masked_lm_positions"]
    now = np.take_along_axis(columns["input_ids"], positions, axis=1)[is_chosen]
    before = columns["masked_lm_ids"][is_chosen]
    # A random piece is any one: [MASK] and the same one now and then.
    chance = random / len(vocabulary)
    for is_so, share in [(now == vocabulary.mask_id, mask), (now == before, same)]:
        expected = share + chance
        allowed = 4 * np.sqrt(expected * (1 - expected) / len(now))
        assert np.mean(is_so) == pytest.approx(expected, abs=allowed)


def test_missing_short_sequences_are_found(inputs, release):
    runs = sampled(inputs, "vectorized", short_seq_prob=0.0)
    assert {"length", "length from 16"} <= violations(runs, release, make_vocabulary())


def test_words_that_are_not_kept_together_are_found(inputs, release):
    runs = sampled(inputs, "vectorized")
    names = violations(runs, release, make_vocabulary(), whole_words=True)
    assert names == {"whole words"}
