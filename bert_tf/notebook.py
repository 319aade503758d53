"""What the notebooks in `colab/` share: machine, folder and sample texts.

The first cell of each notebook calls `prepare`, which finds what the machine has. The
last one calls `Setup.last_run_on`.
"""

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
_DRIVE = "/content/drive"
SAMPLE_DATA = os.path.join(os.path.dirname(__file__), "sample_data")
_VERSIONS = ("bert_tf", "tensorflow", "keras", "numpy")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
    """What a notebook runs on."""

    device: str  # The flag --device: "cpu", "gpu", "mirrored" or "tpu".
    dtype: str  # The flag --dtype: mixed_bfloat16 where the hardware has it.
    run_dir: str  # Folder for everything that the notebook writes.
    is_tiny: bool  # Whether this is a test, in which nothing is learned.
    started: float  # time.time() of the first cell.

    def __str__(self) -> str:
        size = "; tiny, for testing" if self.is_tiny else ""
        return f"{self.device}, {self.dtype}; files are in {self.run_dir}{size}"

    def path(self, *names: str) -> str:
        """Returns a path in the notebook's folder."""
        return os.path.join(self.run_dir, *names)

    def last_run_on(self) -> str:
        """Returns versions, date and duration, to store with the outputs."""
        versions = [f"{name} {importlib.metadata.version(name)}" for name in _VERSIONS]
        minutes = (time.time() - self.started) / 60
        size = "tiny form" if self.is_tiny else "full form"
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
    import tensorflow as tf

    # In a notebook, TensorFlow's logger sets its level to INFO when it is first used,
    # and an export would log where it has written its files.
    tf.get_logger().setLevel("ERROR")
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


def _has_tpu():
    # TPUs up to v4 are /dev/accel0 and so on; v5e and v6e are /dev/vfio/0 and so on.
    chips = "/dev/accel[0-9]*", "/dev/vfio/[0-9]*"
    return any(map(glob.glob, chips))


def _mount_drive(run_dir):
    if run_dir.startswith(_DRIVE) and not os.path.exists(_DRIVE):
        from google.colab import drive

        drive.mount(_DRIVE)
