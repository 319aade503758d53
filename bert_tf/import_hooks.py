"""Surrounds a package's import with a context, and hides packages from its modules.

Other libraries have such hooks too, and some of them replace loaders by proxies. So no
attribute of a loader is changed here; a loader of our own calls the one that was found.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

Context = Callable[[], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def importing_within(package: str, context: Context) -> Iterator[None]:
    """If the block imports a package for the first time, does so within a context.

    Args:
        package, context: those of `Finder`.
    """
    with _first_finder(Finder(package, context)):
        yield


@contextlib.contextmanager
def without_packages(
    packages: Collection[str], importers: Collection[str]
) -> Iterator[None]:
    """Hides packages from some modules within the block, as if they were missing.

    Packages that are already imported stay visible.

    Args:
        packages: names of the top-level packages to hide.
        importers: names of the top-level packages whose modules cannot import them.
            Other modules can, such as hooks that run while the importers are imported.
    """
    with _first_finder(_HidingFinder(packages, importers)):
        yield


@contextlib.contextmanager
def _first_finder(finder):
    # Another thread may be iterating over the list, so it is replaced, not changed.
    sys.meta_path = [finder, *sys.meta_path]
    try:
        yield
    finally:
        sys.meta_path = [other for other in sys.meta_path if other is not finder]


class Finder(importlib.abc.MetaPathFinder):
    """Finds one package as the other finders do; it is imported within a context.

    Args:
        package: name of a top-level package.
        context: returns the context manager that surrounds the import.
    """

    def __init__(self, package: str, context: Context):
        self._package = package
        self._context = context
        self._is_asking_others = False

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the package's spec with a loader of our own; None for others."""
        if name != self._package or self._is_asking_others:
            return None
        self._is_asking_others = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_asking_others = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._context)
        return spec


class _HidingFinder(importlib.abc.MetaPathFinder):
    """Reports packages as missing if modules of certain packages import them."""

    def __init__(self, packages: Collection[str], importers: Collection[str]):
        self._packages = packages
        self._importers = importers

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> None:
        """Raises ModuleNotFoundError for a hidden package; else returns None."""
        if name in self._packages and _importing_package() in self._importers:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _importing_package():
    """Returns the top-level package of the module whose import is being resolved."""
    frame: types.FrameType | None = sys._getframe(2)  # The caller of `find_spec`.
    while frame and _package(frame) == "importlib":
        frame = frame.f_back
    return frame and _package(frame)


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]


class _Loader(importlib.abc.Loader):
    """Executes a module within a context; the module keeps its own loader."""

    def __init__(self, loader: Any, context: Context):
        self._loader = loader
        self._context = context

    def create_module(
        self, spec: importlib.machinery.ModuleSpec
    ) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with self._context():
            self._loader.exec_module(module)
