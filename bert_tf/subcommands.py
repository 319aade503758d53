"""The table of tools, and the help that is made from it.

`bert_tf classify` is the tool `run_classifier`.

A tool is an options record and a function that takes it. Both are named by strings, so
that `--help` imports neither TensorFlow nor the other tools.
"""

import argparse
import dataclasses
import functools
import inspect
import itertools

from bert_tf import options as options_module

_KINDS = {str: "TEXT", int: "INT", float: "NUMBER", bool: "true|false"}
# Flags of every tool that no options record declares.
_SHARED_FLAGS = {
    "--flagfile=FILE": "Read more flags from this file, one per line, or from a recipe "
    "of this package with recipe:NAME. Flags that follow on the command line take "
    "precedence.",
    "--traceback": "Show the Python traceback if the tool fails.",
}
_FLAGS_OF_TRAINING = {
    "--recipe=auto": "Choose what learns fast for this model, text, machine and time, "
    "instead of the settings of 2018. The choices are logged and recorded with the "
    "run. Flags that are given take precedence.",
}
_EXIT_CODES = """\
Exit codes: 0 success, 1 the job failed, 2 wrong usage.
--flag and --noflag are short for --flag=true and --flag=false."""
_OVERVIEW_END = """\
`bert_tf SUBCOMMAND --help` explains a subcommand and its flags. As in the 2018
release, every tool is also a command, such as run_classifier. `bert_tf` accepts
these names, too."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subcommand:
    """A tool, what it runs, and its entry in the help texts."""

    name: str  # As typed after `bert_tf`.
    tool: str  # The name of the tool, which is also a separate command.
    options: str  # "module:class" of the record that declares the flags.
    summary: str  # One line in `bert_tf --help`.
    example: str  # The flags of a complete command.
    # "module:function" that takes the record; the tool prints its result.
    work: str = "bert_tf.fine_tuning.run:run"


# The subcommands by the headings of `bert_tf --help`.
STAGES = {
    "Start here": (
        Subcommand(
            name="demo",
            tool="run_demo",
            options="bert_tf.demo:RunDemoOptions",
            work="bert_tf.demo:run",
            summary="Run every stage on sample text, in minutes on a CPU",
            example="--output_dir=demo_run",
        ),
    ),
    "Prepare data": (
        Subcommand(
            name="prepare",
            tool="prepare_corpus",
            options="bert_tf.preparation.options:PrepareCorpusOptions",
            work="bert_tf.preparation.workflow:prepare_corpus",
            summary="Turn raw text into one sentence per line",
            example="--input_file=novels/ --output_dir=corpus",
        ),
        Subcommand(
            name="vocabulary",
            tool="build_vocabulary",
            options="bert_tf.tokenization.options:BuildVocabularyOptions",
            work="bert_tf.tokenization.workflow:build_vocabulary",
            summary="Learn a WordPiece vocabulary, or add words to one",
            example="--input_file='corpus/*.txt' --vocab_file=vocab.txt",
        ),
        Subcommand(
            name="create-data",
            tool="create_pretraining_data",
            options="bert_tf.pretraining_data.options:CreatePretrainingDataOptions",
            work="bert_tf.pretraining_data.workflow:run",
            summary="Turn sentences into masked pretraining examples (TFRecord)",
            example="--input_file='corpus/*.txt' --output_file=train.tfrecord "
            "--vocab_file=vocab.txt",
        ),
    ),
    "Pretrain": (
        Subcommand(
            name="pretrain",
            tool="run_pretraining",
            options="bert_tf.pretraining.options:RunPretrainingOptions",
            work="bert_tf.pretraining.workflow:run",
            summary="Pretrain BERT, or continue pretraining a checkpoint",
            example="--recipe=auto --input_file='corpus/*.txt' --vocab_file=vocab.txt "
            "--output_dir=runs/corpus --do_train --max_train_minutes=60",
        ),
        Subcommand(
            name="fill-mask",
            tool="fill_mask",
            options="bert_tf.pretraining.options:FillMaskOptions",
            work="bert_tf.pretraining.fill_mask:run",
            summary="Predict the words behind [MASK], or score whole texts",
            example="--init_checkpoint=bert-tf-mini "
            "--text='She opened the [MASK] and went into the garden.'",
        ),
        Subcommand(
            name="plot",
            tool="plot_run",
            options="bert_tf.training.options:PlotRunOptions",
            work="bert_tf.fine_tuning.run_report:plot_runs",
            summary="Plot the losses and scores of training runs",
            example="--run_dir=runs/base",
        ),
    ),
    "Fine-tune and predict": (
        Subcommand(
            name="classify",
            tool="run_classifier",
            options="bert_tf.tasks.classification.options:RunClassifierOptions",
            summary="Classify texts or pairs of texts (GLUE, XNLI, your own tables)",
            example="--recipe=auto --train_file=train.csv --eval_file=dev.csv "
            "--text_column=review --label_column=stars --output_dir=runs/reviews "
            "--do_train --do_eval",
        ),
        Subcommand(
            name="answer",
            tool="run_squad",
            options="bert_tf.tasks.question_answering.options:RunSquadOptions",
            summary="Find answers to questions in a text (SQuAD)",
            example="--train_file=train-v1.1.json --predict_file=dev-v1.1.json "
            "--init_checkpoint=bert-base-uncased --output_dir=runs/squad "
            "--do_train --do_predict --do_eval",
        ),
        Subcommand(
            name="tag",
            tool="run_ner",
            options="bert_tf.tasks.token_classification.options:RunNerOptions",
            summary="Tag words: named entities, parts of speech",
            example="--data_dir=conll2003 --init_checkpoint=bert-base-cased "
            "--do_lower_case=False --output_dir=runs/ner --do_train --do_eval",
        ),
        Subcommand(
            name="choose",
            tool="run_swag",
            options="bert_tf.tasks.multiple_choice.options:RunSwagOptions",
            summary="Choose one of several endings (SWAG, CODAH)",
            example="--data_dir=swag --init_checkpoint=bert-base-uncased "
            "--output_dir=runs/swag --do_train --do_eval",
        ),
        Subcommand(
            name="retrieve",
            tool="run_retrieval",
            options="bert_tf.tasks.retrieval.options:RunRetrievalOptions",
            summary="Find the passages that answer a query",
            example="--train_file=train.jsonl --eval_file=dev.jsonl "
            "--corpus_file=passages.txt --init_checkpoint=bert-base-uncased "
            "--output_dir=runs/passages --do_train --do_eval",
        ),
        Subcommand(
            name="embed",
            tool="extract_features",
            options="bert_tf.tasks.feature_extraction.options:ExtractFeaturesOptions",
            work="bert_tf.tasks.feature_extraction.workflow:run",
            summary="Write the vectors of word pieces or of whole texts",
            example="--input_file=lines.txt --output_file=vectors.jsonl "
            "--init_checkpoint=bert-base-uncased",
        ),
    ),
    "Evaluate": (
        Subcommand(
            name="evaluate-glue",
            tool="evaluate_glue",
            options="bert_tf.fine_tuning.options:EvaluateGlueOptions",
            work="bert_tf.fine_tuning.glue_table:glue_table",
            summary="Collect GLUE scores in one table, with the paper's average",
            example="--input_dir=runs",
        ),
        Subcommand(
            name="evaluate-squad",
            tool="evaluate_squad",
            options="bert_tf.tasks.question_answering.options:EvaluateSquadOptions",
            work="bert_tf.tasks.question_answering.scores:report",
            summary="Score predictions as SQuAD's official scripts do",
            example="--data_file=dev-v2.0.json "
            "--predictions_file=runs/squad/predictions.json "
            "--null_odds_file=runs/squad/null_odds.json",
        ),
    ),
    "Share and serve": (
        Subcommand(
            name="convert",
            tool="convert_checkpoint",
            options="bert_tf.checkpoints.conversion.options:ConvertCheckpointOptions",
            work="bert_tf.checkpoints.conversion.workflow:run",
            summary="Convert a checkpoint between formats and verify the result",
            example="--source=runs/base --target=hugging_face_model "
            "--target_format=hugging_face",
        ),
        Subcommand(
            name="export",
            tool="export_saved_model",
            options="bert_tf.serving.options:ExportSavedModelOptions",
            work="bert_tf.serving.export:run",
            summary="Export a model as a SavedModel: text in, answers out",
            example="--output_dir=runs/mrpc --export_dir=models/mrpc/1",
        ),
        Subcommand(
            name="query",
            tool="query_saved_model",
            options="bert_tf.serving.options:QuerySavedModelOptions",
            work="bert_tf.serving.query:run",
            summary="Query an exported model, on disk or on a server",
            example="--export_dir=models/topics/1 "
            "--text='Plant the bulbs before the first frost.'",
        ),
        Subcommand(
            name="serve",
            tool="serve_model",
            options="bert_tf.serving.options:ServeModelOptions",
            work="bert_tf.serving.server:run",
            summary="Serve an exported model over HTTP, without Docker",
            example="--export_dir=models/topics --port=8501",
        ),
    ),
}
SUBCOMMANDS = tuple(itertools.chain.from_iterable(STAGES.values()))
# By its short name, and by the name of its tool.
BY_NAME = {name: one for one in SUBCOMMANDS for name in (one.name, one.tool)}


def overview(version: str) -> str:
    """Returns what `bert_tf --help` prints: every subcommand, in order of the work.

    Args:
        version: of the package.
    """
    column = 2 + max(len(subcommand.name) for subcommand in SUBCOMMANDS)
    paragraphs = [
        f"bert_tf {version}: BERT for TensorFlow 2 and Keras 3, from text to answers.",
        "Usage: bert_tf SUBCOMMAND [--flag=value ...]",
    ]
    for stage, members in STAGES.items():
        lines = [f"  {member.name:{column}}{member.summary}" for member in members]
        paragraphs.append("\n".join([f"{stage}:", *lines]))
    return "\n\n".join([*paragraphs, _OVERVIEW_END])


def tool_help(typed: str, options_class: type[options_module.Options]) -> str:
    """Returns the help text of a tool: an example, what it does, its flags by group.

    Args:
        typed: how the user calls the tool: "run_classifier" or "bert_tf classify".
        options_class: the record that declares the flags. Its docstring describes
            the tool.
    """
    declared = ordered(options_class)
    description = inspect.cleandoc(options_class.__doc__ or "")
    if subcommand := BY_NAME.get(typed.removeprefix("bert_tf ")):
        example = subcommand.example.replace(" --", " \\\n      --")
        is_tool = typed == subcommand.tool
        other = f"bert_tf {subcommand.name}" if is_tool else subcommand.tool
        description += f"\n\nExample:\n  {typed} {example}\n\nSame as: {other}"
    required = [flag_with_value(d) for d in declared if d.is_required]
    parser = argparse.ArgumentParser(
        usage=" ".join([typed, *required, "[--flag=value ...]"]),
        description=description,
        epilog=_EXIT_CODES,
        formatter_class=functools.partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=8
        ),
        add_help=False,
    )
    for group in options_module.GROUPS:
        entries = {
            flag_with_value(d): f"{d.help} {notes_on(d)}".rstrip()
            for d in declared
            if d.group == group
        }
        if group == options_module.GROUPS[-1]:
            entries |= _SHARED_FLAGS
            trains = any(d.name == "bias_correction" for d in declared)
            entries |= _FLAGS_OF_TRAINING if trains else {}
        section = parser.add_argument_group(f"{group[0].upper()}{group[1:]}")
        for flag, text in entries.items():
            section.add_argument(
                flag, action="store_true", help=text.replace("%", "%%")
            )
    return parser.format_help().rstrip().replace("usage:", "Usage:", 1)


def ordered(
    options_class: type[options_module.Options],
) -> list[options_module.Declaration]:
    """Returns the options: required ones first, then the tool's own, then shared."""
    classes = options_class.__mro__
    return sorted(
        options_module.declarations(options_class),
        key=lambda d: (not d.is_required, classes.index(d.introduced_by)),
    )


def flag_with_value(declaration: options_module.Declaration) -> str:
    """Returns the flag and what kind of value it takes: "--vocab_file=FILE"."""
    name, kind = declaration.name, declaration.item_kind
    if declaration.choices is not None:
        value = "|".join(str(choice) for choice in declaration.choices)
    elif kind is str and name.endswith(("_file", "_dir")):
        value = "FILE" if name.endswith("_file") else "FOLDER"
    else:
        value = _KINDS[kind]
    if declaration.kind is tuple and not declaration.is_repeated:
        value += ",..."
    return f"--{name}={value}"


def notes_on(declaration: options_module.Declaration) -> str:
    """Returns "[required]", "[default: 32]" and the like."""
    notes = ["repeatable"] if declaration.is_repeated else []
    default = declaration.default
    if declaration.is_required:
        notes.append("required")
    elif default not in (None, "", ()):
        if declaration.kind is tuple:
            default = ",".join(str(item) for item in default)
        text = str(default).lower() if declaration.kind is bool else str(default)
        notes.append(f"default: {text}")
    return f"[{', '.join(notes)}]" if notes else ""
