"""The GLUE tasks that the package knows: CoLA, MRPC and SST-2.

Their files are `train.tsv`, `dev.tsv` and `test.tsv` as GLUE hands them out.
"""

import os

from bert_tf.classification import examples

# GLUE's files of CoLA have no header, apart from test.tsv.
_COLA_HEADER = ("source", "label", "original_label", "sentence")


class GlueProcessor(examples.DataProcessor):
    """A task with two classes, "0" and "1", in GLUE's three files."""

    columns = examples.Columns()
    header = None  # Of train.tsv and dev.tsv.

    def get_train_examples(self, data_dir):
        """Returns the examples of train.tsv."""
        return self._labelled(data_dir, "train")

    def get_dev_examples(self, data_dir):
        """Returns the examples of dev.tsv."""
        return self._labelled(data_dir, "dev")

    def get_test_examples(self, data_dir):
        """Returns the examples of test.tsv, without labels."""
        path = self.get_files(data_dir)["test"]
        return examples.read_examples(path, self.columns.without_label(), "test")

    def get_labels(self):
        """Returns the names of the classes."""
        return ["0", "1"]

    def get_files(self, data_dir):
        """Returns the paths of the task's three files."""
        return {
            part: os.path.join(data_dir, f"{part}.tsv")
            for part in ("train", "dev", "test")
        }

    def _labelled(self, data_dir, set_type):
        return examples.read_examples(
            self.get_files(data_dir)[set_type],
            self.columns,
            set_type,
            labels=self.get_labels(),
            header=self.header,
        )


class ColaProcessor(GlueProcessor):
    """CoLA: is a sentence acceptable English? Scored by Matthews' correlation."""

    columns = examples.Columns(text="sentence")
    header = _COLA_HEADER


class MrpcProcessor(GlueProcessor):
    """MRPC: do two sentences say the same? Scored by F1 and accuracy."""

    columns = examples.Columns(text="#1 String", text_b="#2 String", label="Quality")


class Sst2Processor(GlueProcessor):
    """SST-2: does a sentence of a film review praise? Scored by accuracy."""

    columns = examples.Columns(text="sentence")


PROCESSORS = {"cola": ColaProcessor, "mrpc": MrpcProcessor, "sst-2": Sst2Processor}
