"""Part of tokenizing: the fast tokenizer of the tokenizers library."""

import json
import pathlib
import sys
import time

import report
import tokenizers


def main():
    """Tokenizes once, writes the ids, and answers the driver."""
    task = json.loads(sys.argv[1])
    text = pathlib.Path(task["input_file"]).read_text(encoding="utf-8")
    texts = text.split("\n")
    tokenizer = tokenizers.BertWordPieceTokenizer(
        task["vocab_file"], lowercase=task["do_lower_case"]
    )._tokenizer
    # As in the release. By default, words of more than 100 characters become [UNK], and
    # Thai text without blanks has many of them.
    tokenizer.model.max_input_chars_per_word = 200

    def tokenize():
        return tokenizer.encode_batch_fast(texts, add_special_tokens=False)

    ids = [encoding.ids for encoding in tokenize()]
    pathlib.Path(task["ids_file"]).write_text(json.dumps(ids), encoding="utf-8")

    def measure():
        started = time.perf_counter()
        tokenize()
        return {"seconds": time.perf_counter() - started}

    report.serve(measure, versions=report.versions("tokenizers"))


if __name__ == "__main__":
    main()
