"""Installs bert_tf, the command `bert_tf`, and every tool under its own name.

The metadata is here and not in pyproject.toml because the list of tools is read from
the folder `tools/`, which becomes the package `bert_tf.tools`.
"""

import pathlib
import re
import tomllib

import setuptools

ROOT = pathlib.Path(__file__).parent
TOOLS = sorted(path.stem for path in (ROOT / "tools").glob("[a-z]*.py"))
VERSION = re.search(
    r'^__version__ = "(.+)"$', (ROOT / "bert_tf" / "__init__.py").read_text(), re.M
)[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# pyproject.toml says how to set it.
REPOSITORY = PROJECT["tool"]["bert_tf"]["repository"]
IS_PUBLIC = "/OWNER/" not in REPOSITORY
PLOTS = ["matplotlib>=3.8"]
VOCABULARY = ["tokenizers>=0.20"]
KERAS_HUB = ["keras-hub>=0.20"]
# Its dependency etils imports importlib_resources without requiring it.
DATASETS = ["tensorflow-datasets>=4.9.6", "importlib_resources>=5"]
HUGGING_FACE = ["huggingface_hub>=0.26"]
CORPUS = ["sentencex>=1.0.20", "mwparserfromhell>=0.7"]
SERVER = [
    "orjson>=3.10",
    "prometheus-client>=0.20",
    "starlette>=1.0",
    "uvicorn>=0.51",
]
CHINESE = ["jieba>=0.42.1"]
NOTEBOOKS = ["ipykernel>=6", "jupytext>=1.16", "nbclient>=0.10", *PLOTS]
# Extras for users of the package; `bert_tf[all]` has all of them.
EXTRAS = {
    "notebooks": NOTEBOOKS,
    "plots": PLOTS,
    "vocabulary": VOCABULARY,
    "keras-hub": KERAS_HUB,
    "datasets": DATASETS,
    "huggingface": HUGGING_FACE,
    "server": SERVER,
    "corpus": CORPUS,
    "chinese": CHINESE,
}
# Extras that are not in `all`.
SEPARATE_EXTRAS = {
    # Compiles steps for TPUs. Not for a TPU machine, where tensorflow-tpu pins libtpu.
    "tpu-compile": ["jax>=0.10.2", "libtpu>=0.0.52; platform_system == 'Linux'"],
    # Needs protobuf below 7; requirements/beam.txt pins a tested combination.
    "beam": ["apache-beam>=2.77", "distributed>=2026.1", *CORPUS],
    # Large, and of use on Intel processors only.
    "openvino": ["nncf>=2.19", "openvino>=2025.2"],
    "onnx": ["onnxruntime>=1.22", "tf2onnx>=1.17"],
    "docs": [
        "myst-parser>=5",
        "pydata-sphinx-theme>=0.17",
        "sphinx>=9",
        "sphinx-copybutton>=0.5.2",
    ],
    "dev": [
        "httpx>=0.27",  # Calls the server's routes without a server.
        "jax>=0.4",
        "mypy>=2",
        "pandas>=2.2",
        "pytest>=8",
        "pytest-xdist>=3.8",
        "ruff>=0.6",
        "tensorflow-serving-api>=2.20",  # Reads what we write for its server.
        "setuptools>=77",  # Installs the checkout without build isolation.
        *PLOTS,
        *VOCABULARY,
        *KERAS_HUB,
        *DATASETS,
        *HUGGING_FACE,
        *CORPUS,
        *CHINESE,
        *SERVER,
        *NOTEBOOKS,
    ],
}


def long_description():
    """Returns the README, its links to files of the repository made absolute."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if IS_PUBLIC:
        text = re.sub(r"\]\((?!https?:|#)", f"]({REPOSITORY}/blob/main/", text)
    return text


def project_urls():
    """Returns the links on the package's page of the package index."""
    urls = {
        "Release of 2018": "https://github.com/google-research/bert",
        "Paper": "https://arxiv.org/abs/1810.04805",
    }
    if IS_PUBLIC:
        urls |= {
            "Source": REPOSITORY,
            "Documentation": f"{REPOSITORY}/tree/main/docs",
            "Changes": f"{REPOSITORY}/blob/main/CHANGELOG.md",
            "Issues": f"{REPOSITORY}/issues",
        }
    return urls


setuptools.setup(
    name="bert_tf",
    version=VERSION,
    description="BERT of 2018 for TensorFlow 2 and Keras 3, from text to served answer",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    author="The bert_tf maintainers",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    keywords="bert tensorflow keras nlp transformer pretraining fine-tuning",
    project_urls=project_urls(),
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    python_requires=">=3.11,<3.14",
    packages=[*setuptools.find_packages(include=["bert_tf*"]), "bert_tf.tools"],
    package_dir={"bert_tf.tools": "tools"},
    package_data={
        "bert_tf": [
            "checkpoints/catalogue/bert-tf-mini/*",
            "fine_tuning/*.jinja",
            "py.typed",
            "recipes/*.flags",
            "recipes/data/*.flags",
            "sample_data/*",
            "serving/*.html",
            "tokenization/*.txt",
        ]
    },
    entry_points={
        "console_scripts": [
            "bert_tf = bert_tf.command_line:main",
            *(f"{tool} = bert_tf.tools.{tool}:main" for tool in TOOLS),
        ]
    },
    install_requires=[
        # The last tensorflow-tpu is 2.20; requirements/tpu.txt says how to install it.
        "tensorflow>=2.20,<2.22",
        # It has no wheels for Windows.
        "tensorflow-text>=2.20,<2.22; platform_system != 'Windows'",
        "keras>=3.10,<4",
        "absl-py>=1.4",  # Colab has 1.4.0.
        "numpy>=1.26",
        "filelock>=3.30",
        "google-crc32c>=1.5",
        "h5py>=3.10",
        "jinja2>=3.1",
        "ml-dtypes>=0.4",
        "requests>=2.28",
        "safetensors>=0.4.3",
        "scipy>=1.11",
        "tqdm>=4.66",
        "urllib3>=2",
    ],
    extras_require={
        **EXTRAS,
        "all": sorted({item for items in EXTRAS.values() for item in items}),
        **SEPARATE_EXTRAS,
    },
)
