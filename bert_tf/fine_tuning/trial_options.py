"""Options of searches: several runs with other seeds or settings, keeping the best."""

import dataclasses
import itertools
import os
import re
from typing import Any
from typing import Self

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

FOLDER = "trials"
# These options say where a run is and what it does, so a sweep over them is refused.
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
    """One of the runs of a search."""

    changed: dict[str, Any]  # Values by option name.
    options: "TrialOptions"  # Of this run alone, with its own output_dir.

    @property
    def name(self) -> str:
        """The name of its folder, such as "learning_rate=3e-05,random_seed=7"."""
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
        on_resume=options_module.FREE,
    )
    sweep: str | None = option(
        None,
        help="Train once for each combination of values, such as "
        "'learning_rate=5e-5,3e-5;train_batch_size=16,32'. Lists the scores in "
        "sweep.tsv and keeps the run whose last checkpoint has the best "
        "best_metric.",
        group="advanced",
        on_resume=options_module.FREE,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.has_trials():
            return
        if self.device == "multi_worker":
            raise options_module.OptionError(
                "--num_restarts and --sweep cannot be combined with "
                "--device=multi_worker; start each trial separately."
            )
        if not self.dry_run and not (self.do_train and self.do_eval):
            name = "sweep" if self.sweep else "num_restarts"
            raise options_module.OptionError(
                f"--{name} needs --do_train and --do_eval, to keep the run with the "
                f"best {self.best_metric}."
            )
        self.trials()

    def has_trials(self) -> bool:
        """Returns whether the options describe several runs."""
        return self.num_restarts > 1 or self.sweep is not None

    def single_run(self, **values: Any) -> Self:
        """Returns the options of a single run, with some values replaced."""
        values |= {"num_restarts": 1, "sweep": None}
        if not self.eval_every_steps:
            values["best_metric"] = self._default("best_metric")
        return dataclasses.replace(self, **values)

    def trials(self) -> list[Trial]:
        """Returns the runs: each combination of the sweep with each seed.

        Raises:
            OptionError: the sweep has the wrong form, or a value is invalid.
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
                Trial(
                    changed=changed,
                    options=self.single_run(output_dir=folder, **changed),
                )
            )
        return found

    def _axes(self) -> dict[str, list[Any]]:
        """Returns the values of each option of the sweep."""
        if self.sweep is None:
            return {}
        declared = {d.name: d for d in options_module.declarations(type(self))}
        axes: dict[str, list[Any]] = {}
        for part in filter(str.strip, self.sweep.split(";")):
            name, separator, values = (text.strip() for text in part.partition("="))
            declaration = declared.get(name)
            if not separator or declaration is None or name in axes:
                raise options_module.OptionError(
                    f"--sweep: expected NAME=VALUE,VALUE;NAME=VALUE with different "
                    f"flag names, got {part.strip()!r}."
                )
            if declaration.kind is tuple or name in _NEVER_SWEPT:
                raise options_module.OptionError(f"--sweep: {name} cannot be varied.")
            texts = [text.strip() for text in values.split(",")]
            axes[name] = [options_module.parse(declaration, text) for text in texts]
            if len(set(axes[name])) != len(texts):
                raise options_module.OptionError(
                    f"--sweep: {name} has the same value twice."
                )
        if not axes:
            raise options_module.OptionError(
                "--sweep is empty; omit it for a single run."
            )
        if "random_seed" in axes and self.num_restarts > 1:
            raise options_module.OptionError(
                "--sweep over random_seed cannot be combined with --num_restarts."
            )
        return axes

    def _check_evaluations(self) -> None:
        # A search compares finished runs, so best_metric needs no eval_every_steps.
        if not self.has_trials():
            super()._check_evaluations()


def _name(changed):
    text = ",".join(f"{name}={value}" for name, value in changed.items())
    return re.sub(r"[^\w.,=+-]", "_", text)
