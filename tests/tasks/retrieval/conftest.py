"""Options of the contract's data set, and files that a test writes."""

import pytest

from tests.tasks.retrieval import pairs


@pytest.fixture(scope="session")
def retrieval_options(task_options):
    """Returns a function that creates options; keywords replace the defaults."""
    return task_options("retrieval")


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes text, or a list as JSON lines, to a file."""

    def write_file(name, content):
        if isinstance(content, list):
            content = pairs.json_lines(content)
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write_file
