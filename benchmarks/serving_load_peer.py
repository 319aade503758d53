"""Part of serving_load: a plain server of sentence vectors, written with FastAPI.

It has what such servers usually have: a function that computes the vectors of a
request, called in one of FastAPI's threads. Requests are not computed together.
"""

import argparse
import importlib
import threading
from typing import Any

import fastapi
import uvicorn


def main():
    """Serves vectors at the path and in the form of TensorFlow Serving."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", required=True, help="as in inference_LIBRARY.py")
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args()
    module = importlib.import_module(f"inference_{args.library}")
    embed = module.embedder(args.model, "float32")
    # OpenVINO's compiled model computes one request at a time, with all processors.
    lock = threading.Lock()
    app = fastapi.FastAPI()

    @app.get("/health")
    def health() -> str:
        return "ok"

    @app.post("/v1/models/model:predict")
    def predict(body: dict[str, Any]) -> dict[str, Any]:
        if args.library != "openvino":
            return {"outputs": embed(body["inputs"]).tolist()}
        with lock:
            return {"outputs": embed(body["inputs"]).tolist()}

    embed(["a", "a longer text"])
    uvicorn.run(app, port=args.port, log_level="error")


if __name__ == "__main__":
    main()
