"""Surrounds the import of a package with a context manager, wherever it happens.

Other libraries have such hooks too, and some of them replace loaders by proxies. So no
attribute of a loader is changed here; a loader of our own calls the one that was found.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
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
    finder = Finder(package, context)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextlib.contextmanager
def hidden(packages: Collection[str]) -> Iterator[None]:
    """Lets imports within the block fail as if the packages were not installed.

    Packages that are already imported stay visible, and other threads import as before.
    After the block, all packages can be imported.
    """
    finder = _HidingFinder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


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
    """Says that packages are not installed, in the thread that created it."""

    def __init__(self, packages: Collection[str]):
        self._packages = packages
        self._thread = threading.get_ident()

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> None:
        """Raises ModuleNotFoundError for a hidden package; else returns None."""
        if name in self._packages and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


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
