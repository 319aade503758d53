"""Writes dependencies.md: what each dependency is needed for, its license, its age.

    python docs/dependencies.py

It needs an environment with uv and the extras [all], [dev], [onnx] and [openvino]. It
asks the package index for the newest version of each package, now and a year ago.
"""

import datetime
import importlib.metadata
import pathlib
import re
import runpy
import subprocess
import tempfile

import setuptools

FOLDER = pathlib.Path(__file__).parent
NEEDED_FOR = {
    "tensorflow": "training, data pipelines, SavedModels",
    "tensorflow-text": "tokenization inside graphs",
    "keras": "models",
    "absl-py": "flags",
    "numpy": "arrays",
    "filelock": "locks on outputs",
    "google-crc32c": "checksums of TFRecord files",
    "h5py": "Keras and Hugging Face weights in HDF5",
    "jinja2": "model cards and reports",
    "ml-dtypes": "bfloat16 arrays",
    "safetensors": "Hugging Face weights, stored vectors",
    "scipy": "correlations in scores of regression",
    "tqdm": "progress bars",
    "ipykernel": "notebooks",
    "jupytext": "building notebooks from scripts",
    "nbclient": "running notebooks",
    "matplotlib": "plots",
    "tokenizers": "learning a vocabulary",
    "keras-hub": "KerasHub presets",
    "tensorflow-datasets": "data sets by name",
    "importlib-resources": "tensorflow-datasets, which does not require it",
    "huggingface-hub": "models on Hugging Face's hub",
    "sentencex": "sentence splitting",
    "mwparserfromhell": "Wikipedia's markup",
    "jieba": "Chinese words",
    "openvino": "fast inference on Intel processors",
    "nncf": "int8 weights of OpenVINO's models",
    "onnxruntime": "int8 weights of ONNX models",
    "tf2onnx": "exports to ONNX",
    "requests": "queries over HTTP",
    "urllib3": "retries of queries",
    "uvicorn": "the HTTP server of `bert_tf serve`",
    "starlette": "routes and answers of the server",
    "orjson": "JSON of arrays in the server",
    "prometheus-client": "metrics of the server",
}
# Extras for users that `all` does not contain.
SEPARATE = ("onnx", "openvino")
HEADING = """# Dependencies

Packages without an extra are always installed. The extra `all` adds all extras of this
table but {separate}; Apache Beam has an environment of its own
([Beam](apache_beam.md)). The last columns are the newest version now and a year ago:
where they are equal, there was no release for a year. Written
on {date} by `docs/dependencies.py`.

| package | extra | needed for | license | newest | a year ago |
|---|---|---|---|---|---|
"""


def main() -> None:
    """Writes the page."""
    extras_of = requirements()
    names = sorted(extras_of, key=lambda name: (bool(extras_of[name]), name))
    today = datetime.date.today()
    newest = versions(names)
    year_ago = versions(names, str(today - datetime.timedelta(days=365)))
    lines = [
        f"| {name} | {', '.join(sorted(extras_of[name])) or '–'} | {NEEDED_FOR[name]} "
        f"| {license_of(name)} | {newest[name]} | {year_ago.get(name, '–')} |"
        for name in names
    ]
    page = (
        HEADING.format(date=today, separate=" and ".join(SEPARATE))
        + "\n".join(lines)
        + "\n"
    )
    (FOLDER / "dependencies.md").write_text(page, encoding="utf-8")


def requirements() -> dict[str, set[str]]:
    """Returns {package: the extras that need it}; the empty set: always needed."""
    given = {}
    setuptools.setup = given.update
    names = runpy.run_path(str(FOLDER.parent / "setup.py"))
    extras_of = {name_of(item): set() for item in given["install_requires"]}
    separate = {extra: names["SEPARATE_EXTRAS"][extra] for extra in SEPARATE}
    for extra, items in {**names["EXTRAS"], **separate}.items():
        for item in items:
            extras_of.setdefault(name_of(item), set()).add(extra)
    return extras_of


def name_of(requirement: str) -> str:
    """Returns the package of a requirement, in its normal form."""
    name = re.match(r"[\w.-]+", requirement)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def versions(names: list[str], date: str | None = None) -> dict[str, str]:
    """Returns {package: newest version}, today or on a date."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(names))
        file.flush()
        command = ["uv", "pip", "compile", "--quiet", "--no-deps", "--no-header"]
        command += ["--python-version", "3.12", file.name]
        if date:
            command += ["--exclude-newer", date]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(re.findall(r"^([\w.-]+)==(\S+)", done.stdout, re.M))


def license_of(name: str) -> str:
    """Returns the license in the metadata of an installed package."""
    metadata = importlib.metadata.metadata(name)
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License :: ")
    ]
    text = metadata["License-Expression"] or ", ".join(classifiers)
    return text or (metadata["License"] or "not stated").splitlines()[0][:40]


if __name__ == "__main__":
    main()
