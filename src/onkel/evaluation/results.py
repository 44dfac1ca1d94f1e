"""Results of a race: means over the orders of a stream, who was best, and whether differences are significant."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onkel.core.wording import counted
from onkel.datasets.stream import Stream
from onkel.evaluation.traces import Trace

Array = NDArray[Any]
Floats = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """One learner over all orders it has finished.

    Parameters
    ----------
    name : the learner's name in the race.
    settings : its hyper-parameters as text.
    traces : one per order.
    """

    name: str
    settings: Mapping[str, str]
    traces: tuple[Trace, ...]

    def __repr__(self) -> str:
        return f"Result({self.name}: error {self.error:.4g} in {counted(len(self.traces), 'order')})"

    @property
    def error(self) -> float:
        """Mean over the orders of the final mistake rate or root mean squared error."""
        return statistics.fmean(trace.error[-1] for trace in self.traces)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over the orders; None with one order, or if the learner diverged."""
        finals = [float(trace.error[-1]) for trace in self.traces]
        return statistics.stdev(finals) if len(finals) > 1 and np.isfinite(finals).all() else None

    @property
    def size(self) -> float | None:
        """Mean number of support vectors at the end; None if the learner does not report it."""
        sizes = [float(trace.size[-1]) for trace in self.traces if trace.size is not None]
        return statistics.fmean(sizes) if sizes else None

    @property
    def microseconds(self) -> float:
        """Mean time per example."""
        return statistics.fmean(trace.microseconds for trace in self.traces)

    @property
    def bytes(self) -> float | None:
        """Mean size of the learner at the end."""
        sizes = [float(trace.bytes) for trace in self.traces if trace.bytes is not None]
        return statistics.fmean(sizes) if sizes else None

    @property
    def held_out(self) -> float | None:
        """Mean error on examples that were never learned from; None if there were none."""
        errors = [trace.held_out for trace in self.traces if trace.held_out is not None]
        return statistics.fmean(errors) if errors else None

    @property
    def measures(self) -> dict[str, float | None]:
        """Means of the further measures at the end; None where the learner does not allow one."""
        finals = {name: [trace.measures[name][-1] for trace in self.traces] for name in self.traces[0].measures}
        return {name: statistics.fmean(v) if np.isfinite(v).all() else None for name, v in finals.items()}

    def mean(self, quantity: Callable[[Trace], Array]) -> Floats:
        """A curve averaged over the orders, such as ``result.mean(lambda trace: trace.error)``."""
        return np.asarray(np.mean([quantity(trace) for trace in self.traces], axis=0), dtype=np.float64)


@dataclasses.dataclass(frozen=True, repr=False)
class Standings:
    """How a race ended: the stream, the results (least error first), and the number of examples in an order."""

    stream: Stream
    results: tuple[Result, ...]
    examples: int

    def __repr__(self) -> str:
        rows = [("learner", "error", "SV", "us per row")]
        for result in self.results:
            size = "" if result.size is None else f"{result.size:,.0f}"
            rows.append((result.name, f"{result.error:.4g}", size, f"{result.microseconds:.3g}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [" ".join([f"{name:<{widths[0]}}", *map(str.rjust, cells, widths[1:])]) for name, *cells in rows]
        return "\n".join([f"{self.stream!r}, {self.examples:,} learned in {counted(self.orders, 'order')}", *lines])

    @property
    def orders(self) -> int:
        """The most orders that any learner has finished."""
        return max((len(result.traces) for result in self.results), default=0)

    def relative(self, result: Result) -> float:
        """Time of a learner in units of the fastest one."""
        return result.microseconds / min(other.microseconds for other in self.results)

    def is_best(self, result: Result) -> bool:
        """Whether no learner did better; several may be equal."""
        return math.isclose(result.error, self.results[0].error, rel_tol=1e-9)

    def significance(self) -> dict[str, float]:
        """p-values of the difference from the best learner, by name.

        Two-sided paired t-tests of the final errors over the orders that both have finished, corrected for their
        number (Holm). The best, learners that diverged, and those with fewer than two orders have none. All orders
        have the same examples; the test is whether the ranking would hold on further orders of them.
        """
        best, *others = self.results[:1] + tuple(r for r in self.results[1:] if math.isfinite(r.error))
        raw = {other.name: p for other in others if (p := _paired(best, other)) is not None}
        adjusted: dict[str, float] = {}
        least = 0.0
        for rank, (name, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
            least = max(least, min(1.0, p * (len(raw) - rank)))
            adjusted[name] = least
        return adjusted

    def table(self) -> list[dict[str, Any]]:
        """One plain dict per learner: name, error, deviation, p, further measures, size, bytes, times, orders."""
        p = self.significance() if self.results else {}
        return [
            {
                "name": result.name,
                "error": result.error,
                "deviation": result.deviation,
                "p": p.get(result.name),
                **result.measures,
                "held_out": result.held_out,
                "size": result.size,
                "bytes": result.bytes,
                "microseconds": result.microseconds,
                "relative": self.relative(result),
                "orders": len(result.traces),
            }
            for result in self.results
        ]


def _paired(one: Result, other: Result) -> float | None:
    """The p-value of a paired t-test over the orders that both have finished."""
    pairs = list(zip(one.traces, other.traces, strict=False))
    differences = np.array([float(a.error[-1] - b.error[-1]) for a, b in pairs])
    if len(differences) < 2 or not np.isfinite(differences).all():
        return None
    if np.ptp(differences) <= 1e-12 * np.abs(differences).max():  # no spread to compare with, but for rounding
        return 1.0 if differences[0] == 0 else 0.0
    from scipy import stats  # slow to import

    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def settings(model: Any) -> dict[str, str]:
    """The hyper-parameters of a learner as text; if it has no `get_params`, the text of the whole learner."""
    if hasattr(model, "get_params"):
        return {name: str(value) for name, value in model.get_params(deep=False).items()}
    return {"model": str(model)}
