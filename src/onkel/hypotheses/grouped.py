"""Groups: one function per kernel, all on the same stored examples, coupled by a norm over the kernels.

f(x) = sum_j weight_j f_j(x),  f_j = sum_i coef_ij k_j(x_i, .) in the space of kernel j

All f_j have the same stored examples, so kernels with the same `pair` share its sums over features. A `Grouping`
selects kernels by the RKHS norms |f_j|: it weights the f_j in the score (`DualNorm`), or shrinks each f_j after a
round, to zero if its norm is small (`Proximal`).
"""

from __future__ import annotations

import math
from functools import cache
from itertools import islice
from typing import Any, Self

import numpy as np

from onkel.core import soundness
from onkel.core.basis import Basis, Pair, Row, State, Totals, rows, rows_between, rows_of
from onkel.core.errors import Diverged, TooLarge
from onkel.core.outputs import Joining
from onkel.core.part import Memory, Part, Words
from onkel.core.run import Run
from onkel.hypotheses.base import Hypothesis, Stored
from onkel.hypotheses.terms import OnBasis, kernel_row
from onkel.kernels import Gaussian, Kernel, Linear
from onkel.updates.base import Round, Step, Update, along

Array = np.ndarray[Any, np.dtype[Any]]


class Grouping(Part):
    """How the norms |f_j| select kernels. In this base class they do not: f is the sum of the f_j."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)

    def weights(self, lengths: Array) -> Array:
        """The weight of each f_j in the score."""
        return np.ones(len(lengths))

    def factors(self, lengths: Array, t: int) -> Array | None:
        """The factors by which the f_j are multiplied at the end of round t; None: no change."""
        return None


class DualNorm(Grouping):
    """weight_j = (1/q) (|f_j| / |f|_q)^(q - 2), with |f|_q the q-norm of the |f_j|, q = max(2, 2 ln m), m kernels.

    Steps change the f_j, which are the dual variables. Scores are computed from the primal variables weight_j f_j, the
    gradient of |f|_q^2 / (2 q) with respect to f_j.
    """

    @staticmethod
    def order(kernels: int) -> float:
        """q for this number of kernels."""
        return max(2.0, 2 * math.log(kernels))

    def weights(self, lengths: Array) -> Array:
        if not lengths.any():
            return np.zeros(len(lengths))
        q, b = self.order(len(lengths)), lengths / lengths.max()
        return np.asarray((b / np.sum(b**q) ** (1 / q)) ** (q - 2) / q)


class Proximal(Grouping):
    """The proximal step of c/2 (sum_j |f_j|)^2 (`squared`), or of c sum_j |f_j|, with c = lam eta / sqrt(t).

    f_j <- max(0, 1 - th / |f_j|) f_j. Not squared: th = c. Squared: th = th_r = c / (1 + r c) times the sum of the r
    largest norms, where r is the largest number for which the r-th largest norm exceeds th_r.
    """

    eta: float = 0.1
    lam: float = 0.0
    squared: bool = True

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.2, 5.0), cls(0.2, 0.2, squared=False)

    def __post_init__(self) -> None:
        self._positive("eta")
        self._nonnegative("lam")
        self._finite("eta", "lam")
        self._boolean("squared")

    def factors(self, lengths: Array, t: int) -> Array | None:
        c = self.lam * self.eta / math.sqrt(t)
        threshold = c
        if self.squared:
            down = np.sort(lengths)[::-1]
            thresholds = c / (1 + c * np.arange(1, len(down) + 1)) * np.cumsum(down)
            above = np.flatnonzero(down > thresholds)
            threshold = thresholds[above[-1]] if len(above) else 0.0
        left = np.maximum(0.0, lengths - threshold)
        return np.divide(left, lengths, out=np.zeros(len(lengths)), where=lengths > 0)


class DualStep(Update):
    """f_j <- f_j - min(w, 1 - margin / bound) * slope * k_j(x, .), for the hinge loss max(0, 1 - margin).

    w is the sample weight. `bound` is an upper bound on the squared q-norm of the numbers sqrt(k_j(x, x)) of an
    example: m^(2 / q) for m kernels with k_j(x, x) <= 1.
    """

    bound: float = 1.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.5)

    def __post_init__(self) -> None:
        self._positive("bound")

    @property
    def needs(self) -> Words:
        return super().needs | {"hinge at 1"}

    def step(self, round: Round, memory: Memory) -> Step:
        return 1.0, along(round.slope, min(round.weight, 1 - (1 - round.loss) / self.bound))


class GroupedExpansion(Hypothesis):
    """f = sum_j weight_j f_j, f_j = sum_i coef_ij k_j(x_i, .).

    A new term has the same coefficient in every kernel; the grouping may then shrink each f_j by its own factor.
    With `normalize`, each kernel is replaced by k_j(x, z) / sqrt(k_j(x, x) k_j(z, z)).
    """

    kernels: tuple[Kernel, ...] = (Gaussian(),)
    grouping: Grouping = DualNorm()
    normalize: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        kernels = (Gaussian(0.7), Linear())
        return cls(kernels), cls(kernels, Proximal(0.2, 0.2)), cls((*kernels, Gaussian(2.0)), normalize=True)

    def __post_init__(self) -> None:
        self._boolean("normalize")

    def start(self, run: Run) -> Groups:
        return Groups(self, run)

    def check_state(self, state: State, run: Run) -> None:
        self.start(run).check_state(state)

    # -- what is in a state

    def shares(self, state: State) -> Array:
        """share_ij of term i in kernel j, of shape (terms, kernels); see `Groups`."""
        return np.asarray(state["basis.share"])

    def lengths(self, state: State) -> Array:
        """|f_j| of each kernel."""
        return np.sqrt(state["groups.norm2"])

    def kernel_weights(self, state: State) -> Array:
        """The weight of each kernel in the score."""
        return self.grouping.weights(self.lengths(state))

    def terms(self, state: State, run: Run) -> Stored:
        """The terms, with coefficients of shape (terms, kernels, outputs)."""
        factor = self.kernel_weights(state) * state["groups.scale"] * self.shares(state)
        coef = factor[:, :, None] * state["basis.coef"][:, None]
        return Stored(rows_of(state, "basis", run.columns), coef, state["basis.born"][:, 0])

    def relabel(self, state: State, joining: Joining) -> State:
        return joining.all({"basis.coef": "scores", "groups.norm2": "squared length"}, state)


class Groups(OnBasis):
    """f = sum_j weight_j f_j, f_j = scale_j sum_i share_ij coef_i k_j(x_i, .).

    share_ij scale_j is the factor by which f_j has been shrunk since term i entered; apart from it, a term has the same
    coefficient in all kernels. A kernel that was shrunk to zero has shares of exactly 0; a term whose shares are all 0
    is removed. |f_j|^2 is updated with each step, and rounding errors add up. So it is computed anew in the rounds
    4^5, 4^6, ..., which are so rare that this costs less than the rounds between them.
    """

    def __init__(self, hypothesis: GroupedExpansion, run: Run) -> None:
        super().__init__(run)
        self.kernels, self.grouping, self.normalize = hypothesis.kernels, hypothesis.grouping, hypothesis.normalize
        self._varied = np.array([not kernel.unit for kernel in self.kernels])  # k(x, x) is 1 for all others
        named = {"coef": run.outputs, "born": 1, "share": len(self.kernels)}
        if self.normalize:
            named["unit"] = len(self.kernels)
        self.basis = Basis(run.columns, run.dtype, run.sparse, named)
        self.scales, self.norm2 = np.ones(len(self.kernels)), np.zeros(len(self.kernels))

    @property
    def shares(self) -> Array:
        """share_ij of term i in kernel j, of shape (terms, kernels)."""
        return self.basis["share"]

    @property
    def lengths(self) -> Array:
        """|f_j|."""
        return np.sqrt(self.norm2)

    @property
    def weights(self) -> Array:
        """The weight of each kernel in the score."""
        return self.grouping.weights(self.lengths)

    # -- scoring

    def check(self, X: Any) -> None:
        if not self._varied.any():
            return
        for start in range(0, X.shape[0], 1024):  # many rows at once: a call checks all its rows before the first
            part = rows_between(X, start, start + 1024) if X.shape[0] > 1024 else X
            data = (part.data if hasattr(part, "indptr") else part).astype(np.float64)
            at = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) if hasattr(part, "indptr") else None

            def totals(pair: Pair, data: Array = data, at: Array | None = at, n: int = part.shape[0]) -> Array:
                return pair(data, data).sum(axis=1) if at is None else np.bincount(at, pair(data, data), n)

            fine = np.isfinite(self._values(totals, self._varied, part.shape[0])).all(axis=0)
            if not fine.all():
                i = int(np.argmin(fine))
                x = next(islice(rows(part), i, None))
                raise TooLarge("k(x, x) =", self._raw_diagonal(x).max(), "for the kernels", start + i)

    def row(self, x: Row) -> Array:
        """k_j(x_i, x), of shape (kernels, terms); 0 for kernels that were shrunk to zero."""
        alive = np.asarray(self.shares.any(axis=0))
        if not alive.any():
            return np.zeros((len(self.kernels), self.n))
        k = self._values(self.basis.totals(x), alive, self.n)
        return k * self._unit(x)[:, None] * self.basis["unit"].T if self.normalize else k

    def diagonal(self, x: Row) -> Array:
        """k_j(x, x)."""
        diagonal = self._raw_diagonal(x)
        return (diagonal > 0).astype(np.float64) if self.normalize else diagonal

    def _unit(self, x: Row) -> Array:
        """1 / sqrt(k_j(x, x)) of the kernels as given, before they are normalised; 0 where k_j(x, x) <= 0."""
        diagonal = self._raw_diagonal(x)
        return np.divide(1.0, np.sqrt(diagonal), out=np.zeros(len(diagonal)), where=diagonal > 0)

    def _raw_diagonal(self, x: Row) -> Array:
        diagonal, varied = np.ones(len(self.kernels)), self._varied
        if varied.any():
            values = self._values(lambda pair: np.atleast_1d(pair(x.values, x.values).sum()), varied, 1)
            diagonal[varied] = values[varied, 0]
        return diagonal

    def _values(self, totals: Totals, wanted: Array, count: int) -> Array:
        totals = cache(totals)  # kernels with the same `pair` share their sums
        values = np.zeros((len(self.kernels), count))
        for j in np.flatnonzero(wanted):
            values[j] = kernel_row(self.kernels[j], totals, count)
        return values

    def length2(self, x: Row, k: Array) -> float:
        return float(self.diagonal(x).max())

    def blocks(self, k: Array) -> Array:
        """f_j(x) from the kernel rows, of shape (kernels, outputs)."""
        return np.asarray(self.scales[:, None] * ((k * self.shares.T) @ self.coef))

    def scores(self, k: Array) -> Array:
        return np.asarray(self.weights @ self.blocks(k))

    # -- moving

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        if shrink != 1:
            self._shrink(np.full(len(self.kernels), shrink))
        if coef is not None:
            norm2 = self.norm2 + 2 * self.blocks(round.k) @ coef + (coef @ coef) * self.diagonal(round.x)
            if not np.isfinite(norm2).all():
                raise Diverged("the squared length of the model is", norm2.max())
            self.norm2 = np.maximum(norm2, 0.0)
            unit = self._unit(round.x) if self.normalize else 0.0
            self.basis.append(round.x, coef=coef, born=round.t, share=1 / self.scales, unit=unit)
        factors = self.grouping.factors(self.lengths, round.t)
        if factors is not None:
            self._shrink(factors)
        if shrink == 0 or (factors is not None and (factors == 0).any()):
            self._drop_empty()
        if round.t >= 4**5 and math.log2(round.t) % 2 == 0:
            self._measure()

    def _shrink(self, factors: Array) -> None:
        self.scales *= factors
        self.norm2 *= factors**2
        far = ~((self.scales > 1e-3) & (self.scales < 1e3))
        self.shares[:, far] *= self.scales[far]
        self.scales[far] = 1.0

    def _drop_empty(self) -> None:
        """Remove terms whose shares are all 0."""
        for i in np.flatnonzero(~self.shares.any(axis=1))[::-1]:
            self.basis.remove(i)

    def _measure(self) -> None:
        """Compute |f_j|^2 = sum_i coef_ij f_j(x_i) anew."""
        norm2 = np.zeros(len(self.kernels))
        for i in range(self.n):
            norm2 += self.shares[i] * (self.blocks(self.row(self.basis.row(i))) @ self.coef[i])
        self.norm2 = np.maximum(self.scales * norm2, 0.0)

    def widen(self, keys: Array) -> None:
        super().widen(keys)
        self.basis.widen(len(keys))

    # -- state

    def state(self) -> State:
        return self.basis.state("basis") | {"groups.scale": self.scales.copy(), "groups.norm2": self.norm2.copy()}

    def check_state(self, state: State) -> None:
        """Raise ValueError if the state is not that of such a function."""
        self.basis.check_state(state, "basis")
        soundness.nonnegative(state, "basis.share", "basis.unit", "groups.norm2")
        scales = soundness.shaped(state, "groups.scale", self.scales.shape)
        soundness.require("groups.scale", (scales > 1e-3) & (scales < 1e3), "between 0.001 and 1000")
        soundness.shaped(state, "groups.norm2", self.norm2.shape)
        soundness.coefficients("basis.coef", state["basis.coef"], 1.0)

    def restore(self, state: State) -> None:
        self.basis.restore(state, "basis")
        self.scales[:], self.norm2[:] = state["groups.scale"], state["groups.norm2"]
