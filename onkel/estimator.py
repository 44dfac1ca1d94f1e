"""Estimators: the faces of a learner for scikit-learn and for river.

An algorithm is a small subclass: its fields are its hyper-parameters, `parts` is its recipe. Everything
else is here: `Estimator` (parameters, state, attributes), `Classifier`, `Regressor` and `Detector`.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from onkel import border, native
from onkel.border import Columns
from onkel.hypothesis import Expansion
from onkel.kernels import Kernel, as_kernel
from onkel.learner import Learner
from onkel.losses import Logistic, Loss
from onkel.part import Part, from_plain, to_plain
from onkel.state import State, read, relabel, write
from onkel.updates import Update

Array = np.ndarray[Any, np.dtype[Any]]
Parts = tuple[Expansion, Loss, Update]


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(BaseEstimator):  # type: ignore[misc]
    """What all algorithms share.

    Parameters
    ----------
    kernel : an object of onkel.kernels, or its name
    average : False; True or "all": score with the average of the models before each round (see Learner)
    random_state : seed of the random choices (None: fresh each time)
    """

    kernel: Kernel | str = "gaussian"
    average: bool | str = False
    random_state: Any = 0

    registry: ClassVar[dict[str, type[Estimator]]] = {}
    aliases: ClassVar[tuple[str, ...]] = ()  # names in the papers
    paper: ClassVar[str] = ""  # reference
    cost: ClassVar[str] = ""  # of one round, beyond reading the example

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        if cls.paper:
            Estimator.registry[cls.__name__] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        _join_river(cls)
        return super().__new__(cls)

    def parts(self, kernel: Kernel) -> Parts:
        """The recipe: hypothesis, loss and update of this algorithm."""
        raise NotImplementedError

    # -- parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__gamma` and the like replace the part by one with that field changed."""
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name, value in nested.items():
            head, _, rest = name.partition("__")
            part = as_kernel(self.kernel) if head == "kernel" else getattr(self, head, None)
            if not isinstance(part, Part):
                raise ValueError(f"Invalid parameter {name!r}: {type(self).__name__} has no part {head!r}")
            setattr(self, head, part.replace(**{rest: value}))
        return self

    def _choice(self, name: str, **options: Any) -> Any:
        """What the word in field `name` stands for."""
        word = getattr(self, name)
        if word not in options:
            raise ValueError(f"{type(self).__name__}.{name} must be one of {', '.join(map(repr, options))}, got {word!r}")
        return options[word]

    # -- learning

    @property
    def _started(self) -> bool:
        return "_learner" in vars(self)

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    _learned: ClassVar[tuple[str, ...]] = (
        *("_learner", "_run", "_columns", "_codes", "_declared"),
        *("classes_", "n_features_in_", "feature_names_in_"),
    )

    def _forget(self) -> None:
        for name in self._learned:
            vars(self).pop(name, None)

    def _become(self, fresh: Self) -> Self:
        """Take over what another learned; so a fit that fails leaves this one as it was."""
        self._forget()
        vars(self).update({name: value for name, value in vars(fresh).items() if name in self._learned})
        return self

    def _make(self, outputs: int, columns: int, dtype: Any, sparse: bool, seed: int) -> Any:
        """A fresh engine for this algorithm; refuses bad parameters."""
        kernel = as_kernel(self.kernel).resolve(columns)
        hypothesis, loss, update = self.parts(kernel)
        run = {"outputs": outputs, "average": self.average, "seed": seed}
        return native.engine(Learner(hypothesis, loss, update, columns=columns, dtype=dtype, sparse=sparse, **run))

    def _begin(self, outputs: int, columns: int, dtype: Any, sparse: bool) -> None:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        self._learner = self._make(outputs, columns, dtype, sparse, int(seed))
        self._run = {"columns": columns, "dtype": np.dtype(dtype).name, "sparse": bool(sparse), "seed": int(seed)}

    def _rows(self, X: Any, first: bool = False) -> Any:
        """Check a matrix or a frame against the columns known (`first`: take them from it)."""
        columns: Columns | None = vars(self).get("_columns")
        if columns is not None and not first:
            if border.is_frame(X):
                return columns.select(X)
            X = border.as_rows(X)
            if X.shape[1] != len(columns):
                raise ValueError(f"X has {X.shape[1]} features, but this model knows {len(columns)} by name")
            return X
        dtype = [np.float64, np.float32] if first else self._run["dtype"]
        sparse = ("csr", "csc", "coo")
        X = validate_data(
            self, X, reset=first, accept_sparse=sparse, dtype=dtype, order="C", ensure_all_finite=False
        )
        return border.settle(X)

    def _named(self, x: Any) -> Any:
        """Check a dictionary or a frame for learning; its names join the columns."""
        if self._started and "_columns" not in vars(self):
            names = getattr(self, "feature_names_in_", None)
            if names is None:
                raise ValueError("this model was trained on unnamed columns: give it arrays, not dictionaries")
            known = Columns(list(names))
        else:
            known = vars(self).get("_columns", Columns())
        columns = known.with_names(x if isinstance(x, Mapping) else x.columns)
        rows = columns.rows(x) if isinstance(x, Mapping) else columns.select(x)
        if not self._started:
            self._first_names = columns
        elif columns is not known or "_columns" not in vars(self):
            self._learner.widen(len(columns))
            self._columns = columns
            self.n_features_in_ = len(columns)
        return rows

    def _one(self, x: Any) -> Any:
        """Check one example, without learning from it."""
        if isinstance(x, Mapping):
            names = vars(self).get("_columns") or Columns(list(getattr(self, "feature_names_in_", [])))
            return names.rows(x)
        return self._rows(np.asarray(x).reshape(1, -1))

    def _scores(self, X: Any, output: str | None = None) -> Array:
        if output not in (None, "last", "average"):
            raise ValueError(f'output must be "last" or "average", got {output!r}')
        if output == "average" and not self.average:
            raise ValueError('output="average" needs a model made with average=True')
        scores: Array = self._learner.scores(X, average=None if output is None else output == "average")
        return scores

    # -- what was learned

    @property
    def t_(self) -> int:
        """Number of examples learned from."""
        check_is_fitted(self)
        return int(self._learner.t)

    @property
    def n_support_(self) -> int:
        """Number of terms."""
        check_is_fitted(self)
        return len(self._terms()["coef"]) if self.average == "all" else int(self._learner.n)

    @property
    def support_vectors_(self) -> Any:
        """The stored examples (terms, features), in the order they entered."""
        return self._terms()["x"]

    @property
    def dual_coef_(self) -> Array:
        """Coefficients (outputs, terms) of the function that `predict` uses."""
        coef: Array = self._terms()["coef"].T
        return coef

    @property
    def kernel_(self) -> Kernel:
        """The kernel with "auto" resolved."""
        check_is_fitted(self)
        return as_kernel(self.kernel).resolve(self._run["columns"])

    def _terms(self) -> dict[str, Any]:
        check_is_fitted(self)
        state = self._learner.state()
        coef = state["basis.coef"] * state["scale"]
        if self.average:
            coef = (state["basis.coef"] * state["cumulative"] + state["basis.base"]) / max(int(state["t"]), 1)
        x, born = _stored(state, "basis", self.n_features_in_), state["basis.born"][:, 0]
        if self.average == "all" and len(state["dead.born"]):
            dead = _stored(state, "dead", self.n_features_in_)
            x = sp.vstack([x, dead], format="csr") if sp.issparse(x) else np.vstack([x, dead])
            coef = np.vstack([coef, state["dead.coef"] / max(int(state["t"]), 1)])
            born = np.concatenate([born, state["dead.born"][:, 0]])
        order = np.argsort(born, kind="stable")
        return {"x": x[order], "coef": coef[order], "born": born[order]}

    # -- state

    def state(self) -> tuple[State, dict[str, Any]]:
        """Everything there is to know: arrays, and a config of plain data."""
        config: dict[str, Any] = {"algorithm": type(self).__name__}
        config["params"] = {name: to_plain(value) for name, value in self.get_params(deep=False).items()}
        arrays, config["run"] = self._run_state()
        return arrays, config

    def _run_state(self) -> tuple[State, dict[str, Any] | None]:
        if not self._started:
            return {}, None
        run = self._run | {"outputs": self._learner.outputs, "n_features": self.n_features_in_}
        if "_columns" in vars(self):
            run["names"] = [to_plain(name) for name in self._columns.names]
        if hasattr(self, "feature_names_in_"):
            run["feature_names"] = [str(name) for name in self.feature_names_in_]
        return self._learner.state(), run

    def _restore_run(self, arrays: State, run: dict[str, Any] | None) -> None:
        self._forget()
        if run is None:
            return
        self._run = {name: run[name] for name in ("columns", "dtype", "sparse", "seed")}
        self._learner = self._make(run["outputs"], self._run["columns"], run["dtype"], run["sparse"], run["seed"])
        self.n_features_in_ = run["n_features"]
        self._learner.widen(self.n_features_in_)
        self._learner.restore(arrays)
        if "names" in run:
            self._columns = Columns([from_plain(name) for name in run["names"]])
        if "feature_names" in run:
            self.feature_names_in_ = np.array(run["feature_names"], dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; `onkel.load` reads it and goes on exactly where it stopped."""
        write(path, *self.state())

    def __getstate__(self) -> dict[str, Any]:
        return {"params": self.get_params(deep=False), "run": self._run_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state["params"].items():
            setattr(self, name, value)
        self._restore_run(*state["run"])

    # -- river's protocol (its base classes are joined when river is there)

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A fresh model with the same parameters (river); with `include_attributes` a copy of what was learned too."""
        if include_attributes and not new_params:
            return copy.deepcopy(self)
        return type(self)(**(copy.deepcopy(self.get_params(deep=False)) | (new_params or {})))

    def mutate(self, new_attrs: dict[str, Any]) -> None:
        """River's in-place change of attributes; here none is mutable."""
        for name in new_attrs:
            raise ValueError(f"{name!r} is not a mutable attribute of {type(self).__name__}: use clone or set_params")

    def _get_params(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))

    def _more_tags(self) -> set[str]:
        return set()

    _tags = property(_more_tags)
    _supervised = True
    _is_stochastic = False
    _mutable_attributes: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    def _unit_test_skips(self) -> set[str]:
        return set()

    @property
    def _raw_memory_usage(self) -> int:
        return sum(array.nbytes for array in self._run_state()[0].values()) + sys.getsizeof(vars(self))

    # -- scikit-learn's tags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _stored(state: State, prefix: str, columns: int) -> Any:
    if f"{prefix}.x" in state:
        return state[f"{prefix}.x"]
    indptr = state[f"{prefix}.indptr"]
    parts = (state[f"{prefix}.data"], state[f"{prefix}.indices"], indptr)
    return sp.csr_array(parts, shape=(len(indptr) - 1, columns))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote."""
    arrays, config = read(path)
    try:
        cls = Estimator.registry.get(config["algorithm"])
        if cls is None:
            raise ValueError(f"{path} holds a {config['algorithm']!r}: import the module that defines it first")
        model = cls(**{name: from_plain(value) for name, value in config["params"].items()})
        model._restore_run(arrays, config["run"])
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} does not hold a consistent model ({error!r}): save it again") from error
    return model


def _join_river(cls: type[Estimator]) -> None:
    """Make isinstance checks of river hold, if river is in use; onkel itself never imports it."""
    base = sys.modules.get("river.base")
    if base is None or "_joined_river" in vars(cls):
        return
    for kind, name in ((Classifier, "MiniBatchClassifier"), (Regressor, "MiniBatchRegressor"), (Detector, "AnomalyDetector")):
        if issubclass(cls, kind):
            getattr(base, name).register(cls)
    cls._joined_river = True  # type: ignore[attr-defined]


class _Supervised(Estimator):
    """Estimators that learn from examples and targets."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn from the rows in order, once."""
        return self._become(type(self)(**self.get_params(deep=False)).partial_fit(X, y, sample_weight=sample_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from the rows in order."""
        raise NotImplementedError

    def predict(self, X: Any) -> Array:
        """Predictions for the rows of X."""
        raise NotImplementedError

    def predict_many(self, X: Any) -> Any:
        """Predictions for a frame, as a pandas Series (river)."""
        import pandas as pd

        if not self._started:
            return pd.Series(dtype=object)
        return pd.Series(self.predict(self._frame(X)), index=getattr(X, "index", None))

    def _frame(self, X: Any) -> Any:
        if "_columns" in vars(self) or not hasattr(self, "feature_names_in_"):
            return X
        return Columns(list(self.feature_names_in_)).select(X)


class Classifier(ClassifierMixin, _Supervised):  # type: ignore[misc]
    """The face of learners that predict one of two or more classes."""

    _multiclass = True

    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the scores made before each update.

        Returns (n,) for two classes, a positive score (or 0) meaning `classes_[1]`; (n, m) for m >= 3 classes.
        """
        first = not self._started
        X = self._rows(X, first)
        y = border.as_labels(y, X)
        weight = border.as_weight(sample_weight, X)
        self._know(y, classes, X)
        return self._learn(X, y, weight)

    def _learn(self, X: Any, y: Array, weight: Array | None) -> Array:
        target = np.searchsorted(self.classes_, y).astype(np.float64)
        if len(self.classes_) <= 2:
            target = 2 * target - 1
        last, averaged = self._learner.learn(X, target, weight)
        scores = averaged if self.average else last
        return scores if scores.shape[1] > 1 else scores[:, 0]

    def _know(self, y: Array, classes: Any, X: Any) -> None:
        """Settle the classes before learning from X, y: begin, or let new ones join."""
        seen = np.unique(y)
        declared = None if classes is None else np.unique(border.checked_labels(classes, "classes"))
        if seen.dtype.kind == "b" and declared is None and not self._started:
            declared = np.array([False, True])
        old = self.classes_ if self._started else seen[:0]
        allowed = old if declared is None else _union(old, declared)
        closed = declared is not None or vars(self).get("_declared", False)
        new = allowed if closed else _union(allowed, seen)
        unknown = seen[~np.isin(seen, new)]
        if len(unknown):
            raise ValueError(
                f"y contains the label {unknown[0]!r}, which is not among the declared classes {new.tolist()}: "
                "pass classes= with every label to come"
            )
        outputs = len(new) if len(new) > 2 else 1
        if not self._started:
            self._begin(outputs, X.shape[1], X.dtype, sp.issparse(X))
            if "_first_names" in vars(self):
                self._columns = vars(self).pop("_first_names")
                self.n_features_in_ = len(self._columns)
        elif len(new) > len(old):
            state = relabel(self._learner.state(), old, new)
            self._learner = self._make(outputs, *(self._run[k] for k in ("columns", "dtype", "sparse", "seed")))
            self._learner.widen(self.n_features_in_)
            self._learner.restore(state)
        self.classes_ = new
        self._declared = closed
        vars(self).pop("_codes", None)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from the rows in order; `classes` declares labels to come."""
        self.learn(X, y, classes=classes, sample_weight=sample_weight)
        return self

    def decision_function(self, X: Any, output: str | None = None) -> Array:
        """Scores (n,) or (n, classes); `output` picks the "last" or the "average" model."""
        check_is_fitted(self)
        scores = self._scores(self._rows(X), output)
        return scores if scores.shape[1] > 1 else scores[:, 0]

    def predict(self, X: Any) -> Array:
        """The class of each row; a score of 0 is `classes_[1]`."""
        check_is_fitted(self)
        return self._labels(self._scores(self._rows(X)))

    def _labels(self, scores: Array) -> Array:
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        best = np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] >= 0).astype(int)
        return np.asarray(self.classes_[best])

    def _has_probabilities(self) -> bool:
        return isinstance(self.parts(as_kernel(self.kernel).resolve(1))[1], Logistic)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, classes) of a logistic model: 1 / (1 + exp(-f)), or the softmax of the scores."""
        check_is_fitted(self)
        return self._probabilities(self._scores(self._rows(X)))

    def _probabilities(self, scores: Array) -> Array:
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        if scores.shape[1] == 1:
            positive = np.exp(-np.logaddexp(0, -scores[:, 0]))
            return np.column_stack([1 - positive, positive])
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    # -- river

    @property
    def _targets(self) -> dict[Any, float]:
        if "_codes" not in vars(self):
            binary = len(self.classes_) <= 2
            self._codes = {c: (2.0 * i - 1.0 if binary else float(i)) for i, c in enumerate(self.classes_.tolist())}
        return self._codes

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        if type(x) is np.ndarray and "_codes" in vars(self) and (target := self._codes.get(y)) is not None:
            self._learner.learn_one(x, target, w)
            return
        rows = self._named(x) if isinstance(x, Mapping) else self._rows(np.asarray(x).reshape(1, -1), not self._started)
        label = border.checked_labels([y], "y")
        weight = border.as_weight([w], rows)
        self._know(label, None, rows)
        self._learn(rows, label, weight)
        _ = self._targets

    def predict_one(self, x: Any) -> Any:
        """The class of one example; None before anything was learned."""
        if not self._started:
            return None
        return self._labels(self._scores(self._one(x))).tolist()[0]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class (logistic models)."""
        if not self._has_probabilities():
            raise NotImplementedError(f"{type(self).__name__} has no probabilities: use a logistic loss")
        if not self._started:
            return {}
        probabilities = self._probabilities(self._scores(self._one(x)))[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame as `learn_one` would; new columns and classes join."""
        labels = border.as_labels(y, X)
        rows = self._named(X)
        # a class joins at its first example, so cut there
        _, first = np.unique(labels, return_index=True)
        known = self.classes_ if self._started else labels[:0]
        cuts = sorted({0, len(labels), *(int(i) for i in first if labels[i] not in known)})
        for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
            self._know(labels[start:stop], None, rows)
            self._learn(rows[start:stop], labels[start:stop], None)

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each class for a frame, as a pandas DataFrame (logistic models)."""
        import pandas as pd

        if not self._has_probabilities():
            raise NotImplementedError(f"{type(self).__name__} has no probabilities: use a logistic loss")
        if not self._started:
            return pd.DataFrame()
        return pd.DataFrame(self.predict_proba(self._frame(X)), columns=self.classes_.tolist(), index=X.index)

    # -- state

    def _run_state(self) -> tuple[State, dict[str, Any] | None]:
        arrays, run = super()._run_state()
        if run is not None:
            run["classes"] = {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()}
            run["declared"] = self._declared
        return arrays, run

    def _restore_run(self, arrays: State, run: dict[str, Any] | None) -> None:
        super()._restore_run(arrays, run)
        if run is not None:
            self.classes_ = np.array(run["classes"]["labels"], dtype=np.dtype(run["classes"]["dtype"]))
            self._declared = run["declared"]


def _union(old: Array, more: Array) -> Array:
    """Both sets of labels, sorted; of one kind."""
    if len(old) == 0:
        return more
    if (old.dtype.kind in "OUS") != (more.dtype.kind in "OUS"):
        raise ValueError(f"labels must be of one kind: {more.tolist()[0]!r} cannot join {old.tolist()}")
    return np.union1d(old, more)


class Regressor(RegressorMixin, _Supervised):  # type: ignore[misc]
    """The face of learners that predict a number."""

    forgets: ClassVar[bool] = False  # by design; scikit-learn's checks then expect no high score on old rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.forgets
        return tags

    def learn(self, X: Any, y: Any, classes: None = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the predictions (n,) made before each update."""
        first = not self._started
        X = self._rows(X, first)
        y = border.as_target(y, X)
        weight = border.as_weight(sample_weight, X)
        if first:
            self._begin(1, X.shape[1], X.dtype, sp.issparse(X))
        return self._learn(X, y, weight)

    def _learn(self, X: Any, y: Array, weight: Array | None) -> Array:
        last, averaged = self._learner.learn(X, y, weight)
        return (averaged if self.average else last)[:, 0]

    def partial_fit(self, X: Any, y: Any, classes: None = None, sample_weight: Any = None) -> Self:
        """Go on learning from the rows in order."""
        self.learn(X, y, sample_weight=sample_weight)
        return self

    def predict(self, X: Any, output: str | None = None) -> Array:
        """The predicted number of each row; `output` picks the "last" or the "average" model."""
        check_is_fitted(self)
        return self._scores(self._rows(X), output)[:, 0]

    # -- river

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        if type(x) is np.ndarray and self._started:
            self._learner.learn_one(x, y, w)
            return
        rows = self._named(x) if isinstance(x, Mapping) else self._rows(np.asarray(x).reshape(1, -1), not self._started)
        target = border.as_target([y], rows)
        weight = border.as_weight([w], rows)
        self._begin_named(rows)
        self._learn(rows, target, weight)

    def _begin_named(self, rows: Any) -> None:
        if not self._started:
            self._begin(1, rows.shape[1], rows.dtype, sp.issparse(rows))
            if "_first_names" in vars(self):
                self._columns = vars(self).pop("_first_names")
                self.n_features_in_ = len(self._columns)

    def predict_one(self, x: Any) -> float:
        """The predicted number of one example; 0 before anything was learned."""
        return float(self._scores(self._one(x))[0, 0]) if self._started else 0.0

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame as `learn_one` would; new columns join."""
        target = border.as_target(y, X)
        rows = self._named(X)
        self._begin_named(rows)
        self._learn(rows, target, None)


class Detector(OutlierMixin, Estimator):  # type: ignore[misc]
    """The face of learners that tell the usual from the novel; they learn from examples alone."""

    _supervised = False

    def learn(self, X: Any) -> Array:
        """Learn from the rows in order and return the scores f(x) (n,) made before each update."""
        first = not self._started
        X = self._rows(X, first)
        if first:
            self._begin(1, X.shape[1], X.dtype, sp.issparse(X))
        return self._learn(X)

    def _learn(self, X: Any) -> Array:
        last, averaged = self._learner.learn(X, np.ones(X.shape[0]), None)
        return (averaged if self.average else last)[:, 0]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn from the rows in order, once."""
        return self._become(type(self)(**self.get_params(deep=False)).partial_fit(X))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning from the rows in order."""
        self.learn(X)
        return self

    @property
    def offset_(self) -> float:
        """The threshold rho below which an example is novel."""
        check_is_fitted(self)
        return float(self._learner.state()["update.threshold"])

    def score_samples(self, X: Any) -> Array:
        """f(x): the higher, the more usual."""
        check_is_fitted(self)
        return self._scores(self._rows(X))[:, 0]

    def decision_function(self, X: Any) -> Array:
        """f(x) - rho: negative for novel examples."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """+1 for usual, -1 for novel examples."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    # -- river

    def learn_one(self, x: Any) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        rows = self._named(x) if isinstance(x, Mapping) else self._rows(np.asarray(x).reshape(1, -1), not self._started)
        if not self._started:
            self._begin(1, rows.shape[1], rows.dtype, sp.issparse(rows))
            if "_first_names" in vars(self):
                self._columns = vars(self).pop("_first_names")
                self.n_features_in_ = len(self._columns)
        self._learn(rows)

    def score_one(self, x: Any) -> float:
        """rho - f(x): the higher, the more novel."""
        return self.offset_ - float(self._scores(self._one(x))[0, 0]) if self._started else 0.0
