import io

from bert_tf import progress


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_on_a_terminal():
    stream = _Terminal()
    bars = progress.ProgressBar(stream)
    bars("train", 0, 2, unit="steps")
    bars("train", 2, 2, unit="steps", values={"loss": 1.25})
    assert "100%" in stream.getvalue()
    assert "loss=1.25" in stream.getvalue()


def test_without_a_terminal_a_line_comes_each_ten_seconds_and_at_the_end():
    stream, now = io.StringIO(), [0.0]
    bars = progress.ProgressBar(stream, clock=lambda: now[0])
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


def test_a_report_reaches_the_reporter_of_its_block_only():
    seen = []
    progress.report("a", 1, 2)
    with progress.reporting_to(lambda *values, **_: seen.append(values)):
        progress.report("b", 1, 2)
        with progress.reporting_to(None):
            progress.report("c", 1, 2)
        progress.report("d", 1, 2)
    progress.report("e", 1, 2)
    assert seen == [("b", 1, 2), ("d", 1, 2)]
