"""Part of inference: this package, with TensorFlow or with OpenVINO."""

import inference_task

import bert_tf


def main():
    """Loads the encoder and answers the driver."""
    task = inference_task.read_task()
    encoder = bert_tf.load(
        task["model"], head="encoder", dtype=task["dtype"], backend=task["backend"]
    )
    packages = ["tensorflow", "tensorflow-text", "keras"]
    if task["backend"] == "openvino":
        packages.append("openvino")
    inference_task.serve(task, encoder.embed, *packages)


if __name__ == "__main__":
    main()
