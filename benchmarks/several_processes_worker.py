"""Part of several_processes: run_pretraining as one worker that fails.

Its command line has the failure, the step after which it happens, and then the flags
of the tool. After each call of the step function it prints "STEP step seconds".
"""

import os
import runpy
import signal
import sys
import time

import report

from bert_tf.checkpoints.release import rotation
from bert_tf.training import loop

SLOW_SECONDS = 0.5  # What a slow worker loses per step.
SLOW_DISK_SECONDS = 5.0  # What writing a checkpoint takes on the slow disk.

failure, step_of_failure = sys.argv[1], int(sys.argv[2])
advance, write_parts = loop.Trainer._advance, rotation.write_parts


def advance_and_report(trainer, *arguments):
    """Replaces `Trainer._advance`."""
    if trainer.step >= step_of_failure:
        fail(trainer)
    loss = advance(trainer, *arguments)
    print(f"STEP {trainer.step} {time.time()}", flush=True)
    return loss


def fail(trainer):
    """Does to this process what its first argument says."""
    if failure in ("kill", "freeze"):
        print(f"FAILURE 0 {time.time()}", flush=True)
        number = signal.SIGKILL if failure == "kill" else signal.SIGSTOP
        os.kill(os.getpid(), number)
    elif failure == "not_a_number":
        print(f"FAILURE 0 {time.time()}", flush=True)
        # As a defective processor would: only this worker's copy is wrong.
        variable = trainer.model.trainable_variables[0].value
        own = trainer.strategy.experimental_local_results(variable)[0]
        own.assign(own * float("nan"))
    elif failure == "slow":
        time.sleep(SLOW_SECONDS)
    elif failure == "slow_disk":
        rotation.write_parts = write_slowly


def write_slowly(*arguments):
    """Replaces `rotation.write_parts`."""
    time.sleep(SLOW_DISK_SECONDS)
    write_parts(*arguments)


loop.Trainer._advance = advance_and_report
sys.argv = ["run_pretraining", *sys.argv[3:]]
runpy.run_path(str(report.ROOT / "tools" / "run_pretraining.py"), run_name="__main__")
