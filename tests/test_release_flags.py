"""Every flag of the 2018 release is there, under its name and with its default.

--device replaces the flags of the TPU plumbing; see test_command_line.py.
"""

import pytest

from bert_tf import options as options_module

REQUIRED = options_module.REQUIRED
OPTIONAL = (None, "", ())  # The release's None: nothing given.

_TRAINING = {
    "train_batch_size": 32,
    "learning_rate": 5e-5,
    "save_checkpoints_steps": 1000,
    "iterations_per_loop": 1000,
    "do_train": False,
}
_FINE_TUNING = {
    **_TRAINING,
    "bert_config_file": (REQUIRED, *OPTIONAL),
    "vocab_file": (REQUIRED, *OPTIONAL),
    "output_dir": REQUIRED,
    "init_checkpoint": OPTIONAL,
    "do_lower_case": True,
    "do_predict": False,
    "predict_batch_size": 8,
    "num_train_epochs": 3.0,
    "warmup_proportion": 0.1,
}
RELEASED = {
    "create_pretraining_data": {
        "input_file": REQUIRED,
        "output_file": REQUIRED,
        "vocab_file": REQUIRED,
        "do_lower_case": True,
        "do_whole_word_mask": False,
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "random_seed": 12345,
        "dupe_factor": 10,
        "masked_lm_prob": 0.15,
        "short_seq_prob": 0.1,
    },
    "run_pretraining": {
        **_TRAINING,
        "input_file": REQUIRED,
        "output_dir": REQUIRED,
        "bert_config_file": (REQUIRED, *OPTIONAL),
        "init_checkpoint": OPTIONAL,
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "do_eval": False,
        "eval_batch_size": 8,
        "num_train_steps": 100000,
        "num_warmup_steps": 10000,
        "max_eval_steps": 100,
    },
    "run_classifier": {
        **_FINE_TUNING,
        "data_dir": (REQUIRED, *OPTIONAL),  # Own data comes as --train_file instead.
        "task_name": (REQUIRED, *OPTIONAL),
        "max_seq_length": 128,
        "do_eval": False,
        "eval_batch_size": 8,
    },
    "run_squad": {
        **_FINE_TUNING,
        "train_file": OPTIONAL,
        "predict_file": OPTIONAL,
        "max_seq_length": 384,
        "doc_stride": 128,
        "max_query_length": 64,
        "n_best_size": 20,
        "max_answer_length": 30,
        "verbose_logging": False,
        "version_2_with_negative": False,
        "null_score_diff_threshold": 0.0,
    },
    "extract_features": {
        "input_file": REQUIRED,
        "output_file": REQUIRED,
        "vocab_file": (REQUIRED, *OPTIONAL),
        "bert_config_file": (REQUIRED, *OPTIONAL),
        "init_checkpoint": REQUIRED,
        "layers": (-1, -2, -3, -4),
        "max_seq_length": 128,
        "do_lower_case": True,
        "batch_size": 32,
    },
}


@pytest.mark.parametrize("tool", RELEASED)
def test_the_releases_flags_have_their_names_and_defaults(tool, options_of_tool):
    declared = {d.name: d for d in options_module.declarations(options_of_tool(tool))}
    for flag, released in RELEASED[tool].items():
        assert flag in declared, f"{tool} has no --{flag}"
        default = declared[flag].default
        is_several = isinstance(released, tuple) and flag != "layers"
        allowed = released if is_several else (released,)
        assert default in allowed, (
            f"{tool} --{flag}: {default!r}, released {released!r}"
        )
        assert bool not in (type(default), type(allowed[0])) or default is allowed[0]
