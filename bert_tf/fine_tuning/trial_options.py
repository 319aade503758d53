"""Options of repeated runs: other seeds or settings, of which the best run is kept."""

import dataclasses
import itertools
import os
import re

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

FOLDER = "trials"
# A sweep over these would not be one: they say where and what, not how.
_NEVER_SWEPT = (
    "output_dir",
    "do_train",
    "do_eval",
    "do_predict",
    "dry_run",
    "num_restarts",
    "sweep",
    "best_metric",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """One of the runs."""

    changed: dict  # Name of an option -> its value in this run.
    options: "TrialOptions"  # Of the run; its output_dir is the trial's own.

    @property
    def name(self) -> str:
        """What its folder is called: "learning_rate=3e-05,random_seed=7"."""
        return _name(self.changed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialOptions(fine_tuning_options.TaskOptions):
    """Options of fine-tuning tools that can train several times and keep the best."""

    num_restarts: int = option(
        1,
        minimum=1,
        help="Train this many times, with random_seed, random_seed + 1 and so on, and "
        "keep the run whose last checkpoint has the best best_metric. Useful for "
        "small data sets, where results vary a lot between runs.",
        group="advanced",
    )
    sweep: str | None = option(
        None,
        help="Train once for each combination of values, such as "
        "'learning_rate=5e-5,3e-5;train_batch_size=16,32'. Lists the scores in "
        "sweep.tsv and keeps the run whose last checkpoint has the best "
        "best_metric.",
        group="advanced",
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.has_trials():
            return
        if self.device == "multi_worker":
            raise options_module.OptionError(
                "--num_restarts and --sweep do not go with --device=multi_worker; run "
                "each trial by itself."
            )
        if not self.dry_run and not (self.do_train and self.do_eval):
            name = "sweep" if self.sweep else "num_restarts"
            raise options_module.OptionError(
                f"--{name} needs --do_train and --do_eval: the best run is kept, by "
                f"its {self.best_metric}."
            )
        self.trials()

    def has_trials(self) -> bool:
        """Returns whether there are several runs."""
        return self.num_restarts > 1 or self.sweep is not None

    def alone(self, **values):
        """Returns the options of one run, with some of them replaced."""
        values |= {"num_restarts": 1, "sweep": None}
        if not self.eval_every_steps:
            values["best_metric"] = self._default("best_metric")
        return dataclasses.replace(self, **values)

    def trials(self) -> list[Trial]:
        """Returns the runs: every combination of a sweep, with every seed.

        Raises:
            OptionError: the sweep is not understood, or a value cannot be.
        """
        axes = self._axes()
        if self.num_restarts > 1:
            first = self.random_seed
            axes["random_seed"] = list(range(first, first + self.num_restarts))
        found = []
        for values in itertools.product(*axes.values()):
            changed = dict(zip(axes, values, strict=True))
            folder = os.path.join(self.output_dir, FOLDER, _name(changed))
            found.append(
                Trial(changed=changed, options=self.alone(output_dir=folder, **changed))
            )
        return found

    def _axes(self):
        """Returns {name of an option: its values} of the sweep."""
        if self.sweep is None:
            return {}
        declared = {d.name: d for d in options_module.declarations(type(self))}
        axes = {}
        for part in filter(str.strip, self.sweep.split(";")):
            name, separator, texts = (text.strip() for text in part.partition("="))
            declaration = declared.get(name)
            if not separator or declaration is None or name in axes:
                raise options_module.OptionError(
                    f"--sweep: expected NAME=VALUE,VALUE;NAME=VALUE with different "
                    f"names of flags, got {part.strip()!r}."
                )
            if declaration.kind is tuple or name in _NEVER_SWEPT:
                raise options_module.OptionError(
                    f"--sweep: {name} cannot be swept over."
                )
            texts = [text.strip() for text in texts.split(",")]
            axes[name] = [options_module.parse(declaration, text) for text in texts]
            if len(set(axes[name])) != len(texts):
                raise options_module.OptionError(f"--sweep: {name} has a value twice.")
        if not axes:
            raise options_module.OptionError(
                "--sweep is empty; leave it out for one run."
            )
        if "random_seed" in axes and self.num_restarts > 1:
            raise options_module.OptionError(
                "--sweep over random_seed does not go with --num_restarts."
            )
        return axes

    def _check_evaluations(self):
        if not self.has_trials():
            super()._check_evaluations()


def _name(changed):
    text = ",".join(f"{name}={value}" for name, value in changed.items())
    return re.sub(r"[^\w.,=+-]", "_", text)
