"""The report of prepare_corpus: what was read, left out and written."""

import dataclasses
import json
from collections.abc import Iterable

from bert_tf.preparation import plan as plan_module
from bert_tf.preparation import text_statistics

_SHOWN_SCRIPTS = 6


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """What was read and written. It depends only on the input and the flags."""

    # Written.
    documents: int
    sentences: int
    words: int  # Separated by spaces.
    characters: int
    # Mean, percentiles and maximum.
    words_a_sentence: dict[str, float]
    characters_a_sentence: dict[str, float]
    sentences_a_document: dict[str, float]
    scripts: dict[str, int]  # Script -> number of letters.
    languages: dict[str, dict[str, int]]  # Code -> characters found and written.
    read: dict[str, int]  # The fields of `ReadCounts`.
    # Left out.
    duplicate_paragraphs: int
    near_duplicate_documents: int
    skipped_files: tuple[str, ...]  # Files whose names are not those of text files.
    output_files: tuple[str, ...]  # Names in the output folder.
    fingerprint: str  # Hash of the input's names and sizes, and of the flags.

    def to_json(self) -> str:
        """Returns the report as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        lengths = self.words_a_sentence
        lines = {
            "documents": f"{self.documents:,}",
            "sentences": f"{self.sentences:,}; words per sentence: mean "
            f"{lengths.get('mean', 0)}, median {lengths.get('p50', 0)}, 95th "
            f"percentile {lengths.get('p95', 0)}, maximum {lengths.get('max', 0)}",
            "words": f"{self.words:,} in {self.characters:,} characters",
            "scripts": self._scripts(),
            "languages": self._languages(),
            "left out": self._left_out(),
            "written": self._written(),
        }
        return "\n".join(f"{k + ':':<12}{text}" for k, text in lines.items() if text)

    def _scripts(self):
        total = sum(self.scripts.values())
        shown = list(self.scripts.items())[:_SHOWN_SCRIPTS]
        return ", ".join(f"{name} {count / total:.2%}" for name, count in shown)

    def _languages(self):
        if len(self.languages) < 2:
            return ""
        found = sum(sizes["found"] for sizes in self.languages.values()) or 1
        written = sum(sizes["written"] for sizes in self.languages.values()) or 1
        return ", ".join(
            f"{code} {sizes['found'] / found:.1%} -> {sizes['written'] / written:.1%}"
            for code, sizes in self.languages.items()
        )

    def _left_out(self):
        counts = {
            "headings": self.read["headings"],
            "duplicate paragraphs": self.duplicate_paragraphs,
            "near-duplicate documents": self.near_duplicate_documents,
            "documents without text": self.read["empty_documents"],
            "pages that are not articles": self.read["skipped_pages"],
            "bytes that are not UTF-8": self.read["invalid_bytes"],
            "files that are not text": len(self.skipped_files),
        }
        return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)

    def _written(self):
        names = self.output_files
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def make(
    plan: plan_module.Plan,
    statistics: text_statistics.Statistics,
    *,
    skipped_files: Iterable[str],
    output_files: Iterable[str],
    fingerprint: str,
) -> CorpusReport:
    """Returns the report of a run."""
    distribution = text_statistics.distribution
    sizes = range(len(statistics.words))
    return CorpusReport(
        documents=int(statistics.sentences.sum()),
        sentences=int(statistics.words.sum()),
        words=int(statistics.words @ sizes),
        characters=int(statistics.characters @ sizes),
        words_a_sentence=distribution(statistics.words),
        characters_a_sentence=distribution(statistics.characters),
        sentences_a_document=distribution(statistics.sentences),
        scripts=statistics.scripts(),
        languages={
            code: {"found": found, "written": written}
            for code, (found, written) in plan.languages.items()
        },
        read=dataclasses.asdict(plan.read),
        duplicate_paragraphs=plan.duplicate_paragraphs,
        near_duplicate_documents=plan.near_duplicates,
        skipped_files=tuple(skipped_files),
        output_files=tuple(output_files),
        fingerprint=fingerprint,
    )
