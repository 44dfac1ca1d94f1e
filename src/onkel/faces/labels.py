"""Labels: the classes that a model knows, and the numbers (targets) that stand for them in an engine."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from onkel.core.limits import limits
from onkel.faces import border

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_BYTES = 1 << 24  # of all labels in a file, as an array; more only if they are as long


class Labels:
    """The sorted classes; an object of this class never changes.

    With two classes the targets are -1 and +1, with more the indices 0, 1, ... of the classes. A class that is known
    alone is the first of two, with target -1: scores below 0 speak for it. If the second class comes before it in
    order, the signs of all scores change (`core.outputs`).

    Parameters
    ----------
    classes : labels of one kind, sorted
    declared : is the set closed? It is for boolean labels, and once a call was given the argument `classes`.
        Then a label in y that is not in the set is an error, and only this argument adds further labels
    """

    def __init__(self, classes: Array, declared: bool) -> None:
        refuse_flood(len(classes), classes)
        self.classes, self.declared = classes, declared
        # The target of a label is ranks[places[label]]. Places stay when other labels join, and the larger set shares
        # them. So a label that joins costs no pass over a dictionary.
        two = len(classes) <= 2
        self.names: list[Any] = classes.tolist()  # empty after a join, until they are `listed`
        self.places = {label: i for i, label in enumerate(self.names)}
        self.ranks = array("d", [2.0 * i - 1 if two else i for i in range(len(classes))])

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def outputs(self) -> int:
        """Number of scores."""
        return len(self) if len(self) > 2 else 1

    def target(self, y: Array) -> Array:
        """The targets of known labels."""
        if len(self) <= 2:
            return np.where(y == self.classes[-1], 1.0, -1.0) if len(self) == 2 else np.full(len(y), -1.0)
        return np.searchsorted(self.classes, y).astype(np.float64)

    def listed(self) -> list[Any]:
        """The classes as a list."""
        self.names = self.names or self.classes.tolist()
        return self.names

    def find(self, label: Any) -> float | None:
        """The target of a label; None if it is not known."""
        place = self.places.get(label, len(self.ranks))
        return self.ranks[place] if place < len(self.ranks) else None

    def joined_since(self, before: Labels) -> list[int] | None:
        """The positions of the labels that joined `before`; None if these are not `before` with labels that joined."""
        if self.places is not before.places or len(before) < 3:
            return None
        return sorted(int(rank) for rank in self.ranks[len(before) :])

    def _with(self, more: Array) -> Labels:
        """These labels, three or more, and further ones of their kind."""
        refuse_flood(len(self) + len(more), more)
        classes = self.classes.astype(np.result_type(self.classes, more), copy=False)
        at = np.searchsorted(classes, more)
        labels = Labels(self.classes[:0], self.declared)
        labels.classes = np.insert(classes, at, more)
        labels.ranks = array("d", self.ranks)
        ranks = np.frombuffer(labels.ranks)
        for place in reversed(at.tolist()):
            ranks += ranks >= place
        del ranks  # an array that is looked at cannot grow
        labels.ranks.extend((at + np.arange(len(at))).tolist())
        if len(self.places) > len(self.ranks):  # others joined these before, and were not learned
            self.places = dict(list(self.places.items())[: len(self.ranks)])
        labels.places = self.places
        self.places.update(zip(more.tolist(), range(len(self), len(labels)), strict=True))
        return labels

    def known(self, y: Array) -> Array | None:
        """The targets of labels of the same type that are all known, else None (then `joined` decides)."""
        classes = self.classes
        if y.dtype.kind != classes.dtype.kind or y.dtype.kind == "O":
            return None
        if len(classes) == 2:
            second = y == classes[1]
            return np.where(second, 1.0, -1.0) if (second | (y == classes[0])).all() else None
        at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if not (classes[at] == y).all():
            return None
        return np.full(len(y), -1.0) if len(classes) == 1 else at.astype(np.float64)

    def joined(self, y: Array, classes: Any = None) -> Labels:
        """These labels, `classes` and the labels of y.

        Raises ValueError if the set is closed (it was before, or `classes` is given) and y has a label not in it.
        """
        more = None if classes is None else np.unique(checked(classes, "classes"))
        return self._joined(distinct(y), more)

    @classmethod
    def first(cls, y: Array, classes: Any = None) -> Labels:
        """The labels of the first examples, or the declared `classes`."""
        seen = distinct(y)
        declared = None if classes is None else np.unique(checked(classes, "classes"))
        if declared is None and seen.dtype.kind == "b":
            declared = np.array([False, True])
        return cls(seen[:0], False)._joined(seen, declared)

    def _joined(self, seen: Array, more: Array | None) -> Labels:
        if more is None and not self.declared and len(self) > 2 and seen.dtype.kind == self.classes.dtype.kind:
            at = np.minimum(np.searchsorted(self.classes, seen), len(self) - 1)
            new = seen[self.classes[at] != seen]
            return self._with(new) if len(new) else self
        allowed = self.classes if more is None else _union(self.classes, more)
        closed = self.declared or more is not None
        new = allowed if closed else _union(allowed, seen)
        unknown = seen[~np.isin(seen, new)]
        if len(unknown) and new.dtype.kind == "b":
            raise ValueError(f"labels must be of one kind: {unknown.tolist()[0]!r} cannot be added to boolean labels")
        if len(unknown):
            raise ValueError(
                f"y contains the label {unknown.tolist()[0]!r}, which is not among the declared classes "
                f"{new.tolist()}: pass classes= with every label to come"
            )
        if closed == self.declared and np.array_equal(new, self.classes) and new.dtype == self.classes.dtype:
            return self
        return Labels(new, closed)

    # -- plain data

    def plain(self) -> dict[str, Any]:
        """The labels as they are saved in a model file."""
        classes = {"dtype": self.classes.dtype.str, "labels": self.classes.tolist()}
        return {"classes": classes, "declared": self.declared}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Labels:
        """The inverse of `plain`."""
        labels, dtype = data["classes"]["labels"], np.dtype(data["classes"]["dtype"])
        if not isinstance(labels, list) or not labels:
            raise ValueError("it has no classes")
        if dtype.kind not in "biufUO" or len(labels) * dtype.itemsize > max(_MOST_BYTES, 4 * len(str(labels))):
            raise ValueError(f"its classes have the type {dtype}, which labels cannot have")
        classes = checked(np.array(labels, dtype=dtype), "its classes")
        if classes.tolist() != labels or not np.array_equal(np.unique(classes), classes):
            raise ValueError(f"its classes {border.shortly(labels)} are not sorted, or not of the type {dtype}")
        if type(data["declared"]) is not bool:
            raise ValueError(f"'declared' must be true or false, got {border.shortly(data['declared'])}")
        return cls(classes, data["declared"])


def _union(old: Array, more: Array) -> Array:
    """The union of two sets of labels of one kind, sorted."""
    if len(old) == 0:
        return more
    if old.dtype.kind in "biuf" and more.dtype.kind in "biuf" and np.isin(more, old).all():
        return old  # 1 and 1.0 are one label
    if (old.dtype.kind in "OUS") != (more.dtype.kind in "OUS"):
        raise ValueError(f"labels must be of one kind: {more.tolist()[0]!r} cannot be added to {old.tolist()}")
    return np.union1d(old, more)


# -- input validation


def refuse_flood(count: int, labels: Array) -> None:
    """Raise TooMany if there would be too many classes, or if a label is too long."""
    limits().check("classes", count, "the number of classes would be")
    if labels.dtype.kind in "UO" and labels.size:
        longest = int(np.strings.str_len(labels).max()) if labels.dtype.kind == "U" else max(map(len, labels))
        limits().check("length", longest, "the length of a label is")


def as_labels(y: Any, X: Any) -> Array:
    """Class labels: one per row, all of one kind."""
    if type(y) is np.ndarray and y.dtype.kind in "biuU" and y.shape == X.shape[:1]:
        return y
    y = _as_they_are(y, "y")
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
    return _of_one_kind(y, "y")


def _as_they_are(labels: Any, name: str) -> Any:
    """A list as an array of objects if NumPy would convert numbers to strings or integers to floats."""
    border.refuse_masked(labels, name)
    if not isinstance(labels, (list, tuple)) or not labels:
        return labels
    types = {type(label) for label in labels}
    for label in labels if str in types else ():
        if isinstance(label, str) and label.endswith("\0"):
            raise ValueError(f"{name} contains {label!r}: NumPy drops NUL characters at the end; use another label")
    mixed = len(types) > 1 and len({_kind(label) for label in labels}) > 1
    if mixed or (types == {int} and max(map(abs, labels)) >= 2**63):
        objects = np.empty(len(labels), dtype=object)
        objects[:] = labels
        return objects
    return labels


def checked(labels: Any, name: str) -> Array:
    """Labels of one kind: numbers, strings or booleans, none of them missing."""
    return _of_one_kind(np.asarray(_as_they_are(labels, name)), name)


def _of_one_kind(y: Array, name: str) -> Array:
    if y.ndim != 1:
        raise ValueError(f"{name} must hold one label per example, got shape {y.shape}")
    if y.dtype.kind == "O":
        kinds = sorted({_kind(label) for label in y})
        if len(kinds) > 1 or kinds[0] not in ("str", "number", "bool"):
            at = next(
                (i for i, label in enumerate(y) if _kind(label) != "str" and str(label) in border.MISSING_AS_TEXT), None
            )
            if at is not None:
                raise ValueError(f"{name} contains {y[at]} in row {at}: drop or repair that label first")
            at = next((i for i, label in enumerate(y) if _kind(label) != _kind(y[0])), 0)
            wanted = f"{name} must hold labels of one kind (strings, numbers or booleans)"
            raise ValueError(f"{wanted}, got {kinds}: {y[at]!r} in row {at}")
        if kinds[0] != "str":
            y, given = np.array(y.tolist()), y
            at = next((i for i, label in enumerate(y.tolist()) if label != given[i]), None)
            if at is not None:
                said = border.shortly(given[at])
                raise ValueError(f"{name} contains {said} in row {at}, too large a number: use strings")
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            at = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"{name} contains NaN or infinity in row {at} ({y[at]}): drop or repair that label first")
        if (y != np.round(y)).any():
            at = int(np.argmax(y != np.round(y)))
            raise ValueError(
                f"Unknown label type: {name} holds continuous values ({y[at]} in row {at}); "
                "use a Regressor, or turn the target into classes"
            )
    elif y.dtype.kind not in "biuUO":
        raise ValueError(f"Unknown label type: {name} has dtype {y.dtype}; use strings, numbers or booleans")
    return y


def distinct(y: Array) -> Array:
    """The distinct labels, sorted; two classes, the usual case, need no sorting."""
    if y.dtype.kind in "biuf" and len(y):
        least, most = y.min(), y.max()
        if ((y == least) | (y == most)).all():
            return np.unique(np.array([least, most], dtype=y.dtype))
    return np.unique(y)


def _kind(label: Any) -> str:
    if isinstance(label, (bool, np.bool_)):
        return "bool"
    if isinstance(label, Real):
        return "number"
    return "str" if isinstance(label, str) else type(label).__name__
