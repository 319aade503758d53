import io


def test_standard_input_that_is_not_utf_8_ends_in_one_line(run_tool, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"good\ncaf\xe9\n"), errors="surrogateescape")
    monkeypatch.setattr("sys.stdin", stdin)
    result = run_tool("fill_mask", "--init_checkpoint=none", "--text=-")
    assert result.exit_code == 1
    assert result.stderr.startswith("fill_mask: standard input:2: not UTF-8 (byte 4")
    assert len(result.stderr.splitlines()) == 1
