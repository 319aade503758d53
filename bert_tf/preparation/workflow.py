"""The work of prepare_corpus: reads units, removes duplicates, writes files."""

import os

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.data.parallel import execution
from bert_tf.preparation import extraction
from bert_tf.preparation import job_folder
from bert_tf.preparation import options as preparation_options
from bert_tf.preparation import parts as parts_module
from bert_tf.preparation import plan as plan_module
from bert_tf.preparation import report as report_module
from bert_tf.preparation import shards
from bert_tf.preparation import sources as sources_module
from bert_tf.preparation import text_statistics


def prepare_corpus(
    options: preparation_options.PrepareCorpusOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> report_module.CorpusReport:
    """Writes raw text as `corpus-*.txt`, with one sentence per line.

    A blank line follows each document. Finished work is kept in `output_dir` until all
    is complete: if the run is killed, the same call resumes it. Until then, the disk
    contains a second copy of the text.

    Args:
        options: what to read, leave out and write.
        progress: callback for the MB read and written.

    Returns:
        The report, which is also written to `output_dir`. The report and the files
        depend only on the input and the flags.

    Raises:
        ImportError: a library for a format, or Apache Beam, is not installed.
        OSError: a file cannot be read or written, or a worker was killed.
        ValueError: the input is damaged or malformed, or it contains no text.
    """
    units, skipped = sources_module.units(options)
    with locks.output_folder(options.output_dir):
        return _prepare_corpus(options, units, skipped, progress)


def _prepare_corpus(options, units, skipped, progress):
    job = job_folder.JobFolder(options, units)
    reading = [
        extraction.Task(unit=unit, options=options, folder=job.path) for unit in units
    ]
    execution.run(
        extraction.extract,
        reading,
        options,
        stage="read",
        num_bytes=sum(unit.num_bytes for unit in units),
        progress=progress,
    )
    stems = {unit.number: parts_module.stem(job.path, unit.number) for unit in units}
    parts = [parts_module.load(stem) for stem in stems.values()]
    plan = plan_module.make([part for part in parts if part is not None], options)
    if not plan.shards:
        raise ValueError(f"Found no running text in {_names(options)}.")
    writing = _shard_tasks(plan, stems, options, job.path)
    names = [os.path.basename(task.path) for task in writing]
    job.begin_writing(names)
    execution.run(
        shards.write,
        writing,
        options,
        stage="write",
        num_bytes=plan.num_bytes,
        progress=progress,
    )
    statistics = text_statistics.Statistics()
    for task in writing:
        with files.open_file(task.statistics_path, "rb") as file:
            try:
                statistics.add_saved(file)
            except ValueError as error:
                raise ValueError(
                    f"{task.statistics_path}: {error}; remove the folder {job.path} to "
                    "start again."
                ) from None
    report = report_module.make(
        plan,
        statistics,
        skipped_files=skipped,
        output_files=names,
        fingerprint=job.fingerprint,
    )
    path = os.path.join(options.output_dir, job_folder.REPORT)
    with files.complete_or_absent(path) as file:
        file.write(report.to_json() + "\n")
    job.remove()
    return report


def _shard_tasks(plan, stems, options, folder):
    def task(number, runs):
        used = {run.part for run in runs}
        return shards.Task(
            number=number,
            path=shards.shard_path(options.output_dir, number, len(plan.shards)),
            statistics_path=os.path.join(folder, f"shard-{number:05d}.npz"),
            runs=runs,
            stems={part: stems[part] for part in used},
            kept_paths={p: plan.kept_paths[p] for p in used if p in plan.kept_paths},
            truncation_noise=options.truncation_noise,
            random_seed=options.random_seed,
        )

    return [task(number, runs) for number, runs in enumerate(plan.shards)]


def _names(options):
    return ", ".join([*options.input_file, *filter(None, [options.tfds_name])])
