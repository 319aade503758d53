"""Queries and passages that a tiny model memorizes in seconds."""

import json

# Query and passage share no word, so the model has to learn the pairs.
PAIRS = (
    ("the bee", "honey and wax"),
    ("the lamp", "light at midnight"),
    ("the baker", "warm bread"),
    ("the river", "cold water"),
    ("a queen", "twelve children"),
    ("a wheel", "slow clocks"),
    ("a ball", "summer evening"),
    ("a keeper", "narrow rock"),
)


def json_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def write(folder):
    """Writes train.jsonl (16 rows), dev.jsonl (8), corpus.txt and queries.txt."""
    rows = [{"query": query, "passage": passage} for query, passage in PAIRS]
    again = [{"query": f"{q} was here", "passage": p} for q, p in PAIRS]
    (folder / "train.jsonl").write_text(json_lines(rows + again))
    (folder / "dev.jsonl").write_text(json_lines(rows))
    others = ["six weeks away", "", "ninety steps", "small bubbles"]
    lines = [*others, *(passage for _, passage in PAIRS)]
    (folder / "corpus.txt").write_text("\n".join(lines) + "\n")
    (folder / "queries.txt").write_text("the bee\n\nthe river\n")
