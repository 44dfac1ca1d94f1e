"""Restarts: an engine for AdaRaker; instances that restart every 1, 2, 4, ... rounds, weighted by exp(-regret).

After any change in a stream, some instance restarts soon. Instance j restarts in the rounds that 2^j divides, and takes
steps of size min(1/2, eta / sqrt(2^j)). It has one linear function for each kernel, on random features that all
instances share. Its regret in a round is its loss minus that of the combined score, times its step size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onkel.core import soundness
from onkel.core.basis import Row, State, rows
from onkel.core.errors import Diverged, Refused, sane
from onkel.core.growing import Growing
from onkel.core.limits import refuse_memory
from onkel.core.locks import exclusive, shared
from onkel.core.outputs import Joining
from onkel.core.part import Part
from onkel.core.scores import softmax
from onkel.learners.engine import Engine, Out, written
from onkel.losses import Loss
from onkel.maps import Fourier, refuse_overflow

Array = np.ndarray[Any, np.dtype[Any]]


class Restarts(Engine):
    """A pool of instances, each of them a pool of kernels, with the methods of an engine.

    h_j is the weight of instance j, th_jp the weight of kernel p in it, m the number of kernels:

    score = sum_j h_j sum_p th_jp f_jp(x) / sum_j h_j;  eta_j = min(1/2, eta / sqrt(2^j))
    f_jp <- (1 - 2 eta_j lam) f_jp - eta_j slope z_p(x);  th_jp <- th_jp exp(-eta_weights_j loss_jp), normalised,
    with eta_weights_j = min(1/2, eta_weights / sqrt(2^j));
    h_j <- h_j exp(-eta_j (loss_j - loss));  at a restart f_jp = 0, th_jp = 1 / m, h_j = eta_j

    Parameters
    ----------
    maps : one for each kernel, all with the same number of random directions
    seeds : the seed of each map
    loss : Loss
    eta : the step size of instance j is min(1/2, eta / sqrt(2^j))
    eta_weights : likewise, for the weights of the kernels
    lam : regularisation
    outputs, keys, dtype : see Learner
    """

    n = 0  # terms

    def __init__(
        self,
        maps: Sequence[Fourier],
        seeds: Sequence[int],
        loss: Loss,
        *,
        eta: float,
        eta_weights: float,
        lam: float,
        outputs: int,
        keys: Array,
        dtype: Any = np.float64,
    ) -> None:
        for name, value, fine in (("eta", eta, eta > 0), ("eta_weights", eta_weights, eta_weights > 0)):
            if not fine or not math.isfinite(value):
                raise Refused("Restarts", name, "a finite number > 0", value)
        if not 0 <= lam < 1 / (2 * min(0.5, eta)):
            raise Refused("Restarts", "lam", f">= 0 and < {1 / (2 * min(0.5, eta)):g}", lam)
        self.maps, self.seeds, self.loss = list(maps), list(seeds), loss
        self.eta, self.eta_weights, self.lam = eta, eta_weights, lam
        self.outputs, self.dtype = outputs, np.dtype(dtype)
        self.rounds = 0
        self.coef = np.zeros((0, len(self.maps), outputs, self.maps[0].size))
        self.losses = np.zeros((0, len(self.maps)))  # of each kernel in each instance, summed since its restart
        self.log_weights = np.zeros(0)  # of the instances
        refuse_memory(sum(map.memory(len(keys)) + 8 * map.size * outputs for map in self.maps))
        self.keys = keys[:0]
        self._rooms, self._reach = Growing(np.zeros((0, len(self.maps) * self.maps[0].components))), math.inf
        self.widen(keys)
        self._restart()

    @property
    def columns(self) -> int:
        return len(self.keys)

    @property
    def t(self) -> int:
        return self.rounds

    @property
    def inner(self) -> tuple[Part, ...]:
        return *self.maps, self.loss

    @exclusive
    def widen(self, keys: Array) -> None:
        """Make room for new features; `keys` are the keys of all features, old and new."""
        refuse_memory(sum(map.memory(len(keys)) for map in self.maps))
        pairs = zip(self.maps, self.seeds, strict=True)
        more = np.concatenate([map.draw_more(self.columns, keys, seed)["directions"] for map, seed in pairs])
        self._rooms = self._rooms.plus(more.T)
        self.drawn = {"directions": self._rooms.values.T}  # of all maps
        self._reach = min(self._reach, self.maps[0].reach({"directions": more}, np.float64))
        self.keys = keys

    def _rates(self, eta: float) -> Array:
        return np.asarray(np.minimum(0.5, eta / np.sqrt(2.0 ** np.arange(len(self.coef)))))

    def _restart(self) -> None:
        """Before round t + 1: restart instances whose interval ends; add one if t + 1 is a power of 2."""
        grow = (self.rounds + 1).bit_length() - len(self.coef)
        self.coef, self.losses, self.log_weights = (
            np.concatenate([a, np.zeros((grow, *a.shape[1:]))]) for a in (self.coef, self.losses, self.log_weights)
        )
        ending = (self.rounds + 1) % 2 ** np.arange(len(self.coef)) == 0
        self.coef[ending] = 0.0
        self.losses[ending] = 0.0
        self.log_weights[ending] = np.log(self._rates(self.eta)[ending])

    @property
    def sizes(self) -> Array:
        """The number of terms of each kernel: 0, as there are only features."""
        return np.zeros(len(self.maps), dtype=int)

    # -- scoring

    def features(self, x: Row) -> Array:
        """z_p(x), of shape (kernels, features)."""
        # `drawn` has the directions of all maps, so the first map computes for all: first the cosines, then the sines
        z = self.maps[0].features(x.matrix(self.columns), self.drawn, {})
        return np.ascontiguousarray(z.reshape(2, len(self.maps), -1).swapaxes(0, 1)).reshape(len(self.maps), -1)

    def _weights(self) -> tuple[Array, Array]:
        """h, of shape (instances,), and th, of shape (instances, kernels)."""
        return softmax(self.log_weights), softmax(-self._rates(self.eta_weights)[:, None] * self.losses)

    @property
    def weights(self) -> Array:
        """The weights of the kernels in the score; they sum to 1."""
        h, th = self._weights()
        return np.asarray(h @ th)

    def answers(self, z: Array) -> tuple[Array, Array, Array]:
        """The scores of each kernel in each instance, of each instance, and of all instances combined."""
        h, th = self._weights()
        single = (self.coef @ z[:, :, None])[..., 0]
        instances = (th[:, None] @ single)[:, 0]
        return single, instances, h @ instances

    @shared
    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the rows."""
        self.check(X)
        out = np.zeros((X.shape[0], self.outputs))
        for i, x in enumerate(rows(X)):
            out[i] = self.answers(self.features(x))[2]
        return out

    def check(self, X: Any, y: Array | None = None) -> None:
        """Raise TooLarge for rows whose numbers would overflow."""
        refuse_overflow([np.abs(x.values).sum() for x in rows(X)], self._reach)

    # -- learning

    @exclusive
    def learn(self, X: Any, y: Array, weight: Array | None = None, out: Out | None = None) -> Out:
        """Learn from each row in turn. Returns the scores before each update, twice: no average is kept."""
        self.check(X)
        scores = np.zeros((len(y), self.outputs))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                scores[i] = self._round(x, float(y[i]), 1.0 if weight is None else float(weight[i]), i)
        return written(scores, out)

    def _round(self, x: Row, y: float, weight: float, i: int) -> Array:
        z = self.features(x)
        single, instances, s = self.answers(z)
        if weight == 0:
            return np.asarray(s)
        values, slopes = self.loss.each(y, np.concatenate([single.reshape(-1, self.outputs), instances, s[None]]))
        losses, regret = (
            values[: self.losses.size].reshape(self.losses.shape),
            values[self.losses.size : -1] - values[-1],
        )
        slopes = slopes[: self.losses.size].reshape(single.shape)
        rates = self._rates(self.eta)
        coef = (1 - 2 * self.lam * rates)[:, None, None, None] * self.coef
        coef -= (weight * rates)[:, None, None, None] * slopes[..., None] * z[:, None]
        if not (sane(values) and sane(coef)):
            raise Diverged("the greatest loss is", values.max(), i)
        self.coef = coef
        self.losses += losses
        self.log_weights -= rates * regret
        self.rounds += 1
        self._restart()
        return np.asarray(s)

    # -- state

    @shared
    def state(self) -> State:
        """Everything that was learned, as a flat dictionary of arrays."""
        return {
            "instances.coef": self.coef.swapaxes(2, 3).copy().reshape(-1, self.outputs),
            "instances.losses": self.losses.copy(),
            "instances.log_weights": self.log_weights.copy(),
            "t": np.array(self.rounds),
        }

    def check_state(self, state: State) -> None:
        count, kernels = (soundness.rounds(state) + 1).bit_length(), len(self.maps)
        soundness.shaped(state, "instances.coef", (count * kernels * self.maps[0].size, self.outputs))
        soundness.shaped(state, "instances.losses", (count, kernels))
        soundness.shaped(state, "instances.log_weights", (count,))
        soundness.coefficients("instances.coef", state["instances.coef"], 1.0)

    def restore(self, state: State) -> None:
        """The inverse of `state` on a learner of the same composition."""
        t = int(state["t"])
        count, kernels, size = (t + 1).bit_length(), len(self.maps), self.maps[0].size
        coef = state["instances.coef"].astype(np.float64).reshape(count, kernels, size, self.outputs)
        self.coef = coef.swapaxes(2, 3).copy()
        self.losses, self.log_weights = (
            state[f"instances.{name}"].astype(np.float64) for name in ("losses", "log_weights")
        )
        self.rounds = t

    def relabel(self, state: State, joining: Joining) -> State:
        return joining.all({"instances.coef": "scores"}, state)
