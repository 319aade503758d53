"""Of two processes that would write the same output, the second stops."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from bert_tf import locks

# Prints a line once it has the lock, and holds it until standard input is closed.
HOLDER = """
import sys
from bert_tf import locks
with getattr(locks, sys.argv[1])(sys.argv[2]):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold(project_root):
    """Returns a function that starts a process which holds a lock."""
    started = []

    def start(kind, path):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, kind, str(path)],
            cwd=project_root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "locked\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.mark.parametrize("kind", ["output_folder", "output_file"])
def test_the_second_process_learns_who_holds_the_lock_and_what_to_do(
    hold, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(locks, "_GRACE_SECONDS", 0.0)
    lock, path = getattr(locks, kind), tmp_path / "new" / "out"
    process = hold(kind, path)
    with pytest.raises(OSError, match="is in use") as raised:
        with lock(path):
            raise AssertionError("the block must not run")
    sentence = str(raised.value)
    assert sentence.startswith(f"{path} is in use: process {process.pid} on ")
    flag = "output_dir" if kind == "output_folder" else "output_file"
    assert sentence.endswith(f"or stop it, or choose another --{flag}.")
    process.stdin.close()
    assert process.wait() == 0
    with lock(path):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["output_folder", "output_file"])
def test_a_killed_process_keeps_no_lock_and_its_leftovers_are_removed(
    hold, tmp_path, kind
):
    path = tmp_path / "out"
    process = hold(kind, path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder = path if kind == "output_folder" else tmp_path
    [lock_file] = os.listdir(folder)
    assert lock_file in (locks.LOCK_FILE, f".out{locks.LOCK_FILE}")
    (folder / f".out.{'0' * 32}.partial").touch()
    (folder / "kept").touch()
    with getattr(locks, kind)(path):
        assert sorted(os.listdir(folder)) == [lock_file, "kept"]
    assert os.listdir(folder) == ["kept"]


def test_a_process_can_wait_for_another(hold, tmp_path, monkeypatch):
    process = hold("output_file", tmp_path / "out")
    logged = []

    def end_the_other(text, *values):
        logged.append(text % values)
        process.stdin.close()

    monkeypatch.setattr(locks.logger, "info", end_the_other)
    with locks.output_file(tmp_path / "out", waits=True):
        assert process.wait() == 0
    [line] = logged
    assert line.startswith(f"Waiting for process {process.pid} on ")


def test_many_waiting_for_a_lock_get_it_one_by_one(tmp_path):
    inside, most = [], []

    def work(number):
        for _ in range(20):
            with locks.output_file(tmp_path / "out", waits=True):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0.001)
                inside.pop()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


def test_devices_and_remote_paths_are_not_locked():
    for _ in range(2):
        with locks.output_file("/dev/null"), locks.output_file("/dev/null"):
            pass
        with locks.output_folder("gs://bucket/run"), locks.output_file("gs://bucket/a"):
            pass


@pytest.mark.parametrize("lock", [locks.output_folder, locks.output_file])
def test_where_nothing_can_be_written_the_path_of_the_user_is_named(lock):
    with pytest.raises(OSError, match=r"^/proc/(no|x): (the folder )?cannot be"):
        with lock("/proc/no" if lock is locks.output_folder else "/proc/x"):
            raise AssertionError("the block must not run")


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch, caplog):
    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with locks.output_folder(tmp_path / "run"):
        (tmp_path / "run" / "result").touch()
    assert "run is on a file system without locks" in caplog.text
    assert os.listdir(tmp_path / "run") == ["result"]
