"""Files that start TensorFlow Serving with an export: beside the versions of a model.

They are written for one model in its own folder, which the server sees as
`/models/NAME`, and are meant to be edited.
"""

import json
import os
import re
import string

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.serving import signatures

# TensorFlow Serving 2.16 and newer have the ops of TensorFlow Text that exports use.
SERVING_IMAGE = "tensorflow/serving:2.19.1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MEBIBYTE = 2**20
_LONGEST_DNS_NAME = 63
# TensorFlow Serving refuses a request of more rows than a batch may have. The model
# divides a batch into parts, so this does not limit the memory.
_MAX_BATCH_SIZE = 128
# For the server itself and the activations of a batch.
_BASE_MEBIBYTES = 2048


def check_layout(export_dir: str) -> None:
    """Raises ValueError before an export if `write` will not know the model's name."""
    model_dir, version = os.path.split(os.path.abspath(export_dir))
    if not version.isdigit() or not _NAME.fullmatch(os.path.basename(model_dir)):
        raise ValueError(
            f"{export_dir} is not the folder of a version, such as models/topics/1, so "
            "a server has no name for the model; pass such an --export_dir, or omit "
            "--server_files."
        )


def write(export_dir: str) -> str:
    """Writes the files of an exported version, over old ones; returns the folder."""
    export_dir = export_dir.rstrip("/")
    model_dir, version = os.path.split(os.path.abspath(export_dir))
    task = companion_files.read_task(f"{export_dir}/assets.extra")
    rows = max(_MAX_BATCH_SIZE, signatures.MAX_BATCH_TOKENS // task["max_seq_length"])
    variables = f"{export_dir}/variables"
    sizes = [files.size(f"{variables}/{name}") for name in files.list_folder(variables)]
    name = os.path.basename(model_dir)
    arguments = [
        f"--model_name={name}",
        f"--model_base_path=/models/{name}",
        "--enable_batching=true",
        f"--batching_parameters_file=/models/{name}/server/batching_parameters.txt",
    ]
    names = {
        "NAME": name,
        "DNS_NAME": _dns_name(name),
        "ARGUMENTS": json.dumps(arguments),
        "IMAGE": SERVING_IMAGE,
        "VERSION": version,
        "MEBIBYTES": str(_BASE_MEBIBYTES + 2 * -(-sum(sizes) // _MEBIBYTE)),
        "ROWS": str(rows),
    }
    folder = f"{os.path.dirname(export_dir)}/server"
    for file_name, template in _TEMPLATES.items():
        with files.complete_or_absent(f"{folder}/{file_name}") as file:
            file.write(string.Template(template).substitute(names))
    return folder


def _dns_name(name):
    """Returns a name for Kubernetes: a label as in RFC 1035."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    if not words[0][0].isalpha():
        words.insert(0, "model")
    return "-".join(words)[:_LONGEST_DNS_NAME].rstrip("-")


_BATCHING = """\
# Requests that wait together are computed in one call of the model. The model divides a
# call into parts of similar length, so long and short texts may share one.
# TensorFlow Serving refuses a request of more rows. The warm-up has one of 32.
max_batch_size { value: $ROWS }
# How long a request waits for others, in microseconds.
batch_timeout_micros { value: 2000 }
# Further requests get the error UNAVAILABLE.
max_enqueued_batches { value: 64 }
# Set this to the number of processor cores.
num_batch_threads { value: 4 }
# For the signature `ids` and for endings of multiple choice, whose rows vary in length.
pad_variable_length_inputs: true
"""
_DOCKERFILE = """\
# In the folder of the model:
# docker build --file server/Dockerfile --tag $DNS_NAME:$VERSION .
FROM $IMAGE
COPY . /models/$NAME
EXPOSE 8500 8501
CMD $ARGUMENTS
"""
_COMPOSE = """\
# In this folder: docker compose up. REST is on port 8501, gRPC on 8500.
services:
  $DNS_NAME:
    image: $IMAGE
    command: $ARGUMENTS
    ports:
      # Of this machine alone: the server has neither TLS nor authentication.
      - "127.0.0.1:8500:8500"
      - "127.0.0.1:8501:8501"
    security_opt:
      - no-new-privileges:true
    volumes:
      - ..:/models/$NAME:ro
    restart: unless-stopped
"""
_KUBERNETES = """\
# Build and push the image of the Dockerfile first, and enter its name below. The server
# answers for the metadata of a model only after loading and warm-up.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: $DNS_NAME
spec:
  replicas: 2
  selector:
    matchLabels:
      app: $DNS_NAME
  template:
    metadata:
      labels:
        app: $DNS_NAME
    spec:
      containers:
        - name: serving
          image: $DNS_NAME:$VERSION
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop: ["ALL"]
            runAsNonRoot: true
            runAsUser: 1000
          args: $ARGUMENTS
          ports:
            - name: grpc
              containerPort: 8500
            - name: rest
              containerPort: 8501
          resources:
            requests:
              cpu: "1"
              memory: ${MEBIBYTES}Mi
            limits:
              memory: ${MEBIBYTES}Mi
          startupProbe:
            httpGet:
              path: /v1/models/$NAME/metadata
              port: rest
            periodSeconds: 5
            failureThreshold: 120
          readinessProbe:
            httpGet:
              path: /v1/models/$NAME/metadata
              port: rest
            periodSeconds: 10
          livenessProbe:
            tcpSocket:
              port: grpc
            periodSeconds: 20
---
apiVersion: v1
kind: Service
metadata:
  name: $DNS_NAME
spec:
  selector:
    app: $DNS_NAME
  ports:
    - name: grpc
      port: 8500
    - name: rest
      port: 8501
"""
_TEMPLATES = {
    "batching_parameters.txt": _BATCHING,
    "Dockerfile": _DOCKERFILE,
    "compose.yaml": _COMPOSE,
    "kubernetes.yaml": _KUBERNETES,
}
