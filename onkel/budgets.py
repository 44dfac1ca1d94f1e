"""Budgets: the way a new term enters an expansion.

`insert(f, round, coef, memory)` is called every round, after f was shrunk; `coef` is None when the update
offers no term. A budget may append, refuse, make room first, or rescale; it leaves at most `budget` terms.

`start(seed)` gives the memory a budget keeps between rounds; `columns` names values it wants stored beside
each term (one per output, divided by scale like the coefficients).

Where a rule says "the oldest among equals", values within a relative 1e-9 count as equal: in exact arithmetic
they often are, and rounding must not pick the victim.

In a pool with a common budget the round says how much `room` is left. Without any, a budget that `shares` removes one
of its own terms as if it were full; where there is none, the term is not offered.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onkel.kernels import Kernel
from onkel.losses import Loss
from onkel.maps import Nystrom
from onkel.part import Part
from onkel.random import Random
from onkel.updates import Memory, Round

if TYPE_CHECKING:
    from onkel.hypothesis import Expansion

Array = np.ndarray[Any, np.dtype[Any]]


def oldest_of_least(values: Array, born: Array, size: float = 0.0) -> int:
    """Where the least value is; among those equal up to rounding, the term that entered first.

    `size` is that of the numbers the values are differences of.
    """
    least = values.min()
    close = np.flatnonzero(values <= least + 1e-9 * max(abs(least), size))
    return int(close[np.argmin(born[close])])


class Budget(Part):
    """How a new term enters an expansion."""

    columns: ClassVar[tuple[str, ...]] = ()
    exact: ClassVar[bool] = False  # is the new function always the old one plus the offered term?
    shares: ClassVar[bool] = False  # does it heed the room that is left in a common budget?

    @property
    def intercept(self) -> bool:
        """Does it also set a number that is added to f?"""
        return False

    def start(self, seed: int) -> Memory:
        """What is remembered between rounds."""
        return {}

    def check(self, kernel: Kernel, loss: Loss, outputs: int) -> None:
        """Refuse a kernel, a loss or a number of outputs this budget is not defined for."""

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        """Let the term in, by this budget's rule."""
        raise NotImplementedError


class Unlimited(Budget):
    """Every term is kept."""

    exact: ClassVar[bool] = True

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None:
            f.append(round, coef)


class Truncate(Budget):
    """Terms live for `rounds` rounds (NORMA): round t scores with those born in t - rounds .. t - 1."""

    rounds: int = 100

    def __post_init__(self) -> None:
        self._integer("rounds", 1)

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None:
            f.append(round, coef)
        if f.n and f.born.min() <= round.t - self.rounds:  # one enters a round, so at most one leaves
            f.remove(int(np.argmin(f.born)))


class Bounded(Budget):
    """Budgets of at most `budget` terms."""

    budget: int = 100

    def __post_init__(self) -> None:
        self._integer("budget", 1)

    def full(self, f: Expansion, round: Round) -> bool:
        """Is there no room for another term?"""
        return f.n == self.budget or round.room <= 0


class Stop(Bounded):
    """The first `budget` terms are kept, later ones refused (Stoptron)."""

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None and f.n < self.budget:
            f.append(round, coef)


class Landmarks(Bounded):
    """The first `budget` terms become the landmarks of a Nyström map, and steps are taken in its features (NOGD).

    With z(x) = M k(x) the `rank` features of the landmarks (`Nystrom`), f becomes its projection on them, and a step
    coef * z(x) of the weights is the step M' M k(x) * coef of the coefficients: f stays an expansion. This begins in
    the first round that finds no room for its term (switch "lazy") or at the end of the round that fills it ("eager").
    """

    rank: int = 20
    switch: str = "lazy"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._integer("rank", 1, self.budget)
        self._one_of("switch", "lazy", "eager")

    def start(self, seed: int) -> Memory:
        return {"transform": np.zeros((0, 0))}

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None and f.n < self.budget:
            f.append(round, coef)
            if f.n == self.budget and self.switch == "eager":
                self._become_linear(f, memory)
        elif coef is not None:
            if len(memory["transform"]) == 0:
                self._become_linear(f, memory)
            M = memory["transform"]
            f.add(M.T @ (M @ round.k), coef)

    def _become_linear(self, f: Expansion, memory: Memory) -> None:
        K = f.matrix()
        M = memory["transform"] = Nystrom(f.kernel, self.rank).transform(K, f.run.dtype)
        f.change(K @ (M.T @ (M @ f.coef)))


class Replace(Bounded):
    """One term leaves when a new one finds no room; which one is the subclass's `victim`.

    `unbiased` multiplies the survivors by n / (n - 1), n being the terms there were, so that a uniform removal keeps
    E[f]. `cap` then scales f so that no coefficient exceeds it (BOGD).
    """

    shares: ClassVar[bool] = True
    unbiased: bool = False
    cap: float | None = None

    def __post_init__(self) -> None:
        self._boolean("unbiased")
        self._integer("budget", 2 if self.unbiased else 1)
        if self.cap is not None:
            self._positive("cap")

    def victim(self, f: Expansion, memory: Memory) -> int:
        """The slot of the term that leaves."""
        raise NotImplementedError

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        full = self.full(f, round)
        if full:
            f.shrink(f.n / (f.n - 1) if self.unbiased and f.n > 1 else 1.0)
            f.remove(self.victim(f, memory))
        f.append(round, coef)
        if full and self.cap is not None:
            limit_coefficients(f, self.cap)


def limit_coefficients(f: Expansion, cap: float) -> None:
    """f <- f * min(1, cap / max_i |coef_i|)."""
    largest = abs(f.scale) * np.abs(f.coef).max()
    if largest > cap:
        f.shrink(cap / largest)


class RemoveRandom(Replace):
    """A term drawn uniformly leaves (RBP; BOGD with `unbiased` and `cap`)."""

    def start(self, seed: int) -> Memory:
        return {"random": Random(seed, "removal")}

    def victim(self, f: Expansion, memory: Memory) -> int:
        return int(memory["random"].below(f.n))


class RemoveOldest(Replace):
    """First in, first out."""

    def victim(self, f: Expansion, memory: Memory) -> int:
        return int(np.argmin(f.born))


class ReplaceSmallest(Replace):
    """The term of least |coef| makes room; the oldest among equals."""

    def victim(self, f: Expansion, memory: Memory) -> int:
        return oldest_of_least(np.linalg.norm(f.coef, axis=1), f.born)


class RemoveWeighted(Bounded):
    """A random term leaves, the small ones first, and f keeps its expectation (BOGD++).

    Term i stays with probability q_i = min(1, s |coef_i| sqrt(k_ii)), where s makes the q_i sum to B - 1;
    survivors are divided by q_i. `cap` as in `Replace`.
    """

    cap: float | None = None

    def __post_init__(self) -> None:
        self._integer("budget", 2)
        if self.cap is not None:
            self._positive("cap")

    def start(self, seed: int) -> Memory:
        return {"random": Random(seed, "removal")}

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        full = f.n == self.budget
        if full:
            weight = np.linalg.norm(f.coef, axis=1) * np.sqrt(term_diagonals(f))
            keep = keep_probabilities(weight, f.n - 1)
            leaves = pick(1 - keep, memory["random"].uniform())
            keep[leaves] = 1.0  # whatever it was: it leaves
            f.change(f.coef / keep[:, None])
            f.remove(leaves)
        f.append(round, coef)
        if full and self.cap is not None:
            limit_coefficients(f, self.cap)


def term_diagonals(f: Expansion) -> Array:
    """k(x_i, x_i) of every term."""
    return np.array([f.diagonal(f.basis.row(i)) for i in range(f.n)])


def keep_probabilities(weight: Array, total: float) -> Array:
    """q_i = min(1, s * weight_i) with s such that they sum to `total` (water-filling)."""
    keep = np.zeros(len(weight))
    free = np.ones(len(weight), dtype=bool)
    while free.any():
        mass = weight[free].sum()
        remaining = total - np.count_nonzero(~free)
        if mass <= 0:
            keep[free] = remaining / np.count_nonzero(free)
            break
        keep[free] = weight[free] * (remaining / mass)
        over = free & (keep > 1)
        if not over.any():
            break
        keep[over] = 1.0
        free &= ~over
    return keep


def pick(probability: Array, uniform: float) -> int:
    """The index at which the running sum of probabilities first exceeds uniform * their sum."""
    running = np.cumsum(probability)
    return min(int(np.searchsorted(running, uniform * running[-1], side="right")), len(running) - 1)


class RemoveSmallest(Bounded):
    """The term with the least |coef|^2 k(x, x) leaves, the new one included (BSGD)."""

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        f.append(round, coef)
        if f.n > self.budget:
            f.remove(oldest_of_least((f.coef**2).sum(axis=1) * term_diagonals(f), f.born))


def own_output(coef: Array) -> Array:
    """The output each perceptron term was made for: its only one, or the class with the positive entry."""
    return np.argmax(coef, axis=1) if coef.shape[1] > 1 else np.zeros(len(coef), dtype=int)


def own_margins(coef: Array, scores: Array) -> Array:
    """Margins of scores at the terms' own examples, whose labels their perceptron coefficients tell."""
    if coef.shape[1] == 1:
        return np.sign(coef[:, 0]) * scores[:, 0]
    i, own = np.arange(len(coef)), own_output(coef)
    others = scores.copy()
    others[i, own] = -np.inf
    return np.asarray(scores[i, own] - others.max(axis=1))


class Scored(Bounded):
    """Budgets that know f at every stored example, in the column `score` (divided by scale).

    Kept up to date in one kernel row per change, so that choosing a victim costs no Gram matrix.
    """

    columns: ClassVar[tuple[str, ...]] = ("score",)

    def victim(self, f: Expansion, memory: Memory) -> int:
        """The slot of the term that leaves when there is no room."""
        raise NotImplementedError

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        k = round.k
        if f.n == self.budget:
            leaves = self.victim(f, memory)
            k = removed(k, leaves)
            forget(f, leaves)
        s, inner = f.coef.T @ k, coef / f.scale
        f.basis["score"][:] += np.outer(k, inner)
        f.append(round, coef, score=s + inner * round.kxx)


class RemoveByMargin(Scored):
    """The term that its own example misses least leaves (Budget Perceptron): argmax_j y_j (f(x_j) - coef_j k_jj).

    With `distil`, after the new term entered, further terms leave while any such margin exceeds `beta`.
    """

    beta: float = 0.0
    distil: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._nonnegative("beta")
        self._boolean("distil")

    def victim(self, f: Expansion, memory: Memory) -> int:
        return oldest_of_least(-margins_without(f), f.born, largest_term(f))

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        super().insert(f, round, coef, memory)
        while coef is not None and self.distil and f.n:
            leaves = self.victim(f, memory)
            if f.scale * margins_without(f)[leaves] <= self.beta:
                break
            forget(f, leaves)


def margins_without(f: Expansion) -> Array:
    """The margin each term's example keeps if the term leaves, divided by scale."""
    return own_margins(f.coef, f.basis["score"] - f.coef * term_diagonals(f)[:, None])


def largest_term(f: Expansion) -> float:
    """max_j |coef_j| k_jj: the size of what margins are made of."""
    return float((np.abs(f.coef) * term_diagonals(f)[:, None]).max())


def forget(f: Expansion, i: int) -> None:
    """Remove term i and take its part out of the column `score`."""
    k = f.row(f.basis.row(i))
    f.basis["score"][:] -= np.outer(k, f.coef[i])
    f.remove(i)


def removed(values: Array, i: int) -> Array:
    """A copy without entry i, the last one in its place."""
    rest = values[:-1].copy()
    if i < len(rest):
        rest[i] = values[-1]
    return rest


class RemoveByEvaluation(Scored):
    """The term whose removal makes the fewest mistakes on examples seen leaves (Tighter Budget Perceptron).

    They are the last `recent` examples of the stream (None: as many as the budget), the current one
    included, and those stored; ties go to the rule of `RemoveByMargin`.
    """

    recent: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recent is not None:
            self._integer("recent", 0)

    def start(self, seed: int) -> Memory:
        return {"recent": None}  # a table of examples, made in the first round

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        size = self.budget if self.recent is None else self.recent
        if memory["recent"] is None:
            memory["recent"] = f.basis.fresh({"born": 1, "y": 1})
        seen = memory["recent"]
        if size:
            if seen.n == size:
                seen.remove(int(np.argmin(seen["born"][:, 0])))
            seen.append(round.x, born=round.t, y=round.y)
        super().insert(f, round, coef, memory)

    def victim(self, f: Expansion, memory: Memory) -> int:
        """argmin_j of the mistakes of f - coef_j k(x_j, .) on the evaluation set."""
        mistakes = np.zeros(f.n)
        for i in range(f.n):
            label = float(own_output(f.coef[i : i + 1])[0]) if f.run.outputs > 1 else float(np.sign(f.coef[i, 0]))
            mistakes += mistakes_without(f, f.row(f.basis.row(i)), label)
        seen = memory["recent"]
        stored = set(f.born)
        for i in range(seen.n):
            if seen["born"][i, 0] not in stored:
                mistakes += mistakes_without(f, f.row(seen.row(i)), float(seen["y"][i, 0]))
        margins = margins_without(f)
        margins[mistakes > mistakes.min()] = -np.inf
        return oldest_of_least(-margins, f.born, largest_term(f))


def mistakes_without(f: Expansion, k: Array, y: float) -> Array:
    """For every term: does f without it err on the example with kernel row k and target y?"""
    without = f.coef.T @ k - f.coef * k[:, None]
    if f.run.outputs == 1:
        return np.asarray((without[:, 0] >= 0) != (y > 0))
    return np.asarray(np.argmax(without, axis=1) != int(y))


class Forget(Bounded):
    """Shrink, then the oldest term leaves, so little that it cannot do harm (Forgetron).

    "self-tuned": only when over budget, by the largest phi in (0, 1] with
    Psi(s phi, phi mu) + Q <= (15/32) M, where Psi(l, m) = l^2 + 2 l (1 - m), s the oldest coefficient,
    mu its margin with the new term in, M the number of updates and Q the sum of past Psi.
    "basic": on every update by min{(B+1)^(-1/(2(B+1))), U / |f|}, U = sqrt((B+1) / ln(B+1)) / 4.
    `absolute` takes mu = |f(x_r)| (regression). `legacy_root` repeats the wrong root of a released program.
    """

    shares: ClassVar[bool] = True
    variant: str = "self-tuned"
    absolute: bool = False
    legacy_root: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("variant", "self-tuned", "basic")
        self._boolean("absolute", "legacy_root")

    def start(self, seed: int) -> Memory:
        return {"M": 0.0, "Q": 0.0} if self.variant == "self-tuned" else {"norm2": 0.0}

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        if self.variant == "basic":
            self._basic(f, round, coef, memory)
            return
        full = self.full(f, round)
        f.append(round, coef)
        memory["M"] += 1
        if full:
            oldest = int(np.argmin(f.born))
            a, fx = f.scale * f.coef[oldest], f.scores(f.row(f.basis.row(oldest)))
            own = int(own_output(f.coef[oldest : oldest + 1])[0])
            s, mu = abs(a[own]), abs(fx[own]) if self.absolute else math.copysign(1.0, a[own]) * fx[own]
            room = 15 / 32 * memory["M"] - memory["Q"]
            phi = self.factor(s, mu, room)
            memory["Q"] += (s * phi) ** 2 + 2 * s * phi * (1 - phi * mu)
            f.shrink(phi)
            f.remove(oldest)

    def factor(self, s: float, mu: float, room: float) -> float:
        """The largest phi in (0, 1] with A phi^2 + 2 s phi <= room."""
        A = s * s - 2 * s * mu
        if A + 2 * s <= room:
            return 1.0
        if A == 0:
            return room / (2 * s)
        root = math.sqrt(max(4 * s * s + 4 * A * room, 0.0))
        if self.legacy_root and A < 0:
            return (-2 * s - root) / (2 * A)
        return 2 * room / (2 * s + root)

    def _basic(self, f: Expansion, round: Round, coef: Array, memory: Memory) -> None:
        over = self.budget + 1
        norm2 = memory["norm2"] + 2 * float(coef @ f.scores(round.k)) + float(coef @ coef) * round.kxx
        full = self.full(f, round)
        f.append(round, coef)
        bound = math.sqrt(over / math.log(over)) / 4
        phi = min(over ** (-1 / (2 * over)), bound / math.sqrt(norm2) if norm2 > 0 else 1.0)
        f.shrink(phi)
        norm2 *= phi**2
        if full:
            oldest = int(np.argmin(f.born))
            k = f.row(f.basis.row(oldest))
            a, fx = f.scale * f.coef[oldest], f.scores(k)
            norm2 += float(a @ a) * k[oldest] - 2 * float(a @ fx)
            f.remove(oldest)
        memory["norm2"] = max(norm2, 0.0)
