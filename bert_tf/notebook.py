"""What the notebooks in `colab/` share: machine, folder, checkpoint and sample texts.

The first cell of each notebook calls `prepare`, which finds what the machine has. The
last one calls `Setup.last_run_on`.
"""

import collections
import dataclasses
import datetime
import glob
import importlib.metadata
import os
import platform
import tempfile
import time

from bert_tf import files

# Seconds instead of minutes, for tests. The models learn nothing then.
TINY_VARIABLE = "BERT_TF_TINY"
# A checkpoint instead of the notebook's released one.
ENCODER_VARIABLE = "BERT_TF_ENCODER"
_DRIVE = "/content/drive"
SAMPLE_DATA = os.path.join(os.path.dirname(__file__), "sample_data")
_NUM_FUNCTION_WORDS = 150
_VERSIONS = ("bert_tf", "tensorflow", "keras", "numpy")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
    """What a notebook runs on."""

    device: str  # The flag --device: "cpu", "gpu", "mirrored" or "tpu".
    dtype: str  # The flag --dtype: mixed_bfloat16 where the hardware has it.
    run_dir: str  # Folder for everything that the notebook writes.
    is_tiny: bool  # Whether this is a test, in which nothing is learned.
    started: float  # time.time() of the first cell.
    # Checkpoints that replaced the notebook's.
    replacements: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        size = "; tiny, for testing" if self.is_tiny else ""
        return f"{self.device}, {self.dtype}; files are in {self.run_dir}{size}"

    def path(self, *names: str) -> str:
        """Returns a path in the notebook's folder."""
        return os.path.join(self.run_dir, *names)

    def encoder(self, name: str) -> str:
        """Returns the checkpoint to start from.

        Args:
            name: of a released model. `BERT_TF_ENCODER` replaces it. In a test, the
                checkpoint is a very small one with random weights.
        """
        if not self.is_tiny:
            if replacement := os.environ.get(ENCODER_VARIABLE):
                self.replacements.append(replacement)
            return replacement or name
        model_file = self.path("tiny_encoder", "model.keras")
        if not os.path.exists(model_file):
            _write_tiny_encoder(model_file)
        return model_file

    def last_run_on(self) -> str:
        """Returns versions, date and duration, to store with the outputs."""
        versions = [f"{name} {importlib.metadata.version(name)}" for name in _VERSIONS]
        minutes = (time.time() - self.started) / 60
        size = "tiny form" if self.is_tiny else "full form"
        for encoder in dict.fromkeys(self.replacements):
            # Not the released model that the notebook names.
            size += f" with the encoder {'/'.join(encoder.split('/')[-2:])}"
        return (
            f"Last run on {datetime.date.today()}, {self.device}, {self.dtype}, "
            f"{size}, in {minutes:.1f} minutes: Python {platform.python_version()}, "
            + ", ".join(versions)
        )


def prepare(name: str, run_dir: str | None = None) -> Setup:
    """Finds CPU, GPU or TPU, and creates the notebook's folder.

    Args:
        name: of the notebook, and of its folder in `run_dir`.
        run_dir: folder that outlives the machine, such as Google Drive (which is
            mounted) or a bucket. None: a temporary folder.

    Raises:
        OSError: the folder cannot be created.
    """
    started = time.time()
    if run_dir is None:
        run_dir = tempfile.mkdtemp(prefix=f"{name}_")
    else:
        _mount_drive(run_dir)
        run_dir = os.path.join(run_dir, name)
        if "://" not in run_dir:
            os.makedirs(run_dir, exist_ok=True)
    device, dtype = _device()
    _quiet_tensorflow()
    return Setup(
        device=device,
        dtype=dtype,
        run_dir=run_dir,
        is_tiny=bool(os.environ.get(TINY_VARIABLE)),
        started=started,
    )


def sample_file(name: str) -> str:
    """Returns the path of a sample file of the package."""
    path = os.path.join(SAMPLE_DATA, name)
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def labelled_rows(path: str) -> list[tuple[str, str]]:
    """Returns the (text, label) rows of a table with these two columns."""
    rows = [line.split("\t") for line in files.read_lines(path)]
    return [(text, label) for text, label in rows[1:]]


def masked_texts(
    path: str, count: int, *, train_file: str, vocab_file: str
) -> list[tuple[str, str]]:
    """Returns sentences with one word masked, spread over a text, and these words.

    The word can be learned: it is a single word piece and not among the most frequent
    words of the training text, but among the others the most frequent one.

    Args:
        path: text with one sentence per line; those of 6 to 16 words are used.
        count: maximum number of sentences.
        train_file: the text of the training.
        vocab_file: the vocabulary.
    """
    counts = _word_counts(train_file)
    # A very small text has fewer function words.
    num_function_words = min(_NUM_FUNCTION_WORDS, len(counts) // 4)
    function_words = {word for word, _ in counts.most_common(num_function_words)}
    learned = {*files.read_lines(vocab_file)} & {*counts} - function_words
    masked = []
    for words in map(str.split, files.read_lines(path)):
        places = [i for i, word in enumerate(words) if word.lower() in learned]
        if places and 6 <= len(words) <= 16:
            place = max(places, key=lambda place: counts[words[place].lower()])
            text = " ".join([*words[:place], "[MASK]", *words[place + 1 :]])
            masked.append((text, words[place]))
    return masked[:: max(1, len(masked) // count)][:count]


def _word_counts(path):
    """Returns how often each word is in a text, in lower case."""
    words = (word for line in files.read_lines(path) for word in line.split())
    return collections.Counter(word.lower() for word in words if word.isalpha())


def _device():
    import tensorflow as tf

    if _has_tpu():
        return "tpu", "mixed_bfloat16"
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "cpu", "float32"
    details = tf.config.experimental.get_device_details(gpus[0])
    # bfloat16 needs Ampere; the T4 of Colab has float16 only.
    is_ampere = details.get("compute_capability", (0, 0)) >= (8, 0)
    dtype = "mixed_bfloat16" if is_ampere else "mixed_float16"
    return ("gpu" if len(gpus) == 1 else "mirrored"), dtype


def _quiet_tensorflow():
    import tensorflow as tf

    # In a notebook, TensorFlow's logger sets its level to INFO when it is first used,
    # and an export would log where it has written its files.
    tf.get_logger().setLevel("ERROR")


def _has_tpu():
    # TPUs up to v4 are /dev/accel0 and so on; v5e and v6e are /dev/vfio/0 and so on.
    chips = "/dev/accel[0-9]*", "/dev/vfio/[0-9]*"
    return "TPU_NAME" in os.environ or any(map(glob.glob, chips))


def _mount_drive(run_dir):
    if run_dir.startswith(_DRIVE) and not os.path.exists(_DRIVE):
        from google.colab import drive

        drive.mount(_DRIVE)


def _write_tiny_encoder(model_file):
    import bert_tf
    from bert_tf.tokenization import learning

    vocabulary = learning.learn_vocabulary(
        [sample_file("corpus.txt")], vocab_size=400, do_lower_case=True
    )
    config = bert_tf.BertConfig.of_size("L-1_H-64", vocab_size=len(vocabulary))
    model = bert_tf.BertModel(config, name="bert")
    folder = os.path.dirname(model_file)
    os.makedirs(folder, exist_ok=True)
    vocabulary.save(os.path.join(folder, "vocab.txt"))
    tokenizer = bert_tf.FullTokenizer(vocabulary)
    model(bert_tf.pack(tokenizer, ["A text."], max_seq_length=8))
    model.save(model_file)
