"""Writes the tables in this folder with pandas, as its users do.

python3.11 -m venv pandas-env && pandas-env/bin/pip install pandas==3.1.1
pandas-env/bin/python tests/data/tables_of_pandas/make_tables.py
"""

import pathlib

import pandas

FOLDER = pathlib.Path(__file__).resolve().parent
REVIEWS = pandas.DataFrame(
    {"text": ["très bien, merci", "so, so", "no; never"], "label": [1, 0, 0]}
)


def main() -> None:
    """Writes all tables."""
    missing = REVIEWS.assign(label=[1, None, 0])  # pandas makes the others floats.
    REVIEWS.to_csv(FOLDER / "plain.csv", index=False)
    REVIEWS.to_csv(FOLDER / "with_mark.csv", index=False, encoding="utf-8-sig")
    REVIEWS.to_csv(FOLDER / "with_index.csv")
    REVIEWS.to_csv(FOLDER / "semicolons.csv", index=False, sep=";")
    REVIEWS.to_csv(FOLDER / "commas.tsv", index=False)
    REVIEWS.to_csv(FOLDER / "utf_16.csv", index=False, encoding="utf-16")
    REVIEWS.to_csv(FOLDER / "utf_16_le.csv", index=False, encoding="utf-16-le")
    REVIEWS.to_csv(FOLDER / "utf_16_be.csv", index=False, encoding="utf-16-be")
    REVIEWS.to_csv(FOLDER / "utf_32.csv", index=False, encoding="utf-32")
    REVIEWS.to_csv(FOLDER / "windows.csv", index=False, encoding="windows-1252")
    missing.to_json(FOLDER / "null_label.jsonl", orient="records", lines=True)
    for name, labels in (
        ("ints", [1, 0, 0]),
        ("floats", [1.0, 0.0, 0.0]),
        ("strings", ["1", "0", "0"]),
        ("booleans", [True, False, False]),
    ):
        table = REVIEWS.assign(label=labels)
        table.to_json(FOLDER / f"{name}.jsonl", orient="records", lines=True)


if __name__ == "__main__":
    main()
