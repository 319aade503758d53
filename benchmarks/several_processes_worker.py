"""Part of several_processes: run_pretraining as one worker that has an accident.

Its command line has the accident, the step after which it happens, and then the flags
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

accident, step_of_accident = sys.argv[1], int(sys.argv[2])
advance, write_parts = loop.Trainer._advance, rotation.write_parts


def advance_and_report(trainer, *arguments):
    """Replaces `Trainer._advance`."""
    if trainer.step >= step_of_accident:
        have_accident(trainer)
    loss = advance(trainer, *arguments)
    print(f"STEP {trainer.step} {time.time()}", flush=True)
    return loss


def have_accident(trainer):
    """Does to this process what its first argument says."""
    if accident in ("kill", "freeze"):
        print(f"ACCIDENT 0 {time.time()}", flush=True)
        number = signal.SIGKILL if accident == "kill" else signal.SIGSTOP
        os.kill(os.getpid(), number)
    elif accident == "not_a_number":
        print(f"ACCIDENT 0 {time.time()}", flush=True)
        # As a defective processor would: only this worker's copy is wrong.
        variable = trainer.model.trainable_variables[0].value
        own = trainer.strategy.experimental_local_results(variable)[0]
        own.assign(own * float("nan"))
    elif accident == "slow":
        time.sleep(SLOW_SECONDS)


def write_slowly(*arguments):
    """Replaces `rotation.write_parts`."""
    time.sleep(SLOW_DISK_SECONDS)
    write_parts(*arguments)


loop.Trainer._advance = advance_and_report
if accident == "slow_disk":
    rotation.write_parts = write_slowly
sys.argv = ["run_pretraining", *sys.argv[3:]]
runpy.run_path(str(report.ROOT / "tools" / "run_pretraining.py"), run_name="__main__")
