import io

import pytest

from bert_tf import terminal


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_on_a_terminal():
    stream = _Terminal()
    bars = terminal.TerminalProgress(stream)
    bars("train", 0, 2, unit="steps")
    bars("train", 2, 2, unit="steps", values={"loss": 1.25})
    assert "100%" in stream.getvalue()
    assert "loss=1.25" in stream.getvalue()


def test_without_a_terminal_a_line_comes_each_ten_seconds_and_at_the_end():
    stream, now = io.StringIO(), [0.0]
    bars = terminal.TerminalProgress(stream, clock=lambda: now[0])
    for second in range(26):
        now[0] = float(second)
        bars("train", second, 25, unit="steps", values={"loss": 0.5})
    shown = stream.getvalue().splitlines()
    assert [line.split(" steps")[0] for line in shown] == [
        "train: 10/25",
        "train: 20/25",
        "train: 25/25",
    ]
    assert all("loss=0.5" in line for line in shown)


@pytest.mark.parametrize("stream", [io.StringIO(), _Terminal()])
def test_a_stage_of_unknown_size_and_one_that_is_cut_short(stream):
    bars = terminal.TerminalProgress(stream, clock=lambda: 0.0)
    bars("read", 0.0, None, unit="MB")
    bars("read", 12.345, None, unit="MB")
    bars("write", 1, 10, unit="files")
    bars.close()


def test_a_stage_may_come_twice():
    stream = io.StringIO()
    bars = terminal.TerminalProgress(stream)
    for _ in range(2):
        bars("evaluate", 3.25, 3.25, unit="MB")
    assert stream.getvalue().count("evaluate: 3.2/3.2 MB") == 2
