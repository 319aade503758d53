"""Part of tokenizing: `InGraphTokenizer` of this package."""

import json
import pathlib
import sys
import time

import report
import tensorflow as tf

from bert_tf.tokenization import in_graph


def main():
    """Tokenizes once, writes the ids, and answers the driver."""
    task = json.loads(sys.argv[1])
    text = pathlib.Path(task["input_file"]).read_text(encoding="utf-8")
    texts = tf.constant(text.split("\n"))
    tokenizer = in_graph.InGraphTokenizer(
        task["vocab_file"], do_lower_case=task["do_lower_case"]
    )
    ids = tokenizer.tokenize(texts).to_list()
    pathlib.Path(task["ids_file"]).write_text(json.dumps(ids), encoding="utf-8")

    def measure():
        started = time.perf_counter()
        tokenizer.tokenize(texts)
        return {"seconds": time.perf_counter() - started}

    report.serve(measure, versions=report.versions("tensorflow", "tensorflow-text"))


if __name__ == "__main__":
    main()
