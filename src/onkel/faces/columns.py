"""Columns: the features that a model knows, and the conversion of input to rows with these features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from onkel.core.growing import Growing
from onkel.core.limits import limits
from onkel.core.part import from_plain, to_plain
from onkel.faces import border
from onkel.maps import keys_of

Array = np.ndarray[Any, np.dtype[Any]]


class SparseRow(NamedTuple):
    """A CSR matrix of one row; to make a scipy matrix takes longer than to learn the row."""

    data: Array
    indices: Array
    shape: tuple[int, int]

    @property
    def indptr(self) -> Array:
        """Where the row starts and ends."""
        return np.array([0, len(self.data)])

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return self.data.dtype

    def copy(self) -> SparseRow:
        """No copy: a SparseRow is made for one call and never changed."""
        return self

    def astype(self, dtype: Any) -> SparseRow:
        """The row with values of another type."""
        return SparseRow(self.data.astype(dtype), self.indices, self.shape)


class Columns:
    """The number of columns, and their names if they have any.

    Columns without names are known by their position. Names from a frame given to `fit`, `partial_fit` or `learn` are
    fixed, as in scikit-learn, until `learn_one` (with a dictionary) or `learn_many` is called; from then on new names
    may be added. Names from dictionaries are in the order of their first appearance.

    Parameters
    ----------
    count : number of columns
    names : their names, or None
    grows : may new names be added?
    owner : name of the estimator, for messages
    """

    def __init__(self, count: int, names: list[Any] | None, grows: bool, owner: str) -> None:
        refuse_flood(count, names or ())
        self.count, self.names, self.grows, self.owner = count, names, grows, owner
        self.index = {name: i for i, name in enumerate(names or ())}
        self._keys = Growing(keys_of(names) if names else np.arange(count, dtype=np.uint64))

    def __len__(self) -> int:
        return self.count

    @classmethod
    def of(cls, X: Any, owner: str) -> tuple[Columns, Any]:
        """The columns of a first matrix or frame, and its rows; float32 and float64 are kept."""
        X, seen = _validated(X, owner, {}, [np.float64, np.float32])
        names = seen.get("feature_names_in_")
        return cls(X.shape[1], None if names is None else [str(name) for name in names], False, owner), X

    @property
    def keys(self) -> Array:
        """A number for each feature, made from its name, or its position if columns have no names.

        Without features there is one all the same: no engine is made without columns, and rows are 0 there.
        """
        return self.first_keys(self.count)

    def first_keys(self, count: int) -> Array:
        """The keys of the first `count` columns."""
        return self._keys.first(count).values if count else np.zeros(1, dtype=np.uint64)

    @property
    def fixed(self) -> list[str] | None:
        """The fixed names of a frame; None if columns have no names, or new ones may be added."""
        return None if self.grows else self.names

    # -- new columns

    def keys_with(self, more: Any) -> Growing:
        """The keys of these columns and of further ones: `more` are their names, or the number of unnamed ones."""
        if isinstance(more, int):
            refuse_flood(self.count + more, ())
            return self._keys.plus(np.arange(self.count, self.count + more, dtype=np.uint64))
        refuse_flood(self.count + len(more), more)
        return self._keys.plus(keys_of(more))

    def add(self, more: Any, keys: Growing) -> None:
        """Append columns; `keys` are those that `keys_with` returned for them."""
        if not isinstance(more, int):
            self.names = self.names or []
            self.index |= {name: self.count + i for i, name in enumerate(more)}
            self.names += more
        self.count, self._keys = keys.n, keys

    def open(self) -> Columns:
        """Columns with the same names, to which new ones may be added."""
        return self if self.grows else Columns(self.count, self.names and [*self.names], True, self.owner)

    def refuse_unnamed(self) -> None:
        """Raise ValueError if columns have no names."""
        if self.names is None:
            raise ValueError("this model was trained on unnamed columns: give it arrays, not names")

    def leave(self, count: int) -> None:
        """Remove the columns after the first `count` again."""
        if self.names is not None:
            for name in self.names[count:]:
                del self.index[name]
            del self.names[count:]
        self.count, self._keys = count, self._keys.first(count)

    def unknown(self, names: Any) -> list[Any]:
        """The names that are not yet known; raises ValueError for one that a model file could not hold."""
        new = [name for name in names if name not in self.index]
        for name in new:
            try:
                to_plain(name)
            except TypeError:
                said = f"{border.shortly(name)}, a {type(name).__name__}"
                raise ValueError(f"a feature is named {said}: name it by a text, a number or a tuple of them") from None
        return new

    # -- rows

    def matrix(self, X: Any, dtype: Any) -> Any:
        """Check a matrix or a frame; returns its rows in this type, with these columns."""
        if not self.grows:
            seen: dict[str, Any] = {"n_features_in_": self.count}
            if self.names is not None:
                seen["feature_names_in_"] = np.array(self.names, dtype=object)
            return _validated(X, self.owner, seen, dtype)[0]
        if border.is_frame(X):
            return cast(self.select(X), dtype)
        X = cast(border.as_rows(X), dtype)
        if X.shape[1] != self.count:
            raise ValueError(f"X has {X.shape[1]} features, but this model knows {self.count} by name")
        return X

    def example(self, x: Any, dtype: Any) -> Any:
        """Check one example to predict."""
        x = border.as_example(x, self.index)
        if isinstance(x, Mapping):
            self.refuse_unnamed()
            return cast(self.rows(x), dtype)
        return self.matrix(x, dtype)

    def rows(self, x: Mapping[Any, Any], new: list[Any] | tuple[Any, ...] = ()) -> SparseRow:
        """A dictionary as a sparse row, with `new` names after the known ones; other unknown names are left out."""
        found = sorted((self.index[name], name) for name in x if name in self.index)
        found += [(self.count + i, name) for i, name in enumerate(new)]
        numbers = [x[name] for _, name in found]
        for (_, name), number in zip(found, numbers, strict=True):
            if not border.is_numeric(number):
                raise ValueError(f"feature {name!r} is {border.shortly(number)}, not a number: encode it first")
        values = np.array([border.as_float(number) for number in numbers])
        if not np.isfinite(values).all():
            name = found[int(np.argmin(np.isfinite(values)))][1]
            got = f"feature {name!r} is {border.shortly(x[name])}"
            if isinstance(x[name], int):
                raise ValueError(f"{got}, too large for a floating point number: scale it")
            raise ValueError(f"{got}: onkel needs finite numbers; impute or leave it out")
        index = np.array([i for i, _ in found], dtype=np.int32)
        return SparseRow(values, index, (1, max(self.count + len(new), 1)))

    def select(self, X: Any, new: list[Any] | tuple[Any, ...] = ()) -> Any:
        """The columns of a frame in this order, then the `new` ones; missing ones are zero, unknown ones left out."""
        if not border.is_frame(X):
            raise ValueError(
                f"a frame with named columns is needed, got {type(X).__name__}: use partial_fit for arrays"
            )
        border.refuse_strange(X, "X")
        place = self.index | {name: self.count + i for i, name in enumerate(new)} if new else self.index
        known = [name for name in X.columns if name in place]
        table = border.as_rows(X[known])
        full = np.zeros((table.shape[0], max(len(place), 1)), table.dtype)
        full[:, [place[name] for name in known]] = table
        return full

    # -- plain data

    def plain(self) -> dict[str, Any]:
        """The columns as they are saved in a model file."""
        if self.names is None:
            return {"n_features": self.count}
        names = [to_plain(name) for name in self.names]
        return {"n_features": self.count, "names" if self.grows else "feature_names": names}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any], owner: str) -> Columns:
        """The inverse of `plain`."""
        names = data.get("names", data.get("feature_names"))
        count = data["n_features"]
        if type(count) is not int or not 0 <= count < 2**31 or (names is not None and len(names) != count):
            raise ValueError(f"its number of features {count!r} is wrong, or differs from the number of names")
        made = cls(count, None if names is None else [from_plain(n) for n in names], "names" in data, owner)
        if names is not None and len(made.index) != count:
            raise ValueError("two of its features have the same name")
        return made


def refuse_flood(count: int, names: Iterable[Any]) -> None:
    """Raise TooMany if there would be too many columns, or if a name is too long."""
    limits().check("features", count, "the number of features would be")
    longest = max((len(name) for name in names if isinstance(name, str)), default=0)
    limits().check("length", longest, "the length of a feature name is")


def cast(X: Any, dtype: Any) -> Any:
    """The rows in the model's dtype; raises ValueError for numbers that do not fit into it."""
    if X.dtype == dtype:
        return X
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    border.refuse_non_finite(X)
    return X


def _validated(X: Any, owner: str, seen: dict[str, Any], dtype: Any) -> tuple[Any, dict[str, Any]]:
    """The checked rows, and scikit-learn's attributes of their columns: `n_features_in_` and `feature_names_in_`.

    `seen` holds these attributes of the rows learned before, which X must match; it is empty if X comes first.
    """
    stand_in = _stand_in(owner)()
    vars(stand_in).update(seen)
    form = {"accept_sparse": border.SPARSE, "dtype": dtype, "order": "C", "ensure_all_finite": False}
    border.refuse_strange(X, "X")
    # no warning if a value is too large for float32: `settle` raises an error with its row and column
    with np.errstate(over="ignore"), border.naming_columns(X):
        X = validate_data(stand_in, X, reset=not seen, **form)
    return border.settle(X), vars(stand_in)


@cache
def _stand_in(owner: str) -> type:
    """An empty estimator class of this name: scikit-learn's checks store columns in it and name it in messages."""
    return type(owner, (BaseEstimator,), {})
