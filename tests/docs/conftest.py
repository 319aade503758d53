"""What the tests of several pages share."""

import pytest


@pytest.fixture(scope="session")
def tiny(copy_release, tmp_path_factory):
    """Folder of the recorded model, in place of a released one."""
    return copy_release(tmp_path_factory.mktemp("release") / "tiny")
