"""Part of fine_tuning: this package, through run_classifier."""

import os

import fine_tuning_task
import report

from tools import run_classifier


def main():
    """Fine-tunes as a user would, and answers the driver."""
    settings = fine_tuning_task.read_settings()
    dtype = settings["dtype"]
    arguments = [
        f"--task_name={settings['task']}",
        f"--data_dir={settings['data_dir']}",
        f"--init_checkpoint={settings['model']}",
        f"--output_dir={settings['output_dir']}",
        f"--train_batch_size={fine_tuning_task.BATCH_SIZE}",
        f"--max_seq_length={fine_tuning_task.MAX_LENGTH}",
        f"--learning_rate={fine_tuning_task.RATE}",
        f"--warmup_proportion={fine_tuning_task.WARMUP_PROPORTION}",
        f"--num_train_epochs={settings['num_epochs']}",
        f"--random_seed={settings['seed']}",
        f"--dtype={'mixed_bfloat16' if dtype == 'bfloat16' else dtype}",
        f"--eval_batch_size={fine_tuning_task.BATCH_SIZE}",
        f"--group_by_length={str(settings['is_grouped']).lower()}",
        "--do_train",
        "--do_eval",
    ]
    code = run_classifier.main(arguments)
    if code:
        raise SystemExit(code)
    path = os.path.join(settings["output_dir"], "eval_results.txt")
    with open(path, encoding="utf-8") as lines:
        scores = dict(line.strip().split(" = ") for line in lines)
    fine_tuning_task.answer(
        float(scores["eval_accuracy"]),
        report.versions("tensorflow", "tensorflow-text", "keras"),
    )


if __name__ == "__main__":
    main()
