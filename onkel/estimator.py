"""Estimator: what every algorithm shares, whatever it predicts.

An algorithm is a small subclass of a face (`onkel.faces`): its fields are its hyper-parameters, `parts` is
its recipe. Here are parameters, the learner's life, learned attributes, state, and river's protocol.
"""

from __future__ import annotations

import copy
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onkel import border, native
from onkel.border import Columns
from onkel.hypothesis import Hypothesis
from onkel.kernels import Kernel, as_kernel
from onkel.learner import Learner
from onkel.losses import Loss, as_loss
from onkel.maps import keys_of
from onkel.part import Part, from_plain, to_plain
from onkel.state import State, read, write
from onkel.updates import Update

Array = np.ndarray[Any, np.dtype[Any]]
Parts = tuple[Hypothesis, Loss, Update]
Variants = Mapping[str, Mapping[str, Any]]


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(BaseEstimator):  # type: ignore[misc]
    """What all algorithms share.

    Parameters
    ----------
    random_state : seed of the random choices (None: fresh each time)
    n_jobs : threads that score many rows (None: one, -1: one for each core); learning is one after the other
    """

    random_state: Any = 0
    n_jobs: int | None = None

    registry: ClassVar[dict[str, type[Estimator]]] = {}
    aliases: ClassVar[tuple[str, ...]] = ()  # other names in the papers
    variants: ClassVar[Variants] = {}  # names in the papers that also say a setting, and which
    paper: ClassVar[str] = ""  # reference; an estimator with a task that names one is in the catalogue
    task: ClassVar[str] = ""  # "classification", "regression" or "novelty detection": its face knows
    cost: ClassVar[str] = ""  # of one round
    words: ClassVar[dict[str, str]] = {}  # fields of parts that go by another name here: "Gradient.radius": "R"
    online: ClassVar[bool] = True  # does it learn from a stream?
    river_kind: ClassVar[str] = ""  # the class of river.base it stands for
    _learned: ClassVar[tuple[str, ...]] = (
        *("_learner", "_recipe", "_run", "_columns", "_targets", "_declared"),
        *("classes_", "n_features_in_", "feature_names_in_"),
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        if cls.paper and cls.task:
            taken = Estimator.registry.get(cls.__name__)
            if taken is not None and taken.__module__ != cls.__module__:  # files know algorithms by name alone
                raise TypeError(f"there is a {cls.__name__} in {taken.__module__}: choose another name")
            Estimator.registry[cls.__name__] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if "river.base" in sys.modules and cls.river_kind:  # onkel itself never imports river
            getattr(sys.modules["river.base"], cls.river_kind).register(cls)
        self: Self = super().__new__(cls)
        return self

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        """A learner for this recipe; `run` says which rows are to come."""
        raise NotImplementedError

    # -- parameters

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:  # scikit-learn reads the signature anew each time
        return sorted(field.name for field in fields(cls))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__gamma` and the like replace the part by one with that field changed."""
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
        """What the word in field `name` stands for."""
        word = getattr(self, name)
        if not isinstance(word, str) or word not in options:
            words = ", ".join(map(repr, options))
            raise ValueError(f"{type(self).__name__}.{name} must be one of {words}, got {word!r}")
        return options[word]

    def _loss(self) -> Loss:
        """What the field `loss` stands for; a named one has the tube of the field `epsilon`, if there is one."""
        return as_loss(self.loss, self.task, epsilon=getattr(self, "epsilon", None))

    # -- the learner's life

    @property
    def _started(self) -> bool:
        return "_learner" in self.__dict__

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    def _forget(self) -> None:
        for name in self._learned:
            self.__dict__.pop(name, None)

    def _become(self, fresh: Self) -> Self:
        """Take over what another learned; so a fit that fails leaves this one as it was."""
        self._forget()
        self.__dict__.update({name: value for name, value in vars(fresh).items() if name in self._learned})
        return self

    def _fresh(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def _make(self, outputs: int, run: Mapping[str, Any]) -> Any:
        """An engine for the recipe this run began with; refuses bad parameters in this algorithm's words."""
        recipe = self.__dict__.get("_recipe", self)
        jobs = self.n_jobs
        if jobs is not None and (not isinstance(jobs, (int, np.integer)) or isinstance(jobs, bool) or jobs == 0):
            raise ValueError(f"{type(self).__name__}.n_jobs must be None or an integer other than 0, got {jobs!r}")
        try:
            return recipe._engine(run, outputs, self._keys(run["columns"]))
        except ValueError as error:
            raise ValueError(self._in_own_words(str(error))) from error

    def _check_params(self) -> None:
        """Refuse parameters that make no learner."""
        self._make(1, {"columns": 1, "dtype": "float64", "sparse": False, "seed": 0})

    def _in_own_words(self, message: str) -> str:
        """`Gradient.radius must be ...` is `KLRSGDClassifier.R must be ...` to its user."""
        part, dot, rest = message.partition(".")
        field, _, told = rest.partition(" ")
        word = self.words.get(f"{part}.{field}", field)
        known = dot and part.isidentifier() and word in self.get_params(deep=False)
        return f"{type(self).__name__}.{word} {told}" if known else f"{type(self).__name__}: {message}"

    def _keys(self, columns: int, new: list[Any] | None = None) -> Array:
        """A number for each feature: from its name, or its column where there are none."""
        known = self._known_names()
        names = [*(known.names if known else []), *(new or [])]
        return keys_of(names) if names else np.arange(max(columns, getattr(self, "n_features_in_", 0)), dtype=np.uint64)

    def _begin(self, outputs: int, X: Any, new: list[Any] | None) -> None:
        """Begin on first sight of checked examples; `new` are the names that come with them (None: no names)."""
        if not self._started:
            seed = self.random_state
            if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
                seed = check_random_state(seed).randint(2**31)
            run = {"columns": X.shape[1], "dtype": X.dtype.name, "sparse": hasattr(X, "indptr"), "seed": int(seed)}
            self._learner = self._make(outputs, run)
            self._recipe, self._run = self._fresh(), run
        if new is None or not self._is_news(new):
            return
        self._learner.widen(self._keys(self._run["columns"], new))
        self._columns = self._known_names() or Columns()
        self._columns.add(new)
        self.n_features_in_ = len(self._columns)
        self.__dict__.pop("feature_names_in_", None)

    def widen(self, columns: int) -> Self:
        """Make room for further columns without names; examples so far had zeros there."""
        check_is_fitted(self)
        if self._known_names() is not None:
            raise ValueError("this model knows its columns by name: new names make room for themselves")
        if columns > self.n_features_in_:
            self._learner.widen(np.arange(columns, dtype=np.uint64))
            self.n_features_in_ = columns
        return self

    def _is_news(self, new: list[Any] | None) -> bool:
        """Do these names, that came with an example, change what is known of the columns?"""
        return new is not None and (bool(new) or "_columns" not in self.__dict__)

    def _refuse_too_large(self, X: Any) -> None:
        """Refuse rows whose k(x, x) overflows, before anything is learned."""
        reach = self._learner.reach if self._started else math.inf
        if reach < math.inf and not border.largest(X) * X.shape[1] < reach:
            self._learner.check(X)
        recipe = self.__dict__.get("_recipe", self)
        bound = None  # a row that is larger than any of these: the sum over its features is
        try:
            kernels = recipe._pool(self._run["columns"] if self._started else X.shape[1])
        except ValueError as error:
            raise ValueError(self._in_own_words(str(error))) from error
        for kernel in kernels:
            if kernel.bounded:
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                bound = np.array([[border.largest(X) * math.sqrt(X.shape[1])]]) if bound is None else bound
                if np.isfinite(kernel.diagonal(bound)).all():
                    continue
                diagonal = kernel.diagonal(X.astype(np.float64))
            if not np.isfinite(diagonal).all():
                at = int(np.argmin(np.isfinite(diagonal)))
                raise ValueError(
                    f"row {at}: k(x, x) is {diagonal[at]}; its values are too large for {kernel!r}: scale the features"
                )

    def _pool(self, columns: int) -> tuple[Kernel, ...]:
        """Its kernels, for that number of columns."""
        raise NotImplementedError

    # -- examples coming in

    def _rows(self, X: Any, first: bool = False) -> Any:
        """Check a matrix or a frame against the columns known (`first`: take them from it)."""
        if not first and self._is_plain(X):
            border.refuse_non_finite(X)
            return X
        columns: Columns | None = self.__dict__.get("_columns")
        if columns is not None and not first:
            if border.is_frame(X):
                return self._cast(columns.select(X))
            X = self._cast(border.as_rows(X))
            if X.shape[1] != len(columns):
                raise ValueError(f"X has {X.shape[1]} features, but this model knows {len(columns)} by name")
            return X
        dtype = [np.float64, np.float32] if first else self._run["dtype"]
        form = {"accept_sparse": border.SPARSE, "dtype": dtype, "order": "C", "ensure_all_finite": False}
        border.refuse_strange(X, "X")
        # a value too large for float32 is refused below, with its place
        with np.errstate(over="ignore"), border.naming_columns(X):
            X = validate_data(self, X, reset=first, **form)
        return border.settle(X)

    def _is_plain(self, X: Any) -> bool:
        """Is it an array that needs no conversion, and are there no names to compare?"""
        return (
            type(X) is np.ndarray
            and X.dtype is self._learner.dtype
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and not hasattr(self, "feature_names_in_")
        )

    def _named(self, x: Any) -> tuple[Any, list[Any]]:
        """Check a dictionary or a frame to learn from: its rows, and the names that are new."""
        known = self._names()
        if isinstance(x, Mapping):
            new = known.unknown(x)
            return self._cast(known.rows(x, new)), new
        new = known.unknown(getattr(x, "columns", ()))
        return self._cast(known.select(x, new)), new

    def _names(self) -> Columns:
        names = self._known_names()
        if names is None:
            raise ValueError("this model was trained on unnamed columns: give it arrays, not names")
        return names

    def _cast(self, X: Any) -> Any:
        """The rows in the type this run is in; what does not fit in it is refused."""
        if not self._started or X.dtype == self._learner.dtype:
            return X
        with np.errstate(over="ignore"):
            X = X.astype(self._learner.dtype)
        border.refuse_non_finite(X)
        return X

    def _incoming(self, x: Any) -> tuple[Any, list[Any] | None]:
        """Check one example to learn from: a dictionary or an array row."""
        x = border.as_example(x, self._known_names())
        if isinstance(x, Mapping):
            return self._named(x)
        return self._rows(x, first=not self._started), None

    # What the engine can read as it is, it also checks, in no time.

    def _learned_as_it_is(self, x: Any, target: float, weight: Any) -> bool:
        """Learn from an array row or a dictionary, once something was learned; False: nothing was done."""
        learner = self._learner
        if type(weight) is not float or not abs(target) <= sys.float_info.max:
            return False
        if type(x) is dict and "_columns" in self.__dict__:
            return bool(learner.learn_named(x, self._columns.index, target, weight))
        if type(x) is np.ndarray and x.dtype is learner.dtype and x.ndim == 1:
            learner.learn_one(x, target, weight)
            return True
        return False

    def _scores_of(self, x: Any) -> Any:
        """The scores of one example."""
        learner = self._learner
        if type(x) is np.ndarray and x.dtype is learner.dtype and x.ndim == 1:
            return learner.score_one(x)
        if type(x) is dict and "_columns" in self.__dict__:
            scores = learner.score_named(x, self._columns.index)
            if scores is not None:
                return scores
        return self._scores(self._one(x))[0].tolist()

    def _one(self, x: Any) -> Any:
        """Check one example to predict."""
        x = border.as_example(x, self._known_names())
        return self._cast(self._names().rows(x)) if isinstance(x, Mapping) else self._rows(x)

    def _known_names(self) -> Columns | None:
        """Names of the features; None if it learned from arrays without any."""
        if "_columns" in self.__dict__:
            return self._columns
        if hasattr(self, "feature_names_in_"):
            return Columns(list(self.feature_names_in_))
        return None if self._started else Columns()

    def _scores(self, X: Any, output: str | None = None) -> Array:
        if output not in (None, "last", "average"):
            raise ValueError(f'output must be "last" or "average", got {output!r}')
        if output == "average" and not self._learner.average:
            raise ValueError('output="average" needs a model made with average=True')
        average = None if output is None else output == "average"
        jobs, n = effective_n_jobs(self.n_jobs), X.shape[0]
        if jobs == 1 or n < 1000 * jobs:
            scores: Array = self._learner.scores(X, average)
            return scores
        cuts = np.linspace(0, n, jobs + 1).astype(int)
        with ThreadPoolExecutor(jobs) as pool:
            return np.concatenate(list(pool.map(lambda a, b: self._learner.scores(X[a:b], average), cuts, cuts[1:])))

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
        dead = self._learner.state().get("dead.born", ()) if self._learner.average == "all" else ()
        return int(self._learner.n) + len(dead)

    @property
    def support_vectors_(self) -> Any:
        """The stored examples (terms, features), in the order they entered."""
        return self._terms()[0]

    @property
    def coef_(self) -> Array:
        """Weights (outputs, features) of the explicit features of the function that `predict` uses."""
        check_is_fitted(self)
        state = self._learner.state()
        if "weights.coef" not in state:
            raise AttributeError(f"{type(self).__name__} has no explicit features: see dual_coef_")
        if not self._learner.average:
            return np.asarray((state["weights.coef"] * state["weights.scale"]).T)
        total = state["weights.coef"] * state["weights.cumulative"] + state["weights.base"]
        return np.asarray(total.T / max(int(state["t"]), 1))

    @property
    def dual_coef_(self) -> Array:
        """Coefficients (outputs, terms) of the function that `predict` uses."""
        return self._terms()[1].T

    @property
    def engine_(self) -> str:
        """What it runs on: "native" or "python"."""
        check_is_fitted(self)
        return str(self._learner.engine)

    def _terms(self) -> tuple[Any, Array]:
        check_is_fitted(self)
        state, average = self._learner.state(), self._learner.average
        if "basis.coef" not in state:
            raise AttributeError(f"{type(self).__name__} has no terms: see coef_")
        coef = state["basis.coef"] * state["scale"]
        if average:
            coef = (state["basis.coef"] * state["cumulative"] + state["basis.base"]) / max(int(state["t"]), 1)
        x, born = _stored(state, "basis", self.n_features_in_), state["basis.born"][:, 0]
        if average == "all" and len(state["dead.born"]):
            dead = _stored(state, "dead", self.n_features_in_)
            x = sp.vstack([x, dead], format="csr") if sp.issparse(x) else np.vstack([x, dead])
            coef = np.vstack([coef, state["dead.coef"] / max(int(state["t"]), 1)])
            born = np.concatenate([born, state["dead.born"][:, 0]])
        order = np.argsort(born, kind="stable")
        return x[order], coef[order]

    # -- state: one pair behind save, load, pickle and copy

    def state(self) -> tuple[State, dict[str, Any]]:
        """Everything there is to know: arrays, and a config of plain data."""
        arrays, run = self._run_state()
        config = {"algorithm": type(self).__name__, "params": self._plain_params(run), "run": run}
        if run is not None:
            run["params"] = self._recipe._plain_params(run)
        return arrays, config

    def _plain_params(self, run: dict[str, Any] | None) -> dict[str, Any]:
        params = self.get_params(deep=False)
        if run is not None and not isinstance(params["random_state"], (int, np.integer, type(None))):
            params["random_state"] = run["seed"]  # a generator cannot be written; the run goes on from its seed
        return {name: _to_plain(value) for name, value in params.items()}

    def _run_state(self) -> tuple[State, dict[str, Any] | None]:
        if not self._started:
            return {}, None
        run = self._run | {"outputs": self._learner.outputs, "n_features": self.n_features_in_}
        if "_columns" in self.__dict__:
            run["names"] = [to_plain(name) for name in self._columns.names]
        if hasattr(self, "feature_names_in_"):
            run["feature_names"] = [str(name) for name in self.feature_names_in_]
        return self._learner.state(), run

    def _restore_run(self, arrays: State, run: dict[str, Any] | None, recipe: Estimator) -> None:
        self._forget()
        if run is None:
            return
        whole = all(type(run[name]) is int for name in ("columns", "n_features", "outputs"))
        if (
            run["dtype"] not in ("float32", "float64")
            or not whole
            or not 0 <= run["columns"] <= max(run["n_features"], 1)
        ):
            raise ValueError(
                f"its dtype {run['dtype']!r} or numbers of features {run['columns']}, {run['n_features']} are wrong"
            )
        if type(run["seed"]) is not int:
            raise ValueError(f"seed must be an integer, got {run['seed']!r}")
        self._recipe = recipe
        self._run = {name: run[name] for name in ("columns", "dtype", "sparse", "seed")}
        self.n_features_in_ = run["n_features"]
        if "names" in run:
            self._columns = Columns([from_plain(name) for name in run["names"]])
        if "feature_names" in run:
            self.feature_names_in_ = np.array(run["feature_names"], dtype=object)
        self._learner = self._make(run["outputs"], self._run)
        self._learner.restore(arrays)
        budget = getattr(recipe, "budget", None) if isinstance(recipe, OneKernel) else None
        if arrays["t"] < 0 or self._learner.n > (math.inf if budget is None else budget):
            raise ValueError("it has learned a negative number of rounds, or holds more terms than its budget")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; `onkel.load` reads it and goes on exactly where it stopped."""
        self._fresh()._check_params()
        write(path, *self.state())

    def __getstate__(self) -> dict[str, Any]:
        fields = {name: value for name, value in self.__dict__.items() if name not in self._learned}
        return {"fields": fields, "run": self._run_state(), "recipe": self.__dict__.get("_recipe")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["fields"])
        arrays, run = state["run"]
        self._restore_run(arrays, run, state["recipe"])

    # -- river's protocol: what its base classes would provide

    _supervised: ClassVar[bool] = True
    _is_stochastic: ClassVar[bool] = False  # random_state has a default
    _mutable_attributes: ClassVar[frozenset[str]] = frozenset()

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A fresh model with the same parameters; with `include_attributes` what was learned comes along."""
        if include_attributes and not new_params:
            return copy.deepcopy(self)
        return type(self)(**(copy.deepcopy(self.get_params(deep=False)) | (new_params or {})))

    def mutate(self, new_attrs: dict[str, Any]) -> None:
        """River's in-place change of attributes; here none is mutable."""
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
        return sum(array.nbytes for array in self._run_state()[0].values()) + sys.getsizeof(vars(self))

    # -- scikit-learn's tags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OneKernel(Estimator):
    """Algorithms with one kernel.

    Parameters
    ----------
    kernel : an object of onkel.kernels, or its name
    average : False; True or "all": score with the average of the models before each round (see Learner)
    random_state, n_jobs : see Estimator
    """

    kernel: Kernel | str = "gaussian"
    average: bool | str = False

    def parts(self, kernel: Kernel) -> Parts:
        """The recipe: hypothesis, loss and update of this algorithm."""
        raise NotImplementedError

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        hypothesis, loss, update = self.parts(*self._pool(run["columns"]))
        learner = Learner(hypothesis, loss, update, outputs=outputs, average=self.average, keys=keys, **run)
        return native.engine(learner)

    def _pool(self, columns: int) -> tuple[Kernel, ...]:
        return (as_kernel(self.kernel).resolve(columns),)

    @property
    def kernel_(self) -> Kernel:
        """The kernel with "auto" resolved."""
        check_is_fitted(self)
        return self._recipe._pool(self._run["columns"])[0]


def _stored(state: State, prefix: str, columns: int) -> Any:
    """The examples of a table in a state, as an array or a CSR matrix."""
    if f"{prefix}.x" in state:
        return state[f"{prefix}.x"]
    indptr = state[f"{prefix}.indptr"]
    parts = (state[f"{prefix}.data"], state[f"{prefix}.indices"], indptr)
    return sp.csr_array(parts, shape=(len(indptr) - 1, columns))


def _to_plain(value: Any) -> Any:
    """A parameter as JSON data; an estimator as its name and parameters."""
    if isinstance(value, Estimator):
        return {"algorithm": type(value).__name__, "params": value._plain_params(None)}
    return to_plain(value)


def _from_plain(params: dict[str, Any]) -> dict[str, Any]:
    """The inverse, for all parameters of an estimator."""

    def read(value: Any) -> Any:
        if isinstance(value, Mapping) and "algorithm" in value:
            return _known(value["algorithm"])(**_from_plain(value["params"]))
        return from_plain(value)

    return {name: read(value) for name, value in params.items()}


def _known(name: str) -> type[Estimator]:
    """The estimator of that name."""
    if name not in Estimator.registry:
        raise ValueError(
            f"{name!r} is unknown: import the module that defines it first "
            "(a class of your own is known once it states its `paper`)"
        )
    return Estimator.registry[name]


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote; it warns if the file also says how examples become its features."""
    arrays, config = read(path)
    model = restored(path, arrays, config)
    beside = config.get("follower") or {}
    if beside.get("scale") or beside.get("goal") or beside.get("schema", {}).get("features"):
        warnings.warn(
            f"{os.fspath(path)} also holds a scale or columns, which the model alone does not apply: its features and "
            "targets are as they were learned; onkel.follower.Follower.load takes them as they are in the stream",
            stacklevel=2,
        )
    return model


def restored(path: str | os.PathLike[str], arrays: State, config: dict[str, Any]) -> Any:
    """The model of a file that was read."""
    try:
        cls = _known(config["algorithm"])
        model, run = cls(**_from_plain(config["params"])), config["run"]
        model._check_params()
        model._restore_run(arrays, run, model if run is None else cls(**_from_plain(run["params"])))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} does not hold a model this onkel can use: {error}") from error
    return model
