"""Model files: estimators are made again from saved plain data. Nothing in a file is ever executed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from onkel.core.basis import State
from onkel.core.part import from_plain
from onkel.core.state import read
from onkel.faces.estimator import Estimator
from onkel.faces.learned import Learned

DEEPEST = 50  # levels of lists and dictionaries in a config
UNUSED = 10**6  # components of a model that has no weights: nothing is drawn for them
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**36


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Warns if the file was saved by a `Follower` (see onkel.evaluation) and also holds its scaler or column encoding.

    Examples
    --------
    >>> import tempfile
    >>> import onkel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     onkel.PAClassifier().fit([[0.0], [1.0]], [0, 1]).save(f"{folder}/model.onkel")
    ...     model = onkel.load(f"{folder}/model.onkel")
    >>> model.predict([[0.1], [0.9]])
    array([0, 1])
    """
    arrays, config = read(path)
    model = restored(path, arrays, config)
    beside = config.get("follower") or {}
    if beside.get("scale") or beside.get("goal") or beside.get("schema", {}).get("features"):
        warnings.warn(
            f"{os.fspath(path)} was saved by a Follower and also holds a scaler or column encoding, which onkel.load "
            "ignores: pass rows and targets already scaled and encoded, or use "
            "onkel.evaluation.follower.Follower.load, which takes raw ones",
            stacklevel=2,
        )
    return model


def restored(path: str | os.PathLike[str], arrays: State, config: dict[str, Any]) -> Any:
    """The model from the arrays and the config of a file."""
    try:
        _refuse_deep(config)
        cls, params, run = _known(config["algorithm"]), config["params"], config["run"]
        if run is not None:
            _refuse_absurd(arrays, run)
        model = cls(**_from_plain(params))
        if run is None or run["params"] != params:  # if equal, `Learned.of` checks them
            model._check_params()
        if run is not None:
            model._learned = Learned.of(cls(**_from_plain(run["params"])), arrays, run)
    except Exception as error:  # whatever ends it: a model is made from what the file says alone
        reason = str(error) or type(error).__name__
        raise ValueError(f"{os.fspath(path)} does not hold a model this onkel can use: {reason}") from error
    return model


def _refuse_deep(value: Any, depth: int = 0) -> None:
    """Raise ValueError for parts within parts within parts: every function of nested parts calls itself as often."""
    if depth > DEEPEST:
        raise ValueError(f"its parts are nested more than {DEEPEST} times")
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            _refuse_deep(inner, depth + 1)


def _refuse_absurd(arrays: State, run: Mapping[str, Any]) -> None:
    """Raise ValueError if the config asks for more than the arrays hold, before anything of that size is made."""
    columns, components = run["n_features"], run["params"].get("components")
    for name, array in arrays.items():
        if name.endswith(".x") and array.shape[1:] != (columns,):
            raise ValueError(f"'{name}' has shape {array.shape}, but there are {columns} features")
    weights = [len(array) for name, array in arrays.items() if name.endswith(("weights.coef", "instances.coef"))]
    if type(components) is int and components > max(weights, default=UNUSED):
        raise ValueError(f"its components={components} are more than the weights in the file")
    size = columns * (components if type(components) is int else 1)
    if type(columns) is int and 8 * size > MEMORY:
        raise ValueError(f"{columns:,} features would take {8 * size >> 30:,} GiB, more than this machine has")


def _from_plain(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator; one of them may be an estimator itself."""

    def read(value: Any) -> Any:
        if isinstance(value, Mapping) and "algorithm" in value:
            return _known(value["algorithm"])(**_from_plain(value["params"]))
        return from_plain(value)

    return {name: read(value) for name, value in params.items()}


def _known(name: str) -> type[Estimator]:
    """The estimator class of this name."""
    if name not in Estimator.registry:
        raise ValueError(
            f"{name!r} is unknown: import the module that defines it first "
            "(a class of your own is registered if it defines `paper` or `cost`)"
        )
    return Estimator.registry[name]
