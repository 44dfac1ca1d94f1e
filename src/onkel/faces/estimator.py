"""Estimator: the base class of all algorithms.

An algorithm is a small class: its fields are its hyper-parameters, its method `parts` returns hypothesis, loss and
update, and its base class (`Classifier`, `Regressor`, `Detector`) says what it predicts. What it has learned is one
object, `Learned`.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from onkel.core import optional
from onkel.core.basis import State
from onkel.core.errors import Refused
from onkel.core.limits import TooMany
from onkel.core.part import Part, refuse_ignored, to_plain
from onkel.core.state import write
from onkel.faces import border, river
from onkel.faces.attributes import Attributes
from onkel.faces.columns import Columns, cast
from onkel.faces.labels import Labels
from onkel.faces.learned import Learned
from onkel.hypotheses import Hypothesis
from onkel.kernels import as_kernel
from onkel.learners.engine import Engine
from onkel.losses import Loss, as_loss
from onkel.updates import Update

Array = np.ndarray[Any, np.dtype[Any]]
Parts = tuple[Hypothesis, Loss, Update]
FEW = 10_000  # components, when parameters are checked without learning
Variants = Mapping[str, Mapping[str, Any]]
Settings = tuple[Mapping[str, Any], ...]
Examples = tuple[Learned, Any, Array, Array | None]  # checked: the model that will learn, rows, targets, weights


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Attributes, BaseEstimator):  # type: ignore[misc]
    """The base class of all algorithms.

    Parameters
    ----------
    random_state : seed of the random choices (None: another one each time)
    n_jobs : threads that score many rows (None: one, -1: one for each core); a single learner learns on one thread
    """

    random_state: Any = 0
    n_jobs: int | None = None

    registry: ClassVar[dict[str, type[Estimator]]] = {}  # estimators with a task and a paper or a cost, by name
    aliases: ClassVar[tuple[str, ...]] = ()  # other names in the papers
    variants: ClassVar[Variants] = {}  # name of a variant in the papers -> the parameters that give it
    paper: ClassVar[str] = ""  # reference; estimators with one are in the catalogue
    task: ClassVar[str] = ""  # "classification", "regression" or "novelty detection", set by the base class
    cost: ClassVar[str] = ""  # of one round
    examples: ClassVar[Settings] = ({},)  # settings for the tests; together they use every field
    online: ClassVar[bool] = True  # does it learn from a stream?
    river_kind: ClassVar[str] = ""  # the class of river.base that it implements

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        river.register(cls, cls.river_kind)
        if cls.task and (cls.paper or cls.cost):
            taken = Estimator.registry.get(cls.__name__)
            if taken is not None and taken.__module__ != cls.__module__:  # files know algorithms by name alone
                raise TypeError(f"there is a {cls.__name__} in {taken.__module__}: choose another name")
            Estimator.registry[cls.__name__] = cls

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Engine:
        """A new engine for these parameters; `run` says what was known at the start (see `Learned`)."""
        raise NotImplementedError

    # -- parameters

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:  # scikit-learn reads the signature anew each time
        return sorted(field.name for field in fields(cls))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__gamma` and the like replace the part by a copy with this field changed."""
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name, value in nested.items():
            head, _, rest = name.partition("__")
            part = getattr(self, head, None)
            part = as_kernel(part) if head == "kernel" and part is not None else part
            if isinstance(part, Estimator):
                setattr(self, head, part._fresh().set_params(**{rest: value}))
                continue
            if not isinstance(part, Part):
                raise ValueError(f"Invalid parameter {name!r}: {type(self).__name__} has no part {head!r}")
            setattr(self, head, part.replace(**{rest: value}))
        return self

    def _choice(self, name: str, **options: Any) -> Any:
        """The one of `options` that the parameter `name` selects; raises Refused if its value names none."""
        word = getattr(self, name)
        if not isinstance(word, str) or word not in options:
            raise Refused(type(self).__name__, name, f"one of {', '.join(map(repr, options))}", word)
        return options[word]

    def _loss(self) -> Loss:
        """The loss of the field `loss`; a loss given by name takes its epsilon from the field `epsilon`, if any."""
        loss = as_loss(self.loss, self.task, epsilon=getattr(self, "epsilon", None))
        if hasattr(self, "epsilon") and not (isinstance(self.loss, str) and hasattr(loss, "epsilon")):
            refuse_ignored(self, f"loss={self.loss!r}", "epsilon")
        return loss

    def _is_logistic(self) -> bool:
        """Are the scores those of a logistic loss, so that probabilities follow from them?"""
        return False

    def _fresh(self) -> Self:
        """An estimator with the same parameters that has learned nothing."""
        return type(self)(**self.get_params(deep=False))

    def _make(self, outputs: int, run: Mapping[str, Any], keys: Array) -> Engine:
        """A new engine; errors name the parameter of this estimator, not the field of the part."""
        jobs = self.n_jobs
        if jobs is not None and (not isinstance(jobs, (int, np.integer)) or isinstance(jobs, bool) or jobs == 0):
            raise Refused(type(self).__name__, "n_jobs", "None or an integer other than 0", jobs)
        try:
            return self._engine(run, outputs, keys)
        except Refused as error:
            raise self._in_own_words(error) from error
        except TooMany:
            raise
        except ValueError as error:
            raise ValueError(f"{type(self).__name__}: {error}") from error

    def _check_params(self) -> None:
        """Raise an error if the parameters are not valid; nothing is made of the size that they ask for."""
        fresh, components = self._fresh(), getattr(self, "components", None)
        if isinstance(components, int) and FEW < components < 2**31:
            fresh.components = FEW
        fresh._make(1, {"columns": 1, "dtype": "float64", "sparse": False, "seed": 0}, np.zeros(1, np.uint64))

    def _in_own_words(self, error: Refused) -> ValueError:
        """Translate an error of a part: `Gradient.radius must be ...` becomes `KLRSGDClassifier.R must be ...`.

        The parameter is the one that has the refused value. If several have it, or none, it is the one with the name
        of the part's field; if there is no such parameter, the estimator's name is put before the message.
        """
        params = self.get_params(deep=False)
        alike = [name for name, value in params.items() if value is error.got]
        if error.field in alike or (error.field in params and len(alike) != 1):
            field = error.field
        elif len(alike) == 1:
            field = alike[0]
        else:
            return ValueError(f"{type(self).__name__}: {error}")
        return Refused(type(self).__name__, field, error.wanted, error.got)

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn from the rows in order, once."""
        weights = np.asarray(sample_weight)
        if weights.dtype.kind in "biuf" and not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number, or nothing is learned")
        return self._fit(X, y, sample_weight=sample_weight)

    def _fit(self, *examples: Any, **options: Any) -> Self:
        fresh = self._fresh()
        try:
            fresh.partial_fit(*examples, **options)
        finally:
            self._learned = fresh._learned or self._learned  # a call that ends early keeps the rows learned so far
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue to learn from the rows in order; `classes` declares labels to come (classifiers)."""
        self.learn(X, y, classes=classes, sample_weight=sample_weight)
        return self

    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the scores made before each update."""
        return self._learn(*self._ready(X, y, classes, sample_weight))

    def begin(self, X: Any, y: Any, classes: Any = None) -> Self:
        """If nothing was learned yet, prepare a model for rows and targets like these, without learning from them."""
        if self._learned is None:
            self._learned = self._ready(X, y, classes, None)[0]
        return self

    def _ready(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Examples:
        """Check the arguments; returns (model that will learn them, rows, targets, weights), and changes nothing."""
        learned = self._learned
        if learned is None:
            columns, X = Columns.of(X, type(self).__name__)
        else:
            X = learned.rows(X)
        target, labels = self._targets(X, y, classes)
        weight = None if sample_weight is None else border.as_weight(sample_weight, X)
        if learned is None:
            learned = self._begun(X, columns, labels)
        elif labels is not None and labels is not learned.labels:
            learned = learned.relabelled(labels)
        return learned, X, target, weight

    def _targets(self, X: Any, y: Any, classes: Any) -> tuple[Array, Labels | None]:
        """Check y; returns it as numbers, and the known classes joined with those of y (None if y is not a class)."""
        raise NotImplementedError

    def _learn(self, learned: Learned, X: Any, y: Array, weight: Array | None) -> Array:
        """Learn from checked examples; the model that learned them becomes that of the estimator."""
        if learned is self._learned:
            return learned.learn(X, y, weight)
        before = learned.engine.t
        try:
            scores = learned.learn(X, y, weight)
        except BaseException:
            if learned.engine.t > before:  # some rows were learned: keep this model
                self._learned = learned
            raise
        self._learned = learned
        return scores

    def _begun(self, X: Any, columns: Columns, labels: Labels | None) -> Learned:
        """A new model for rows of this form."""
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            seed = check_random_state(seed).randint(2**31)
        run = {"columns": X.shape[1], "dtype": X.dtype.name, "sparse": hasattr(X, "indptr"), "seed": int(seed)}
        recipe = self._fresh()
        recipe.random_state = self._plain_seed(int(seed))
        return Learned(recipe, run, columns, labels)

    def _plain_seed(self, drawn: int) -> Any:
        """`random_state`, or the number drawn from it if it is a generator, as only numbers can be saved."""
        state = self.random_state
        return drawn if not isinstance(state, (int, np.integer, type(None))) else state

    def widen(self, columns: int) -> Self:
        """Make room for `columns` columns in all, without names; the new ones count as zero in all examples so far."""
        learned = self._fitted()
        if learned.columns.names is not None:
            raise ValueError("this model knows its columns by name: new ones are added by learn_one or learn_many")
        if not isinstance(columns, (int, np.integer)) or isinstance(columns, bool) or not 0 <= columns < 2**31:
            raise ValueError(f"columns must be an integer from 0 to 2^31 - 1, got {border.shortly(columns)}")
        if columns > learned.columns.count:
            learned.widen(columns)
        return self

    # -- rows with names

    def _example(self, x: Any) -> tuple[Any, list[Any] | None]:
        """Check one example to learn from; returns it and its new names (None: the example has no names)."""
        learned = self._learned
        x = border.as_example(x, learned.columns.index if learned else ())
        if isinstance(x, Mapping):
            return self._named(x)
        return (Columns.of(x, type(self).__name__)[1] if learned is None else learned.rows(x)), None

    def _named(self, x: Any) -> tuple[Any, list[Any]]:
        """Check a dictionary or a frame to learn from; returns its rows and the new names."""
        learned = self._learned
        known = Columns(0, [], True, type(self).__name__) if learned is None else learned.columns
        known.refuse_unnamed()
        if isinstance(x, Mapping):
            new = known.unknown(x)
            rows: Any = known.rows(x, new)
        else:
            new = known.unknown(getattr(x, "columns", ()))
            rows = known.select(x, new)
        return (rows if learned is None else cast(rows, learned.dtype)), new

    @contextmanager
    def _joining(self, X: Any, new: list[Any] | None, labels: Labels | None) -> Iterator[Learned]:
        """The model for checked rows with `new` names and these labels: the current one, which they join, or another.

        If no row is learned in this block, the model stays as it was, without them.
        """
        learned = self._learned
        if learned is None:
            columns = Columns(X.shape[1] if new is None else len(new), new, new is not None, type(self).__name__)
            yield self._begun(X, columns, labels)
            return
        if labels is not None and labels is not learned.labels and not learned.joins_in_place(labels):
            learned = learned.relabelled(labels)
        with learned.joining(new, labels):
            yield learned

    def _scores(self, X: Any, output: str | None = None) -> Array:
        learned = self._fitted()
        return learned.scores(learned.rows(X), output, self.n_jobs)

    def _by_name(self, X: Any) -> Any:
        """The rows of a frame with the known columns; other columns are left out."""
        columns = self._fitted().columns
        return X if columns.names is None else cast(columns.select(X), self._fitted().dtype)

    # -- as plain data

    def state(self) -> tuple[State, dict[str, Any]]:
        """Everything that is saved: arrays, and a config of plain data."""
        config: dict[str, Any] = {"algorithm": type(self).__name__, "params": self._plain_params(), "run": None}
        if self._learned is None:
            return {}, config
        arrays, run = self._learned.plain()
        config["run"] = run | {"params": self._learned.recipe._plain_params()}
        return arrays, config

    def _plain_params(self) -> dict[str, Any]:
        """The parameters as JSON data; a nested estimator becomes its name and parameters."""
        params = self.get_params(deep=False)
        if self._learned is not None:
            params["random_state"] = self._plain_seed(self._learned.run["seed"])
        return {
            name: {"algorithm": type(value).__name__, "params": value._plain_params()}
            if isinstance(value, Estimator)
            else to_plain(value)
            for name, value in params.items()
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; after `onkel.load` it continues exactly where it stopped."""
        write(path, *self.state())

    # -- river's protocol: what its base classes would provide

    _supervised: ClassVar[bool] = True
    _is_stochastic: ClassVar[bool] = False  # is the seed unset? No: random_state has a default
    _mutable_attributes: ClassVar[frozenset[str]] = frozenset()

    def _series(self, X: Any) -> Any:
        """Predictions for the rows of a frame, with its index."""
        pd = optional.load("pandas", "predict_many")
        if self._learned is None:
            return pd.Series(dtype=object)
        return pd.Series(self.predict(self._by_name(X)), index=getattr(X, "index", None))

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A new model with the same parameters; `include_attributes` also copies what was learned.

        `include_attributes` is ignored if `new_params` is given.
        """
        if include_attributes and not new_params:
            return copy.deepcopy(self)
        return type(self)(**(copy.deepcopy(self.get_params(deep=False)) | (new_params or {})))

    def mutate(self, new_attrs: dict[str, Any]) -> None:
        """River's in-place change of attributes; no attribute of onkel's models is mutable."""
        for name in new_attrs:
            raise ValueError(f"{name!r} of {type(self).__name__} is not mutable: use clone or set_params")

    def _get_params(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))

    @property
    def _tags(self) -> set[str]:
        return set()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    def _unit_test_skips(self) -> set[str]:
        return set()

    @property
    def _raw_memory_usage(self) -> int:
        return sum(array.nbytes for array in self.state()[0].values()) + sys.getsizeof(vars(self))

    # -- scikit-learn's tags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
