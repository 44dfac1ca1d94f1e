"""Solving with the kernel matrix K of the terms while terms are added and removed.

`Factor` keeps the Cholesky factor L of K = L L'. On slowly moving inputs K is nearly singular: an explicitly
updated K^-1 can then have errors of order 1, while solves with L leave residuals near machine precision. If the
diagonal of K^-1 is needed (for the distance of each term to the span of the others), L^-1 is kept, too. Its accuracy
matters less, because it is only used to choose a term.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from onkel.core import soundness

Array = np.ndarray[Any, np.dtype[Any]]

DEPENDENT = 1e-10  # a squared distance to the span, relative to k(x, x), that counts as zero
RIDGE = 1e-15  # added to the diagonal of K, relative to it: more would show in scores, less lets solutions grow large


class Factor:
    """The Cholesky factor of the kernel matrix of the terms. Vectors passed in or out are in the order of slots: slot i
    is row i of the table of stored examples.

    `dependent` is used in place of DEPENDENT: 0 if K includes a ridge, which makes all terms independent.
    """

    def __init__(self, inverse: bool = False, dependent: float = DEPENDENT) -> None:
        self.dependent = dependent
        self.L: Array = np.zeros((0, 0))  # rows in the order in which the terms entered
        self.W: Array | None = np.zeros((0, 0)) if inverse else None  # L^-1
        self.slots = np.zeros(0, dtype=np.int64)  # the slot of each row of L
        self.removals = 0  # since L was last computed from K

    def __len__(self) -> int:
        return len(self.L)

    def project(self, k: Array, kxx: float) -> tuple[Array, float]:
        """The coefficients d = K^-1 k of an example's projection on the terms, and its squared distance to their span.

        A distance of the size of rounding counts as 0: the example depends linearly on the terms.
        """
        u, distance2 = self._forward(k, kxx)
        return self._by_slot(triangular(self.L, u, lower=True, transposed=True)), distance2

    def _forward(self, k: Array, kxx: float) -> tuple[Array, float]:
        u = triangular(self.L, k[self.slots], lower=True)
        distance2 = kxx - float(u @ u)
        return u, distance2 if distance2 > self.dependent * kxx else 0.0

    def append(self, k: Array, kxx: float) -> None:
        """Add a term at the next slot; it must not depend linearly on the others."""
        u, distance2 = self._forward(k, kxx)
        n, distance = len(self), np.sqrt(distance2 + RIDGE * kxx)
        if self.W is not None:
            d = triangular(self.L, u, lower=True, transposed=True)
            self.W = _bordered(self.W, -d / distance, 1 / distance)
        self.L = _bordered(self.L, u, distance)
        self.slots = np.append(self.slots, n)

    def remove(self, slot: int) -> None:
        """Remove the term in a slot; the last one takes its place."""
        n, p = len(self), self._place(slot)
        others = np.delete(np.arange(n), p)
        x = self.L[p + 1 :, p].copy()
        self.L = self.L[np.ix_(others, others)]
        for j in range(n - 1 - p):  # rank-one update L L' + x x' of the rows below p
            column = self.L[p + j :, p + j]
            r = np.hypot(column[0], x[j])
            c, s = column[0] / r, x[j] / r
            column[:], x[j:] = c * column + s * x[j:], c * x[j:] - s * column
        if self.W is not None:
            self._rotate(p, others)
        self.slots = self.slots[others]
        self.slots[self.slots == n - 1] = slot
        self.removals += 1

    def _rotate(self, p: int, others: Array) -> None:
        """Remove term p from L^-1: rotate its rows until column p is 0 except in the last row, and drop both."""
        W = self._inverse()
        carry = W[p].copy()
        for r in range(p, len(W) - 1):
            h = np.hypot(carry[p], W[r + 1, p])
            c, s = W[r + 1, p] / h, carry[p] / h
            W[r], carry = s * W[r + 1] - c * carry, s * carry + c * W[r + 1]
        self.W = W[:-1][:, others]

    def _inverse(self) -> Array:
        """L^-1; needs `inverse=True`."""
        assert self.W is not None
        return self.W

    def diagonal(self) -> Array:
        """K^-1[i, i] by slot: 1 / the squared distance of term i to the span of the others."""
        return self._by_slot(np.square(self._inverse()).sum(axis=0))

    def inverse(self) -> Array:
        """K^-1 by slot."""
        W, place = self._inverse(), np.argsort(self.slots)
        return np.asarray((W.T @ W)[np.ix_(place, place)])

    def inverse_columns(self, slots: Array) -> Array:
        """The columns of L^-1 (not of K^-1) that belong to these terms; their Gram matrix is K^-1[slots, slots]."""
        return np.asarray(self._inverse()[:, [self._place(slot) for slot in slots]])

    def refresh(self, matrix: Callable[[], Array]) -> None:
        """Compute L anew from K (by slot) after more removals than there are terms, and more than 100."""
        if self.removals <= max(len(self), 100):
            return
        self.removals = 0
        try:
            K = matrix()[np.ix_(self.slots, self.slots)]
            L = np.linalg.cholesky(K + RIDGE * np.diag(np.diag(K)))
        except np.linalg.LinAlgError:  # K is nearly singular: the updated factor is better than none
            return
        self.L = L
        if self.W is not None:
            self.W = triangular(L, np.eye(len(L)), lower=True)

    def _place(self, slot: int) -> int:
        return int(np.flatnonzero(self.slots == slot)[0])

    def _by_slot(self, values: Array) -> Array:
        out = np.empty(len(values))
        out[self.slots] = values
        return out

    # -- state

    def state(self, prefix: str) -> dict[str, Array]:
        """Everything, as plain arrays."""
        arrays = {"L": self.L, "W": self.W, "slots": self.slots, "removals": self.removals}
        return {f"{prefix}.{name}": np.array(value) for name, value in arrays.items() if value is not None}

    def check_state(self, state: dict[str, Array], prefix: str, n: int) -> None:
        """Raise ValueError if the state is not that of a factor of n terms."""
        slots = soundness.whole(state, f"{prefix}.slots", (n,))
        soundness.require(f"{prefix}.slots", np.sort(slots) == np.arange(n), f"each of 0 to {n - 1} once")
        for name in ("L", "W") if self.W is not None else ("L",):
            diagonal = np.diag(soundness.shaped(state, f"{prefix}.{name}", (n, n)))
            soundness.require(f"{prefix}.{name}", diagonal > 0, "a matrix with a positive diagonal")
        soundness.require(f"{prefix}.removals", soundness.whole(state, f"{prefix}.removals") >= 0, ">= 0")

    def restore(self, state: dict[str, Array], prefix: str) -> None:
        """The inverse of `state`."""
        self.L, self.slots = state[f"{prefix}.L"].astype(np.float64), state[f"{prefix}.slots"].astype(np.int64)
        if self.W is not None:
            self.W = state[f"{prefix}.W"].astype(np.float64)
        self.removals = int(state[f"{prefix}.removals"])


def triangular(A: Array, b: Array, *, lower: bool = False, transposed: bool = False) -> Array:
    """The solution x of A x = b, or of A' x = b if `transposed`, where A is triangular.

    As scipy.linalg.solve_triangular, but called in every round: without its checks and its estimate of the condition.
    """
    if b.size == 0:
        return b
    # LAPACK reads columns, so a matrix stored by rows is the transposed one with the other triangle.
    if A.flags.f_contiguous:
        x, info = dtrtrs(A, b, lower=lower, trans=transposed)
    else:
        x, info = dtrtrs(A.T, b, lower=not lower, trans=not transposed)
    if info:
        raise np.linalg.LinAlgError(f"the triangular matrix is singular: its diagonal is 0 in row {info - 1}")
    return np.asarray(x)


def _bordered(A: Array, row: Array, corner: float) -> Array:
    n = len(A)
    wider = np.zeros((n + 1, n + 1))
    wider[:n, :n], wider[n, :n], wider[n, n] = A, row, corner
    return wider
