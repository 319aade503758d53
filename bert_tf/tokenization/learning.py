"""Learns a vocabulary of word pieces from text.

Words are counted as this package's tokenizer splits and normalizes them, so the
tokenizer can produce every learned piece. The merging itself uses the trainer of
Hugging Face's `tokenizers`, because the release never published its own.
"""

import collections
import dataclasses
import functools
import re
import string
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf import machine
from bert_tf import progress as progress_module
from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

# The layout of the release's vocabularies: [PAD] at 0, then 99 unused tokens, the other
# special tokens at 100 to 103, then the rest of the unused tokens.
NUM_UNUSED_BEFORE_SPECIAL = 99
UNUSED = re.compile(r"\[unused\d+\]")

_MIN_FREQUENCY = 2  # How often two pieces must be adjacent to be merged.
# Minimum share of words made of known characters only. The rarest characters beyond it
# are left out, unless the text has few different characters.
_CHARACTER_COVERAGE = 0.99995
_MAX_CHARACTERS_KEPT = 1000  # Beyond the coverage; the limit of Hugging Face's trainer.
_PRINTABLE_ASCII = string.ascii_letters + string.digits + string.punctuation

_LINES_PER_REPORT = 10_000
_MEGABYTE = 1_000_000


def learn_vocabulary(
    input_files: Sequence[str],
    *,
    vocab_size: int,
    do_lower_case: bool = True,
) -> vocabulary_module.Vocabulary:
    """Returns a `Vocabulary` learned from text files.

    Args:
        input_files: paths and glob patterns of UTF-8 files.
        vocab_size: number of tokens, including special and unused tokens. The
            vocabulary is smaller if the text has too few frequent pieces.
        do_lower_case: whether the tokenizer that will use the vocabulary lowercases.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not UTF-8, there are no words, or `vocab_size` is too
            small for the characters.
    """
    counts = count_words(input_files, do_lower_case=do_lower_case)
    return vocabulary_from_counts(
        counts, vocab_size=vocab_size, do_lower_case=do_lower_case
    )


def count_words(
    input_files: Sequence[str],
    *,
    do_lower_case: bool = True,
) -> collections.Counter[str]:
    """Counts the basic tokens in text files.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not UTF-8, or there are no words.
    """
    paths = files.expand(input_files)
    total = sum(map(files.size, paths)) / _MEGABYTE
    report = functools.partial(
        progress_module.report, "count words", total=total, unit="MB"
    )
    as_written: collections.Counter[str] = collections.Counter()
    num_bytes = 0
    for path in paths:
        for number, line in enumerate(files.read_lines(path)):
            as_written.update(basic.split_words(line))
            num_bytes += len(line.encode("utf-8")) + 1
            if number % _LINES_PER_REPORT == 0:
                report(min(total, num_bytes / _MEGABYTE))
    report(total)
    tokenizer = basic.BasicTokenizer(do_lower_case)
    counts: collections.Counter[str] = collections.Counter()
    for word, count in as_written.items():
        for token in tokenizer.tokenize_word(word):
            counts[token] += count
    if not counts:
        raise ValueError(f"There are no words in {', '.join(paths)}.")
    return counts


def vocabulary_from_counts(
    counts: Mapping[str, int],
    *,
    vocab_size: int,
    do_lower_case: bool = True,
) -> vocabulary_module.Vocabulary:
    """Returns a `Vocabulary` learned from counted words.

    The special and unused tokens come first, then the characters by code point, then
    their "##" forms, then the learned pieces, roughly by descending frequency. All
    printable ASCII characters are included, except capital letters if text is
    lowercased.

    Args:
        counts: how often each word occurs.
        vocab_size: see `learn_vocabulary`.
        do_lower_case: see `learn_vocabulary`.

    Raises:
        ValueError: `vocab_size` is too small for the special tokens, the unused tokens
            and the characters.
        ImportError: tokenizers is not installed.
    """
    reserved = _reserved_tokens(vocab_size)
    alphabet = _alphabet(counts, vocab_size, do_lower_case)
    # Punctuation and ideographs are separate tokens, so they need no "##" form.
    inside = [wordpiece.CONTINUATION + c for c in alphabet if not _is_alone(c)]
    single = [*alphabet, *inside]
    num_pieces = vocab_size - len(reserved) - len(single)
    if num_pieces < 0:
        raise ValueError(
            f"--vocab_size={vocab_size} is too small: the {len(reserved)} special and "
            f"unused tokens and the {len(single)} forms of {len(alphabet)} characters "
            f"(ASCII and the text's) already need {len(reserved) + len(single)}; raise "
            "it."
        )
    known = frozenset(alphabet)
    learnable = {
        word: count
        for word, count in counts.items()
        if len(word) <= wordpiece.MAX_INPUT_CHARS_PER_WORD and known.issuperset(word)
    }
    progress_module.report("learn pieces", 0, 1)
    pieces = _learn_pieces(learnable, single, num_pieces)
    progress_module.report("learn pieces", 1, 1)
    taken = {*reserved, *single}
    return vocabulary_module.Vocabulary(
        [*reserved, *single, *(piece for piece in pieces if piece not in taken)]
    )


def _reserved_tokens(vocab_size):
    """Returns the special and [unused] tokens of a vocabulary of this size.

    The share of unused tokens is that of bert-base-uncased, 994 of 30,522, and the
    number is never larger. Vocabularies of 1,000 tokens or more have at least 99, which
    puts [UNK], [CLS], [SEP] and [MASK] at the release's ids 100 to 103. In smaller
    ones, one token in twenty is unused.
    """
    num_unused = vocab_size // 20
    if vocab_size >= 1000:
        num_unused = min(994, max(NUM_UNUSED_BEFORE_SPECIAL, vocab_size * 994 // 30522))
    tokens = [f"[unused{number}]" for number in range(num_unused)]
    pad, *others = vocabulary_module.SPECIAL_TOKENS
    tokens[NUM_UNUSED_BEFORE_SPECIAL:NUM_UNUSED_BEFORE_SPECIAL] = others
    return [pad, *tokens]


def _alphabet(counts, vocab_size, do_lower_case):
    """Returns, sorted, ASCII and the characters needed to cover enough words."""
    occurrences: collections.Counter[str] = collections.Counter()
    for word, count in counts.items():
        for character in word:
            occurrences[character] += count
    # Words by the frequency of their rarest character. Characters of equal frequency
    # are kept or left out together: one bracket is not kept without the other.
    num_words: collections.Counter[int] = collections.Counter()
    for word, count in counts.items():
        num_words[min(occurrences[character] for character in word)] += count
    missing = (1 - _CHARACTER_COVERAGE) * sum(counts.values())
    frequency = 0
    for frequency in sorted(num_words):
        missing -= num_words[frequency]
        if missing < 0:
            break
    most_frequent = sorted([*occurrences.values(), 0], reverse=True)
    num_kept = max(1, min(_MAX_CHARACTERS_KEPT, vocab_size // 8))
    frequency = min(frequency, most_frequent[:num_kept][-1])
    covered = {c for c, number in occurrences.items() if number >= frequency}
    ascii_forms = {c.lower() if do_lower_case else c for c in _PRINTABLE_ASCII}
    return sorted(covered | ascii_forms)


def _is_alone(character):
    return ord(character) in characters.PUNCTUATION or characters.is_chinese(character)


def _learn_pieces(counts, single, num_pieces):
    """Returns the pieces of several characters, in the order of learning."""
    tokenizers = machine.package(
        "tokenizers", extra="vocabulary", needed_for="Learning a vocabulary"
    )
    # The trainer numbers characters in the order of its hash table, which changes from
    # run to run, and breaks ties by number. Passing the characters as special tokens
    # gives them the same numbers in every run.
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=len(single) + num_pieces,
        min_frequency=_MIN_FREQUENCY,
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
    return sorted(ids.keys() - set(single), key=lambda piece: ids[piece])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedWord:
    """A word of a list."""

    given: str  # As in the list.
    token: str  # As the tokenizer normalizes it, with "##" if the list has it.
    place: str  # The file and the line, or the index in the list, for messages.


def read_words(
    words: Iterable[str], tokenizer: basic.BasicTokenizer, *, source: str | None
) -> Iterator[ListedWord]:
    """Yields the words of a list; skips empty lines and repeated words.

    Args:
        words: such as the lines of a file. Each must be a single word for the
            tokenizer. With the prefix "##" it is a piece for the inside of words.
        tokenizer: normalizes each word like text.
        source: the file of the words, for error messages; None: a list in memory.

    Raises:
        ValueError: the words are not a list of strings, or a line is not a single word
            or too long for a word.
    """
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise ValueError(f"Expected a list of words, got {words!r:.60}.")
    seen = set()
    for index, line in enumerate(words):
        place = f"Word {index}" if source is None else f"{source}:{index + 1}"
        if not isinstance(line, str):
            raise ValueError(f"{place}: expected a string, got {line!r:.60}.")
        text = line.strip()
        if not text:
            continue
        token = _one_word(text, tokenizer, place)
        if token not in seen:
            seen.add(token)
            yield ListedWord(given=text, token=token, place=place)


def _one_word(text: str, tokenizer: basic.BasicTokenizer, place: str) -> str:
    prefix = wordpiece.CONTINUATION if text.startswith(wordpiece.CONTINUATION) else ""
    words = tokenizer.tokenize(text.removeprefix(prefix))
    if len(words) != 1:
        shown = f" ({' '.join(words)})" if words else ""
        raise ValueError(
            f"{place}: the tokenizer splits {text!r} into {len(words)} words{shown}; a "
            "token must be a single word."
        )
    if len(words[0]) > wordpiece.MAX_INPUT_CHARS_PER_WORD:
        raise ValueError(
            f"{place}: the word has {len(words[0])} characters, but the tokenizer "
            f"replaces words of more than {wordpiece.MAX_INPUT_CHARS_PER_WORD} by "
            "[UNK]; shorten or remove it."
        )
    return prefix + words[0]


def fill_unused(
    vocabulary: vocabulary_module.Vocabulary,
    words: Iterable[str],
    *,
    do_lower_case: bool = True,
    source: str | None = None,
) -> vocabulary_module.Vocabulary:
    """Returns a vocabulary whose [unused] tokens are replaced by words.

    Args:
        vocabulary: the vocabulary to start from.
        words: such as the lines of a file. Empty lines and words that the vocabulary
            already has are skipped. Each is normalized like text and must be a single
            word for the tokenizer. With the prefix "##" it becomes a piece for the
            inside of words.
        do_lower_case: whether the tokenizer lowercases.
        source: the file of the words, for error messages; None: a list in memory.

    Raises:
        ValueError: a line is not a single word, or there are more new words than
            [unused] tokens.
    """
    tokenizer = basic.BasicTokenizer(do_lower_case)
    listed = read_words(words, tokenizer, source=source)
    new = [word.token for word in listed if word.token not in vocabulary]
    tokens = list(vocabulary.tokens)
    places = unused_places(vocabulary)
    if len(new) > len(places):
        raise ValueError(
            f"{source or 'words'}: {len(new)} words are new to the vocabulary, which "
            f"has only {len(places)} [unused] tokens; shorten the list."
        )
    for place, word in zip(places, new, strict=False):
        tokens[place] = word
    return vocabulary_module.Vocabulary(tokens)


def unused_places(vocabulary: vocabulary_module.Vocabulary) -> list[int]:
    """Returns the ids of the [unused] tokens of a vocabulary."""
    return [i for i, token in enumerate(vocabulary) if UNUSED.fullmatch(token)]
