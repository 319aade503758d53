"""A corpus of names that a tiny model learns in seconds."""

FIRST_NAMES = ("Anna", "Rod", "Otto", "Queen")
LAST_NAMES = ("Winter", "Horn", "Baker")
PLACES = (("Lund",), ("River", "Bend"), ("Rock", "End"), ("Bay",))
# P stands for a person, L for a place.
TEMPLATES = (
    "P makes bread in L .",
    "from L P counts the ships",
    "L is dark in winter , says P",
    "the keeper of L climbs the steps",
    "P and P dance at L !",
    "bees look for flowers .",
)


def person(generator):
    names = [generator.choice(FIRST_NAMES)]
    if generator.random() < 0.5:
        names.append(generator.choice(LAST_NAMES))
    return names


def sentence(generator):
    """Returns (word, tag) pairs in IOB2."""
    pairs = []
    for word in generator.choice(TEMPLATES).split():
        if word not in ("P", "L"):
            pairs.append((word, "O"))
            continue
        names = person(generator) if word == "P" else generator.choice(PLACES)
        kind = {"P": "PER", "L": "LOC"}[word]
        pairs += [
            (name, f"{'I' if index else 'B'}-{kind}")
            for index, name in enumerate(names)
        ]
    return pairs


def column_file(sentences, per_document=4):
    """Returns the text of a file with a document for every few sentences."""
    lines = []
    for index, pairs in enumerate(sentences):
        if index % per_document == 0:
            lines += ["-DOCSTART- O", ""]
        lines += [f"{word} {tag}" for word, tag in pairs] + [""]
    return "\n".join(lines)
