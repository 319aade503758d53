"""For every flag of every tool, the test that shows its effect.

Add every new flag here, with the test of its effect.
"""

import ast
import functools
import pathlib

import pytest

from bert_tf import options as options_module

ROOT = pathlib.Path(__file__).resolve().parent

LOOP = "training/test_loop.py::test_sizes_of_batches_and_of_calls_follow_their_flags"
MULTI_WORKER = (
    "training/test_multi_worker.py::"
    "test_two_workers_go_the_way_of_one_device_even_when_one_is_killed"
)
PRETRAIN = "tools/test_run_pretraining.py::"
RUN_FOLDER = PRETRAIN + "test_training_and_evaluating_leave_a_whole_run_folder"
BEST = PRETRAIN + "test_best_checkpoint_is_kept_and_training_stops_early"
TIME = (
    "training/test_timing.py::"
    "test_a_run_ends_with_its_time_and_a_later_part_goes_on_from_there"
)
ORDER = PRETRAIN + "test_order_and_seed_follow_their_flags"
MISTAKE = PRETRAIN + "test_a_mistake_ends_in_one_clear_line"
CLASSIFY = "tasks/classification/test_workflow.py::"
CLASSIFY_TOOL = "tools/test_run_classifier.py::"
RATE = CLASSIFY + "test_model_and_rate_follow_their_flags"
INDIVISIBLE = CLASSIFY + "test_a_batch_that_does_not_divide_is_refused_before_training"
EXTRACT = "tasks/feature_extraction/test_extraction.py::"
EXTRACT_TOOL = "tools/test_extract_features.py::"
CONTRACT = "tasks/test_contract.py::"
CONTRACT_REFUSED = CONTRACT + "test_what_does_not_fit_is_refused_before_training"
CONTRACT_DIVIDES = (
    CONTRACT + "test_a_batch_that_does_not_divide_is_refused_before_training"
)
CONTRACT_MODEL = (
    CONTRACT + "test_a_run_with_another_vocabulary_or_model_is_not_continued"
)
CONTRACT_TASK = CONTRACT + "test_a_run_with_another_task_is_not_continued"
CHOOSE = "tasks/multiple_choice/test_workflow.py::"
CHOOSE_TOOL = "tools/test_run_swag.py::"
GLUE = CLASSIFY + "test_a_glue_task_reads_its_folder_and_has_its_scores"
ANOTHER_TASK = CLASSIFY + "test_a_run_of_another_task_is_not_continued"
SQUAD = "tasks/question_answering/test_workflow.py::"
SQUAD_TOOL = "tools/test_run_squad.py::"
SQUAD_RATE = SQUAD + "test_model_and_rate_follow_their_flags"
SQUAD_WINDOWS = SQUAD + "test_windows_follow_their_flags"
SQUAD_DIVIDES = SQUAD + "test_a_batch_that_does_not_divide_is_refused_before_training"
EVALUATE_SQUAD = "tools/test_evaluate_squad.py::"
ABLATIONS = "pretraining/test_objectives.py::"
CREATE = "pretraining_data/test_workflow.py::"
RECORDS = CREATE + "test_every_flag_changes_the_records"
MASKED_IN_TRAINING = (
    "pretraining/test_dynamic_masking.py::test_masks_of_training_follow_their_flags"
)
FROM_TEXT = (
    "pretraining/test_text_examples.py::test_flags_decide_how_text_becomes_examples"
)
VOCABULARY = "tools/test_build_vocabulary.py::"
LEARNED = VOCABULARY + "test_every_flag_changes_what_is_learned"
FILL = "pretraining/test_predictions.py::"
NAMED_FIRST = FILL + "test_a_configuration_and_a_vocabulary_that_are_named_come_first"
CONVERT = "tools/test_convert_checkpoint.py::"
CONVERTED = (
    CONVERT + "test_the_head_the_vocabulary_the_size_and_the_casing_follow_their_flags"
)
NOT_CONVERTED = (
    CONVERT + "test_a_head_that_the_target_cannot_store_is_dropped_only_on_request"
)
REPORT = CONVERT + "test_the_report_says_what_went_where_and_that_nothing_changed"
SERVER = "serving/test_server.py::"
QUERY = "tools/test_query_saved_model.py::"
QUESTIONS = "serving/test_query.py::"
NOT_EXPORTED = (
    "tools/test_export_saved_model.py::test_what_cannot_be_exported_ends_in_one_line"
)
HELD_OUT = CLASSIFY_TOOL + "test_one_table_is_divided_into_training_and_evaluation"
KINDS = "tasks/classification/test_kinds_of_labels.py::"
TRIALS = "fine_tuning/test_trials.py::"
XNLI_STORY = (
    "tasks/classification/test_glue_workflow.py::"
    "test_a_model_trained_in_one_language_is_asked_in_others"
)
TFDS = "tasks/classification/test_tfds.py::"
BY_NAME = "fine_tuning/test_tfds_files.py::"
GLUE_TABLE = "tools/test_evaluate_glue.py::"
DISTILL = "tasks/classification/test_distillation.py::"
CHECKED = "data_checks/test_workflow.py::"
RUNNERS = "data/parallel/test_beam.py::"
ON_RUNNERS = {
    "runner": RUNNERS + "test_runners_write_what_one_process_writes",
    "pipeline_options": RUNNERS + "test_flags_of_another_place_are_wrong_usage",
}
CORPUS = "tools/test_prepare_corpus.py::"
CORPUS_FIELDS = CORPUS + "test_json_lines_are_documents_of_the_field_that_is_named"
CORPUS_DATASET = CORPUS + "test_a_data_set_is_read_by_name"
CORPUS_DUPLICATES = CORPUS + "test_repeated_paragraphs_are_left_out_when_asked"
CORPUS_WORKERS = (
    CORPUS + "test_what_is_written_does_not_depend_on_the_number_of_workers"
)
TAG = "tasks/token_classification/test_workflow.py::"
TAG_TOOL = "tools/test_run_ner.py::"
TAG_COLUMNS = TAG + "test_tags_are_those_of_the_column_in_the_scheme"
TAG_WINDOWS = TAG + "test_windows_follow_length_stride_and_documents"
TAG_RATE = TAG + "test_model_and_rate_follow_their_flags"
TAG_DIVIDES = TAG + "test_a_batch_that_does_not_divide_is_refused_before_training"
TAG_OTHER_MODEL = TAG + "test_another_model_or_vocabulary_is_not_continued"
TAG_TOOL_STORY = (
    TAG_TOOL + "test_a_folder_of_tagged_words_in_scores_and_predictions_out"
)
RETRIEVE = "tasks/retrieval/test_workflow.py::"
RETRIEVE_TOOL = "tools/test_run_retrieval.py::"
RETRIEVED = RETRIEVE_TOOL + "test_a_run_reports_scores_and_writes_rankings"
NOT_RETRIEVED = RETRIEVE + "test_what_does_not_fit_is_refused_before_training"
ANOTHER_RETRIEVAL = RETRIEVE + "test_a_run_of_another_task_is_not_continued"
RETRIEVAL_RATE = RETRIEVE + "test_model_and_rate_follow_their_flags"
EARLIER_DEMO = "demo/test_demo.py::test_an_earlier_demo_is_replaced"

# The training loop is the same in every tool that trains.
TRAINING = {
    "output_dir": PRETRAIN + "test_mixed_bfloat16_trains_with_float32_weights",
    "init_checkpoint": PRETRAIN + "test_evaluation_counts_every_example_once",
    "do_train": RUN_FOLDER,
    "do_eval": RUN_FOLDER,
    "train_batch_size": LOOP,
    "eval_batch_size": LOOP,
    "learning_rate": PRETRAIN
    + "test_a_run_of_the_2018_code_is_continued_with_slots_and_step",
    "save_checkpoints_steps": RUN_FOLDER,
    "iterations_per_loop": LOOP,
    "device": "training/test_loop.py::test_the_device_is_the_one_asked_for",
    "tpu_name": "training/test_distribution.py::"
    "test_tpu_is_resolved_connected_initialized_in_this_order",
    "tpu_zone": "training/test_distribution.py::"
    "test_tpu_is_resolved_connected_initialized_in_this_order",
    "gcp_project": "training/test_distribution.py::"
    "test_tpu_is_resolved_connected_initialized_in_this_order",
    "num_replicas": "training/test_distribution.py::"
    "test_replicas_get_contiguous_parts_of_the_global_batch",
    "worker_hosts": MULTI_WORKER,
    "worker_index": MULTI_WORKER,
    "random_seed": ORDER,
    "dtype": PRETRAIN + "test_mixed_bfloat16_trains_with_float32_weights",
    "optimizer": "training/test_optimizers.py::"
    "test_a_float16_run_goes_on_with_its_scale",
    "gradient_accumulation_steps": "training/test_loop.py::"
    "test_the_model_sees_one_micro_batch_at_a_time",
    "recompute_layers": "training/test_recomputation.py::"
    "test_every_layer_is_computed_twice",
    "log_every_steps": RUN_FOLDER,
    "eval_every_steps": BEST,
    "early_stopping_evals": BEST,
    "best_metric": BEST,
    "keep_checkpoint_max": RUN_FOLDER,
    "shuffle_buffer_size": ORDER,
    "length_buckets": "data/test_batching.py::"
    "test_length_buckets_cut_a_batch_to_its_longest_row",
    "jit_compile": "training/test_loop.py::"
    "test_jit_compile_has_xla_compile_the_gradients",
    "dry_run": PRETRAIN + "test_dry_run_reports_the_size_and_writes_nothing",
    "deterministic": "training/test_gpus.py::"
    "test_deterministic_operations_are_turned_on_with_their_flag",
}
FINE_TUNING = {
    **TRAINING,
    "length_buckets": "training/test_length_buckets.py::"
    "test_losses_are_those_of_padded_batches",
    "group_by_length": "training/test_length_buckets.py::"
    "test_grouping_by_length_is_another_composition",
    "card_examples": "fine_tuning/test_model_card.py::"
    "test_wrong_examples_are_in_a_file_of_their_own",
    "frozen_layers": "training/test_building.py::"
    "test_what_is_frozen_does_not_change_and_has_no_slots",
}
OBSERVED = {
    "build_vocabulary": {
        "input_file": VOCABULARY + "test_a_vocabulary_is_learned_and_described",
        "vocab_file": VOCABULARY + "test_a_vocabulary_is_learned_and_described",
        "output_file": VOCABULARY + "test_words_fill_unused_places",
        "vocab_size": LEARNED,
        "do_lower_case": LEARNED,
        "strip_accents": LEARNED,
        "num_unused": LEARNED,
        "min_frequency": LEARNED,
        "character_coverage": LEARNED,
        "fill_unused": VOCABULARY + "test_words_fill_unused_places",
    },
    "create_pretraining_data": {
        **ON_RUNNERS,
        "input_file": CREATE + "test_bad_input_is_one_clear_line",
        "output_file": CREATE + "test_several_output_files_get_the_records_in_turn",
        "vocab_file": CREATE + "test_the_side_file_says_how_the_records_were_made",
        "do_lower_case": RECORDS,
        "do_whole_word_mask": RECORDS,
        "max_seq_length": RECORDS,
        "max_predictions_per_seq": RECORDS,
        "random_seed": CREATE
        + "test_two_runs_give_the_same_bytes_and_other_seeds_other_records",
        "dupe_factor": RECORDS,
        "masked_lm_prob": RECORDS,
        "mask_share": RECORDS,
        "same_share": RECORDS,
        "random_share": RECORDS,
        "short_seq_prob": RECORDS,
        "sampler": RECORDS,
        "next_sentence": RECORDS,
        # What is written does not depend on it; that there are workers is seen here.
        "num_workers": CREATE + "test_a_worker_that_is_killed_is_a_clear_error",
        "shard_mb": RECORDS,
        "masking": RECORDS,
        "dynamic_masking": RECORDS,
        "packed_rows": RECORDS,
        "whole_word_segmenter": "pretraining_data/test_segmentation.py::"
        "test_characters_of_a_chinese_word_are_masked_together",
    },
    "prepare_corpus": {
        **ON_RUNNERS,
        "input_file": CORPUS + "test_text_is_unpacked_while_it_is_read",
        "output_dir": CORPUS + "test_other_files_are_not_overwritten",
        "format": CORPUS + "test_the_format_can_be_given",
        "text_field": CORPUS_FIELDS,
        "tfds_name": CORPUS_DATASET,
        "tfds_split": CORPUS_DATASET,
        "language": CORPUS + "test_the_language_s_rules_end_sentences",
        "deduplicate_paragraphs": CORPUS_DUPLICATES,
        "shard_mb": CORPUS_WORKERS,
        "num_workers": CORPUS_WORKERS,
    },
    "run_pretraining": {
        **TRAINING,
        "cache_dir": "data/test_local_copies.py::"
        "test_a_run_reads_copies_as_it_reads_local_files",
        "input_file": MISTAKE,
        "bert_config_file": PRETRAIN + "test_a_run_of_another_model_is_not_continued",
        "config_overrides": ABLATIONS
        + "test_values_of_the_configuration_can_be_changed_and_stay_with_the_run",
        "model_size": ABLATIONS
        + "test_a_named_size_trains_with_the_vocabulary_of_the_examples",
        "objective": ABLATIONS + "test_left_to_right_trains_and_scores_the_next_piece",
        "eval_input_file": LOOP,
        "vocab_file": RUN_FOLDER,
        "do_lower_case": FROM_TEXT,
        "next_sentence": FROM_TEXT,
        "short_seq_prob": FROM_TEXT,
        "max_seq_length": MISTAKE,
        "max_predictions_per_seq": MISTAKE,
        "do_whole_word_mask": MASKED_IN_TRAINING,
        "masking": MASKED_IN_TRAINING,
        "masked_lm_prob": MASKED_IN_TRAINING,
        "mask_share": MASKED_IN_TRAINING,
        "same_share": MASKED_IN_TRAINING,
        "random_share": MASKED_IN_TRAINING,
        "num_train_steps": PRETRAIN
        + "test_a_run_of_the_2018_code_is_continued_with_slots_and_step",
        "num_warmup_steps": LOOP,
        "max_train_minutes": TIME,
        "phase_schedule": "pretraining/test_shared_schedule.py::"
        "test_two_phases_with_the_same_data_equal_one_run",
        "schedule_steps": "pretraining/test_shared_schedule.py::"
        "test_each_phase_can_be_a_separate_command",
        "continue_schedule": "pretraining/test_shared_schedule.py::"
        "test_each_phase_can_be_a_separate_command",
        "phase": "pretraining/test_phases.py::"
        "test_two_phases_are_two_runs_from_one_command",
        "warmup_proportion": TIME,
        "max_eval_steps": PRETRAIN
        + "test_max_eval_steps_limits_the_evaluation_and_says_so",
    },
    "fill_mask": {
        "init_checkpoint": FILL
        + "test_what_is_beside_the_checkpoint_need_not_be_named",
        "text": FILL + "test_the_text_of_the_flag_or_of_standard_input_is_filled",
        "bert_config_file": NAMED_FIRST,
        "vocab_file": NAMED_FIRST,
        "do_lower_case": FILL + "test_the_casing_is_the_flags_or_that_of_the_run",
        "top_k": FILL + "test_the_report_has_a_line_a_mask_with_top_k_words",
        "input_file": FILL + "test_the_report_has_a_line_a_mask_with_top_k_words",
        "output_file": FILL + "test_texts_of_a_file_are_answered_in_a_file",
        "iterative": FILL
        + "test_the_report_shows_what_was_filled_and_how_likely_a_text_is",
        "pseudo_log_likelihood": FILL
        + "test_the_report_shows_what_was_filled_and_how_likely_a_text_is",
        "batch_size": FILL + "test_a_batch_holds_batch_size_texts",
    },
    "run_classifier": {
        **FINE_TUNING,
        "init_checkpoint": CLASSIFY + "test_the_encoder_comes_from_the_checkpoint",
        "train_batch_size": CLASSIFY_TOOL
        + "test_what_does_not_fit_ends_in_one_line_and_exit_code_1",
        "eval_batch_size": INDIVISIBLE,
        "dtype": RATE,
        "bert_config_file": CLASSIFY + "test_a_run_of_another_model_is_not_continued",
        "vocab_file": CLASSIFY + "test_a_run_with_another_vocabulary_is_not_continued",
        "num_restarts": TRIALS + "test_restarts_have_seeds_that_follow_one_another",
        "sweep": TRIALS + "test_a_sweep_is_every_combination",
        "task_name": GLUE,
        "data_dir": GLUE,
        "train_language": XNLI_STORY,
        "eval_language": XNLI_STORY,
        "tfds_name": TFDS + "test_a_dataset_is_trained_on_scored_and_predicted",
        "tfds_splits": TFDS + "test_splits_are_those_that_are_named",
        "merge_labels": CLASSIFY_TOOL
        + "test_labels_are_merged_on_request_and_stay_merged",
        "validation_split": HELD_OUT,
        "validation_seed": HELD_OUT,
        "label_separator": KINDS
        + "test_any_number_of_classes_is_learned_scored_and_written",
        "threshold": KINDS + "test_the_threshold_decides_which_classes_count",
        "regression": KINDS + "test_a_number_is_learned_scored_and_written",
        "class_weights": KINDS
        + "test_balanced_class_weights_are_logged_and_change_the_training",
        "doc_stride": KINDS + "test_the_end_of_a_long_text_is_read_only_in_windows",
        "train_file": CLASSIFY + "test_classes_are_those_of_the_column_that_is_named",
        "eval_file": CLASSIFY_TOOL + "test_csv_in_scores_and_predictions_out",
        "predict_file": CLASSIFY_TOOL + "test_csv_in_scores_and_predictions_out",
        "text_column": CLASSIFY + "test_what_does_not_fit_is_refused_before_training",
        "text_b_column": ANOTHER_TASK,
        "label_column": CLASSIFY + "test_classes_are_those_of_the_column_that_is_named",
        "labels": ANOTHER_TASK,
        "do_lower_case": CLASSIFY + "test_the_casing_of_the_checkpoints_run_is_kept",
        "max_seq_length": ANOTHER_TASK,
        "do_predict": CLASSIFY_TOOL + "test_csv_in_scores_and_predictions_out",
        "predict_batch_size": INDIVISIBLE,
        "num_train_epochs": CLASSIFY
        + "test_train_and_evaluate_return_what_they_reached",
        "warmup_proportion": RATE,
        "bilstm_on_top": CLASSIFY + "test_a_bilstm_on_top_is_trained_kept_and_exported",
        "teacher": DISTILL + "test_a_student_is_better_with_a_teacher_than_without",
        "distillation_temperature": DISTILL
        + "test_temperature_and_weight_change_the_loss",
        "distillation_weight": DISTILL + "test_temperature_and_weight_change_the_loss",
    },
    "evaluate_glue": {
        "input_dir": GLUE_TABLE + "test_runs_and_answers_are_one_table",
        "data_dir": GLUE_TABLE + "test_runs_and_answers_are_one_table",
        "output_file": GLUE_TABLE + "test_runs_and_answers_are_one_table",
    },
    "run_ner": {
        **FINE_TUNING,
        "tfds_name": BY_NAME + "test_conll_by_name_is_tagged_with_entities",
        "tfds_splits": BY_NAME + "test_options_of_data_sets_belong_together",
        "init_checkpoint": TAG
        + "test_the_frozen_encoder_keeps_its_weights_and_names_are_still_found",
        "do_train": TAG_TOOL_STORY,
        "do_eval": TAG_TOOL_STORY,
        "train_batch_size": TAG + "test_what_does_not_fit_is_refused_before_training",
        "eval_batch_size": TAG_DIVIDES,
        "learning_rate": TAG_RATE,
        "dtype": TAG_RATE,
        "eval_every_steps": TAG + "test_what_does_not_fit_is_refused_before_training",
        "dry_run": TAG + "test_a_dry_run_writes_nothing",
        "data_dir": TAG_TOOL_STORY,
        "predict_file": TAG_TOOL + "test_plain_text_is_tagged_line_by_line",
        "label_list": TAG_TOOL + "test_the_tags_may_be_in_a_file",
        "word_column": TAG_COLUMNS,
        "tag_column": TAG_COLUMNS,
        "tag_scheme": TAG_COLUMNS,
        "labels": TAG_COLUMNS,
        "bert_config_file": TAG_OTHER_MODEL,
        "vocab_file": TAG_OTHER_MODEL,
        "do_lower_case": TAG + "test_a_run_of_another_task_is_not_continued",
        "max_seq_length": TAG_WINDOWS,
        "doc_stride": TAG_WINDOWS,
        "document_context": TAG_WINDOWS,
        "true_case": TAG + "test_true_cases_are_learned_and_kept_with_the_run",
        "feature_based": TAG
        + "test_the_frozen_encoder_keeps_its_weights_and_names_are_still_found",
        "do_predict": TAG_TOOL_STORY,
        "predict_batch_size": TAG_DIVIDES,
        "num_train_epochs": TAG + "test_train_and_evaluate_return_what_they_reached",
        "warmup_proportion": TAG_RATE,
    },
    "run_swag": {
        **FINE_TUNING,
        "check": CONTRACT + "test_data_is_checked_and_nothing_is_written",
        "tfds_name": BY_NAME + "test_hellaswag_by_name_has_four_endings",
        "tfds_splits": BY_NAME + "test_options_of_data_sets_belong_together",
        "init_checkpoint": CHOOSE + "test_the_encoder_comes_from_the_checkpoint",
        "train_batch_size": CONTRACT
        + "test_what_does_not_fit_is_refused_before_training",
        "eval_batch_size": CONTRACT
        + "test_a_batch_that_does_not_divide_is_refused_before_training",
        "learning_rate": CONTRACT + "test_model_and_rate_follow_their_flags",
        "dtype": CONTRACT + "test_model_and_rate_follow_their_flags",
        "dry_run": CHOOSE
        + "test_a_dry_run_counts_every_endings_sequence_and_writes_nothing",
        "bert_config_file": CONTRACT
        + "test_a_run_with_another_vocabulary_or_model_is_not_continued",
        "vocab_file": CONTRACT
        + "test_a_run_with_another_vocabulary_or_model_is_not_continued",
        "data_dir": CHOOSE + "test_a_folder_as_published_is_read",
        "train_file": CHOOSE + "test_the_columns_are_those_that_are_named",
        "eval_file": CHOOSE + "test_files_with_another_number_of_endings_are_refused",
        "predict_file": CHOOSE_TOOL + "test_a_table_in_scores_and_predictions_out",
        "start_column": CHOOSE + "test_the_columns_are_those_that_are_named",
        "ending_columns": CHOOSE + "test_the_columns_are_those_that_are_named",
        "label_column": CHOOSE + "test_the_columns_are_those_that_are_named",
        "header": CHOOSE + "test_the_columns_are_those_that_are_named",
        "do_lower_case": CHOOSE + "test_the_casing_is_the_checkpoints",
        "max_seq_length": CONTRACT_TASK,
        "do_predict": CHOOSE_TOOL + "test_a_table_in_scores_and_predictions_out",
        "predict_batch_size": CONTRACT
        + "test_a_batch_that_does_not_divide_is_refused_before_training",
        "num_train_epochs": CHOOSE_TOOL + "test_a_table_in_scores_and_predictions_out",
        "warmup_proportion": CONTRACT + "test_model_and_rate_follow_their_flags",
    },
    "run_retrieval": {
        **FINE_TUNING,
        "init_checkpoint": RETRIEVE + "test_an_encoder_is_evaluated_as_it_is",
        "train_batch_size": NOT_RETRIEVED,
        "eval_batch_size": RETRIEVE
        + "test_a_batch_that_does_not_divide_is_refused_before_training",
        "learning_rate": RETRIEVAL_RATE,
        "dtype": RETRIEVAL_RATE,
        "gradient_accumulation_steps": RETRIEVE_TOOL
        + "test_a_user_mistake_ends_in_one_line",
        "best_metric": RETRIEVE
        + "test_training_and_evaluation_are_logged_and_the_best_is_kept",
        "dry_run": RETRIEVE + "test_a_dry_run_counts_all_sequences_and_writes_nothing",
        "model": ANOTHER_RETRIEVAL,
        "bert_config_file": RETRIEVE
        + "test_a_run_with_another_vocabulary_or_model_is_not_continued",
        "vocab_file": RETRIEVE
        + "test_a_run_with_another_vocabulary_or_model_is_not_continued",
        "train_file": RETRIEVE + "test_negatives_follow_flag_file_and_model",
        "eval_file": RETRIEVE + "test_a_passage_that_is_not_in_the_corpus_is_refused",
        "predict_file": RETRIEVED,
        "corpus_file": RETRIEVE
        + "test_vectors_of_a_corpus_are_kept_until_model_or_corpus_change",
        "do_lower_case": ANOTHER_RETRIEVAL,
        "max_query_length": NOT_RETRIEVED,
        "max_seq_length": NOT_RETRIEVED,
        "pooling": RETRIEVAL_RATE,
        "temperature": RETRIEVAL_RATE,
        "num_negatives": RETRIEVE + "test_negatives_follow_flag_file_and_model",
        "do_predict": RETRIEVED,
        "num_train_epochs": NOT_RETRIEVED,
        "warmup_proportion": RETRIEVAL_RATE,
        "recall_at": RETRIEVED,
        "top_k": RETRIEVED,
        "search": RETRIEVE_TOOL
        + "test_a_search_with_a_missing_package_says_what_to_install",
        "retrieve_with": RETRIEVE + "test_a_head_that_gives_no_score_does_not_rank",
        "num_candidates": RETRIEVE + "test_a_head_that_gives_no_score_does_not_rank",
    },
    "convert_checkpoint": {
        "source": CONVERT + "test_what_does_not_fit_ends_in_one_line_and_exit_code_1",
        "target": REPORT,
        "target_format": NOT_CONVERTED,
        "head": CONVERTED,
        "drop_head": NOT_CONVERTED,
        "drop_text_encoding": "checkpoints/hugging_face/test_sentence_layout.py::"
        "test_a_format_that_cannot_say_it_needs_a_flag",
        "allow_activation_change": CONVERT
        + "test_another_activation_is_converted_only_on_request",
        "bert_config_file": CONVERTED,
        "vocab_file": CONVERTED,
        "add_words": "checkpoints/test_added_words.py::"
        "test_every_format_stores_the_grown_model",
        "do_lower_case": CONVERTED,
    },
    "run_squad": {
        **FINE_TUNING,
        "tfds_name": BY_NAME + "test_squad_by_name_is_squad",
        "tfds_splits": BY_NAME + "test_a_split_may_be_a_part",
        "data_dir": BY_NAME + "test_squad_by_name_is_squad",
        "init_checkpoint": SQUAD
        + "test_a_fine_tuned_checkpoint_answers_in_a_new_folder",
        "train_batch_size": SQUAD + "test_too_few_questions_for_a_batch_are_refused",
        "eval_batch_size": SQUAD_DIVIDES,
        "dtype": SQUAD_RATE,
        "bert_config_file": SQUAD + "test_a_run_of_another_model_is_not_continued",
        "vocab_file": SQUAD + "test_a_run_with_another_vocabulary_is_not_continued",
        "train_file": SQUAD + "test_several_files_are_trained_on_one_after_the_other",
        "predict_file": SQUAD + "test_the_threshold_decides_how_many_have_no_answer",
        "do_lower_case": SQUAD + "test_options_that_are_not_the_runs_are_refused",
        "max_seq_length": SQUAD_WINDOWS,
        "doc_stride": SQUAD_WINDOWS,
        "max_query_length": SQUAD_WINDOWS,
        "do_predict": SQUAD_TOOL + "test_questions_in_scores_and_answers_out",
        "predict_batch_size": SQUAD_DIVIDES,
        "num_train_epochs": SQUAD + "test_train_and_evaluate_return_what_they_reached",
        "warmup_proportion": SQUAD_RATE,
        "n_best_size": SQUAD + "test_the_list_is_at_most_as_long_as_n_best_size_says",
        "max_answer_length": SQUAD
        + "test_answers_are_no_longer_than_max_answer_length",
        "version_2_with_negative": SQUAD + "test_a_run_may_have_no_answer",
        "null_score_diff_threshold": SQUAD
        + "test_the_threshold_decides_how_many_have_no_answer",
        "tune_threshold": SQUAD + "test_a_tuned_threshold_is_stored_used_and_exported",
        "bilstm_on_top": SQUAD
        + "test_a_bilstm_on_top_is_trained_and_kept_with_the_run",
        "ensemble": SQUAD + "test_an_ensemble_answers_with_the_mean_of_its_runs",
        "verbose_logging": SQUAD + "test_verbose_logging_names_answers_not_found_again",
    },
    "convert_triviaqa": dict.fromkeys(
        ("qa_file", "evidence_dir", "output_file", "max_num_tokens"),
        "tools/test_convert_triviaqa.py::"
        "test_paragraphs_are_the_first_words_of_documents_with_an_answer",
    ),
    "evaluate_squad": {
        "data_file": EVALUATE_SQUAD + "test_what_cannot_be_scored_ends_in_one_line",
        "predictions_file": EVALUATE_SQUAD
        + "test_what_cannot_be_scored_ends_in_one_line",
        "null_odds_file": EVALUATE_SQUAD + "test_thresholds_are_found_only_with_odds",
        "na_prob_thresh": EVALUATE_SQUAD
        + "test_answers_above_the_threshold_count_as_none",
        "nbest_file": EVALUATE_SQUAD
        + "test_thresholds_are_found_on_answers_before_a_threshold",
        "output_file": EVALUATE_SQUAD + "test_scores_are_printed_and_written_as_json",
    },
    "extract_features": {
        "input_file": EXTRACT_TOOL + "test_lines_in_vectors_out",
        "output_file": EXTRACT_TOOL + "test_lines_in_vectors_out",
        "init_checkpoint": EXTRACT_TOOL + "test_what_does_not_fit_ends_in_one_line",
        "bert_config_file": EXTRACT_TOOL
        + "test_a_configuration_that_is_named_comes_first",
        "vocab_file": EXTRACT_TOOL + "test_what_does_not_fit_ends_in_one_line",
        "do_lower_case": EXTRACT_TOOL + "test_cased_text_stays_cased",
        "layers": EXTRACT + "test_attention_weights_are_the_encoders",
        "max_seq_length": EXTRACT_TOOL + "test_what_does_not_fit_ends_in_one_line",
        "batch_size": EXTRACT
        + "test_texts_are_taken_as_they_are_needed_and_come_in_order",
        "dtype": EXTRACT_TOOL + "test_dtype_and_backend_follow_their_flags",
        "backend": EXTRACT_TOOL + "test_dtype_and_backend_follow_their_flags",
        "pooling": EXTRACT + "test_pooling_makes_one_vector_of_the_pieces",
        "normalize": EXTRACT
        + "test_normalized_vectors_have_length_1_and_their_direction",
        "attention_weights": EXTRACT + "test_attention_weights_are_the_encoders",
        "output_format": "tasks/feature_extraction/test_formats.py::"
        "test_arrays_of_all_lines_are_concatenated",
    },
    "export_saved_model": {
        "output_dir": NOT_EXPORTED,
        "export_dir": NOT_EXPORTED,
        "format": "serving/test_id_models.py::"
        "test_every_runtime_gives_the_answers_of_the_run",
        **dict.fromkeys(
            (
                "init_checkpoint",
                "bert_config_file",
                "vocab_file",
                "do_lower_case",
                "max_seq_length",
                "pooling",
                "dtype",
            ),
            "serving/test_vector_signatures.py::"
            "test_an_encoder_is_served_without_fine_tuning",
        ),
        **dict.fromkeys(
            ("max_batch_tokens", "max_text_bytes", "server_files"),
            "serving/test_server_files.py::"
            "test_each_export_is_the_next_version_and_keeps_its_limits",
        ),
        **dict.fromkeys(
            ("text_pairs",),
            "serving/test_exported_heads.py::"
            "test_a_classifier_of_pairs_is_exported_as_one",
        ),
        **dict.fromkeys(
            ("head", "top_k"),
            "serving/test_mask_signatures.py::"
            "test_every_mask_of_a_text_has_its_likeliest_words",
        ),
    },
    "query_saved_model": {
        "text": QUERY + "test_a_flag_given_twice_asks_two_texts",
        "text_b": QUERY + "test_a_flag_given_twice_asks_two_texts",
        "ending": QUESTIONS + "test_the_endings_of_a_text_are_asked_together",
        "question": QUESTIONS + "test_one_context_serves_all_questions",
        "context": QUESTIONS + "test_one_context_serves_all_questions",
        "signature": QUESTIONS + "test_a_signature_can_be_chosen",
        "export_dir": QUERY + "test_a_model_that_is_not_there_ends_in_one_line",
        "server": QUERY + "test_a_model_that_is_not_there_ends_in_one_line",
        **dict.fromkeys(
            ("input_file", "output_file", "batch_size"),
            QUESTIONS + "test_a_file_of_texts_becomes_a_file_of_answers",
        ),
        **dict.fromkeys(
            ("timeout_seconds", "num_retries", "header"),
            QUERY + "test_a_server_is_asked_as_the_flags_say",
        ),
        **dict.fromkeys(
            ("ca_file", "client_cert_file", "client_key_file"),
            "serving/test_rest_connection.py::"
            "test_tls_verifies_the_server_and_identifies_the_client",
        ),
    },
    "serve_model": {
        **dict.fromkeys(
            ("export_dir", "host", "port", "model_name", "num_workers"),
            SERVER + "test_the_server_answers_as_the_saved_model",
        ),
        **dict.fromkeys(
            ("max_body_mb", "max_rows"),
            SERVER + "test_what_the_server_cannot_do_has_a_status_and_a_reason",
        ),
        "backend": SERVER
        + "test_a_model_that_openvino_cannot_compute_ends_in_one_line",
        "dtype": SERVER + "test_the_dtype_reaches_the_process_of_the_model",
        "queue_timeout_seconds": SERVER
        + "test_a_body_that_does_not_arrive_is_given_up",
        **dict.fromkeys(
            ("max_batch_size", "batch_timeout_ms", "max_queue_size"),
            SERVER + "test_a_full_queue_refuses_requests_and_answers_the_others",
        ),
    },
    "check_data": {
        **dict.fromkeys(
            (
                "task",
                "init_checkpoint",
                "bert_config_file",
                "vocab_file",
                "do_lower_case",
                "max_seq_length",
                "data_dir",
                "train_file",
                "eval_file",
                "predict_file",
                "text_column",
                "text_b_column",
                "label_column",
                "labels",
                "validation_split",
                "validation_seed",
                "merge_labels",
                "label_separator",
                "regression",
                "train_language",
                "eval_language",
                "tfds_name",
                "tfds_splits",
                "start_column",
                "ending_columns",
                "header",
                "word_column",
                "tag_column",
                "tag_scheme",
                "doc_stride",
                "document_context",
                "max_query_length",
                "corpus_file",
                "input_file",
                "train_batch_size",
                "num_train_epochs",
            ),
            CHECKED + "test_flags_are_those_of_the_tasks_own_tool",
        ),
        "task_name": CHECKED + "test_glue_and_pairs",
        "version_2_with_negative": CHECKED
        + "test_answers_that_are_elsewhere_have_file_and_line",
        **dict.fromkeys(
            ("model", "num_negatives"),
            CHECKED + "test_a_cross_encoder_is_judged_by_its_pairs",
        ),
        "dupe_factor": CHECKED + "test_text_for_pretraining",
    },
    "plot_run": {
        "run_dir": "training/test_curves.py::"
        "test_plot_run_writes_a_picture_into_the_folder",
        "plot_file": "training/test_curves.py::test_plot_run_writes_the_file_asked_for",
        "tensorboard": "tasks/classification/test_plots.py::"
        "test_tensorboard_gets_images_baselines_and_the_projector",
    },
    "run_demo": {
        "output_dir": EARLIER_DEMO,
        "corpus_file": EARLIER_DEMO,
        "tiny": "demo/test_demo.py::test_tiny_is_for_tests_and_trains_less",
    },
}
TOOLS = sorted(path.stem for path in (ROOT.parent / "tools").glob("[a-z]*.py"))


@functools.cache
def names_of_tests(file):
    """Returns the names of a file's test functions; without importing it."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    nodes = ast.parse(path.read_text()).body
    names = (node.name for node in nodes if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in names if name.startswith("test_"))


def faults(flags, observed):
    """Returns what is wrong with a tool's part of the table, one sentence each."""
    found = [f"--{flag} is not in the table" for flag in flags if flag not in observed]
    for flag, place in observed.items():
        file, name = place.split("::")
        if flag not in flags:
            found.append(f"unknown flag --{flag}")
        elif name not in names_of_tests(file):
            found.append(f"--{flag}: there is no test {place}")
        elif flag not in (ROOT / file).read_text():
            found.append(f"--{flag} does not occur in {file}")
    return found


def test_every_tool_is_in_the_table():
    assert sorted(OBSERVED) == TOOLS


@pytest.mark.parametrize("tool", TOOLS)
def test_every_flag_has_a_test_that_shows_its_effect(tool, options_of_tool):
    declared = [d.name for d in options_module.declarations(options_of_tool(tool))]
    assert faults(declared, OBSERVED.get(tool, {})) == []


@pytest.mark.parametrize(
    "flags, observed, fault",
    [
        (["tiny", "new"], {"tiny": EARLIER_DEMO}, "--new is not in the table"),
        ([], {"tiny": EARLIER_DEMO}, "unknown flag --tiny"),
        (["tiny"], {"tiny": "demo/test_demo.py::test_x"}, "--tiny: there is no test"),
        (["tiny"], {"tiny": "demo/test_x.py::test_x"}, "--tiny: there is no test"),
        (["top_k"], {"top_k": EARLIER_DEMO}, "--top_k does not occur in demo/"),
    ],
)
def test_a_gap_in_the_table_is_reported(flags, observed, fault):
    [found] = faults(flags, observed)
    assert found.startswith(fault)
