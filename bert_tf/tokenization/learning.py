"""Learns a vocabulary of word pieces from text.

Words are counted as our tokenizer cuts and normalizes them, so that every piece is one
that it can find. The merging is done by the trainer of Hugging Face's `tokenizers`.
"""

import collections
import functools
import re

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

# Where the release's vocabularies have them: [PAD] at 0, then 99 unused ones, the other
# special tokens at 100 to 103, then the rest of the unused ones.
NUM_UNUSED_BEFORE_SPECIAL = 99
RELEASED_NUM_UNUSED, RELEASED_VOCAB_SIZE = 994, 30522  # bert-base-uncased.
SMALLEST_SIZE_WITH_RELEASED_PLACES = 1000
UNUSED = re.compile(r"\[unused\d+\]")

LINES_A_REPORT = 10_000
BYTES_A_MEGABYTE = 1_000_000


def learn_vocabulary(
    input_files,
    *,
    vocab_size,
    do_lower_case=True,
    strip_accents=None,
    num_unused=None,
    min_frequency=2,
    character_coverage=0.99995,
    progress=progress_module.silent,
):
    """Returns a `Vocabulary` learned from text files.

    Args:
        input_files: names and globs of UTF-8 files.
        vocab_size: number of tokens, special and unused ones included. Text that has
            fewer frequent pieces gives a smaller vocabulary.
        do_lower_case: whether the tokenizer that will use it lower-cases.
        strip_accents: whether it strips accents; None: as `do_lower_case`.
        num_unused: number of [unused] tokens, or None for `default_num_unused`.
        min_frequency: how often two pieces must stand side by side to become one.
        character_coverage: the share of words that must consist of known characters;
            the rarest characters are left out as far as that allows.
        progress: a `progress.Progress`.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not UTF-8, there are no words, or `vocab_size` is too
            small for the characters.
    """
    counts = count_words(
        input_files,
        do_lower_case=do_lower_case,
        strip_accents=strip_accents,
        progress=progress,
    )
    return vocabulary_from_counts(
        counts,
        vocab_size=vocab_size,
        num_unused=num_unused,
        min_frequency=min_frequency,
        character_coverage=character_coverage,
        progress=progress,
    )


def count_words(
    input_files,
    *,
    do_lower_case=True,
    strip_accents=None,
    progress=progress_module.silent,
):
    """Returns a Counter of the basic tokens in text files.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not UTF-8, or there are no words.
    """
    paths = files.expand(input_files)
    total = sum(map(files.size, paths)) / BYTES_A_MEGABYTE
    report = functools.partial(progress, "count words", total=total, unit="MB")
    as_written = collections.Counter()
    num_bytes = 0
    for path in paths:
        for number, line in enumerate(files.read_lines(path)):
            as_written.update(basic.split_words(line))
            num_bytes += len(line.encode("utf-8")) + 1
            if number % LINES_A_REPORT == 0:
                report(min(total, num_bytes / BYTES_A_MEGABYTE))
    report(total)
    tokenizer = basic.BasicTokenizer(do_lower_case, strip_accents=strip_accents)
    counts = collections.Counter()
    for word, count in as_written.items():
        for token in tokenizer.tokenize_word(word):
            counts[token] += count
    if not counts:
        raise ValueError(f"There are no words in {', '.join(paths)}.")
    return counts


def vocabulary_from_counts(
    counts,
    *,
    vocab_size,
    num_unused=None,
    min_frequency=2,
    character_coverage=0.99995,
    progress=progress_module.silent,
):
    """Returns a `Vocabulary` for words with counts.

    After the special and unused tokens come the characters by code point, then their
    "##" forms, then the learned pieces, about the most frequent first.

    Args:
        counts: mapping of word to int, how often it occurs.
        vocab_size, num_unused, min_frequency, character_coverage, progress: as
            `learn_vocabulary` takes them.

    Raises:
        ValueError: `vocab_size` does not hold the special and unused tokens and the
            characters, or the package `tokenizers` is not installed.
    """
    if num_unused is None:
        num_unused = default_num_unused(vocab_size)
    reserved = _reserved_tokens(num_unused)
    alphabet = _alphabet(counts, character_coverage)
    # Nothing stands before punctuation or an ideograph inside a word.
    inside = [wordpiece.CONTINUATION + c for c in alphabet if not _is_alone(c)]
    single = [*alphabet, *inside]
    num_pieces = vocab_size - len(reserved) - len(single)
    if num_pieces < 0:
        raise ValueError(
            f"--vocab_size={vocab_size} is too small: {len(reserved)} special and "
            f"unused tokens and {len(single)} forms of the text's {len(alphabet)} "
            f"characters are {len(reserved) + len(single)}; raise it, or lower "
            "--num_unused or --character_coverage."
        )
    known = frozenset(alphabet)
    learnable = {word: n for word, n in counts.items() if _is_learnable(word, known)}
    progress("learn pieces", 0, 1)
    pieces = _learn_pieces(learnable, single, num_pieces, min_frequency)
    progress("learn pieces", 1, 1)
    taken = {*reserved, *single}
    return vocabulary_module.Vocabulary(
        [*reserved, *single, *(piece for piece in pieces if piece not in taken)]
    )


def default_num_unused(vocab_size):
    """Returns how many [unused] tokens a vocabulary gets when nothing is said.

    As in bert-base-uncased, 994 in 30,522 and never more, in proportion; but from 1,000
    tokens on at least the 99 that put [UNK], [CLS], [SEP] and [MASK] at the release's
    100 to 103. Smaller vocabularies get one in twenty.
    """
    if vocab_size < SMALLEST_SIZE_WITH_RELEASED_PLACES:
        return vocab_size // 20
    in_proportion = vocab_size * RELEASED_NUM_UNUSED // RELEASED_VOCAB_SIZE
    return min(RELEASED_NUM_UNUSED, max(NUM_UNUSED_BEFORE_SPECIAL, in_proportion))


def _reserved_tokens(num_unused):
    unused = [f"[unused{number}]" for number in range(num_unused)]
    pad, *others = vocabulary_module.SPECIAL_TOKENS
    middle = NUM_UNUSED_BEFORE_SPECIAL
    return [pad, *unused[:middle], *others, *unused[middle:]]


def _alphabet(counts, character_coverage):
    """Returns the sorted characters that enough words consist of."""
    occurrences = collections.Counter()
    for word, count in counts.items():
        for character in word:
            occurrences[character] += count
    by_frequency = sorted(occurrences, key=lambda c: (-occurrences[c], c))
    rank = {character: number for number, character in enumerate(by_frequency)}
    num_words = collections.Counter()  # By the rank of their rarest character.
    for word, count in counts.items():
        num_words[max(map(rank.get, word))] += count
    missing = (1 - character_coverage) * sum(counts.values())
    size = len(by_frequency)
    while size > 1 and num_words[size - 1] <= missing:
        missing -= num_words[size - 1]
        size -= 1
    return sorted(by_frequency[:size])


def _is_alone(character):
    return characters.is_punctuation(character) or characters.is_chinese(character)


def _is_learnable(word, known):
    return len(word) <= wordpiece.MAX_INPUT_CHARS_PER_WORD and known.issuperset(word)


def _learn_pieces(counts, single, num_pieces, min_frequency):
    """Returns the pieces of several characters, in the order they were learned."""
    try:
        import tokenizers
    except ImportError as error:
        raise ValueError(
            "Learning a vocabulary needs the package tokenizers: "
            'pip install "bert_tf[vocabulary]".'
        ) from error
    # The trainer numbers characters as its hash table has them, and breaks ties by
    # number. Given as special tokens they have the same numbers in every run.
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=len(single) + num_pieces,
        min_frequency=min_frequency,
        special_tokens=single,
        continuing_subword_prefix=wordpiece.CONTINUATION,
        show_progress=False,
    )
    model = tokenizers.models.WordPiece(unk_token=vocabulary_module.UNK)
    learner = tokenizers.Tokenizer(model)
    learner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    texts = (" ".join([word] * counts[word]) for word in sorted(counts))
    learner.train_from_iterator(texts, trainer)
    ids = learner.get_vocab(with_added_tokens=False)
    return sorted(ids.keys() - set(single), key=ids.get)


def fill_unused(
    vocabulary, words, *, do_lower_case=True, strip_accents=None, source="words"
):
    """Returns a vocabulary with words in the places of [unused] tokens.

    Args:
        vocabulary: a `Vocabulary`.
        words: iterable of str, such as a file's lines; empty ones are passed over, and
            so are those that the vocabulary has. Each is normalized as the tokenizer
            does, and must be one word to it; with "##" before it, it becomes a piece
            for the inside of words.
        do_lower_case: whether the tokenizer lower-cases.
        strip_accents: whether it strips accents; None: as `do_lower_case`.
        source: where the words come from, for error messages.

    Raises:
        ValueError: something is not one word, or there are more than unused tokens.
    """
    tokenizer = basic.BasicTokenizer(do_lower_case, strip_accents=strip_accents)
    new = {}  # In order, each once.
    for number, word in enumerate(words, start=1):
        if word.strip():
            new[_one_word(word.strip(), tokenizer, f"{source}:{number}")] = True
    new = [word for word in new if word not in vocabulary]
    tokens = list(vocabulary.tokens)
    places = unused_places(vocabulary)
    if len(new) > len(places):
        raise ValueError(
            f"{source}: {len(new)} words are new to the vocabulary, which has only "
            f"{len(places)} [unused] tokens to give; shorten the list."
        )
    for place, word in zip(places, new, strict=False):
        tokens[place] = word
    return vocabulary_module.Vocabulary(tokens)


def unused_places(vocabulary):
    """Returns the ids of the [unused] tokens of a vocabulary."""
    return [i for i, token in enumerate(vocabulary) if UNUSED.fullmatch(token)]


def _one_word(text, tokenizer, place):
    prefix = wordpiece.CONTINUATION if text.startswith(wordpiece.CONTINUATION) else ""
    words = tokenizer.tokenize(text.removeprefix(prefix))
    if len(words) != 1:
        raise ValueError(
            f"{place}: {text!r} is {len(words)} words to the tokenizer "
            f"({' '.join(words)}); a token must be one word."
        )
    return prefix + words[0]
