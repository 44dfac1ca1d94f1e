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
        cls, params, run = _known(config["algorithm"]), config["params"], config["run"]
        model = cls(**_from_plain(params))
        if run is None or run["params"] != params:  # if equal, `Learned.of` checks them
            model._check_params()
        if run is not None:
            model._learned = Learned.of(cls(**_from_plain(run["params"])), arrays, run)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} does not hold a model this onkel can use: {error}") from error
    return model


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
