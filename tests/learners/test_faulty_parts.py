"""What is wrong with a part is said in words that name it: when its class is made, or in the round that shows it."""

import numpy as np
import pytest
from streams import binary

import onkel
from onkel.budgets import Bounded, Budget
from onkel.core.errors import Diverged
from onkel.core.part import Part
from onkel.hypotheses import GroupedExpansion
from onkel.kernels import Gaussian, Kernel
from onkel.losses import Hinge, Loss, MarginLoss, ResidualLoss
from onkel.maps import Fourier
from onkel.updates import Perceptron, Update


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Names are free again after each test."""
    monkeypatch.setattr(Part, "known", dict(Part.known))


X, y = binary(40)


def learned(budget=None, update=None):
    budget, update = budget or onkel.budgets.Unlimited(), update or Perceptron()
    learner = onkel.Learner(onkel.Expansion(Gaussian(1.0), budget), Hinge(), update, columns=4)
    learner.learn(X, y)
    return learner


def refuses(message, error=TypeError, **parts):
    with pytest.raises(error) as caught:
        learned(**parts)
    assert message in str(caught.value)


def budget(insert, start=lambda self, run: {}, **more):
    """A budget called Mine, with room for five terms, that does that."""
    return type("Mine", (Bounded,), {"insert": insert, "start": start, **more})(5)


def update(step, start=lambda self, run: {}, **more):
    return type("Mine", (Update,), {"step": step, "start": start, **more})()


# -- budgets


def enter(self, f, round, coef, memory):
    if coef is not None:
        if f.n == self.budget:
            f.remove(0)
        f.append(round, coef)


def test_a_budget_that_leaks():
    def insert(self, f, round, coef, memory):
        if coef is not None:
            f.append(round, coef)

    refuses("Mine(budget=5) holds 6 terms after round 6: its insert must leave at most 5", budget=budget(insert))


def test_a_budget_that_forgets_rounds_without_a_term():
    def insert(self, f, round, coef, memory):
        if f.n == self.budget:
            f.remove(0)
        f.append(round, coef)

    told = "Mine(budget=5).insert failed in a round without a term (coef is None)"
    refuses(told, budget=budget(insert))

    def by_method(self, f, round, coef, memory):
        if coef.any() and f.n < self.budget:
            f.append(round, coef)

    refuses(told, budget=budget(by_method))
    refuses("has no attribute 'any'; ask `if coef is not None` first", budget=budget(by_method))

    def careless(self, f, round, coef, memory):
        if np.abs(coef).max() > 0 and f.n < self.budget:
            f.append(round, coef)

    refuses(told, budget=budget(careless))


def test_an_error_of_ones_own_is_left_as_it_is():
    def insert(self, f, round, coef, memory):
        return len(round.t)

    refuses("object of type 'int' has no len()", budget=budget(insert))


def test_coefficients_of_another_shape():
    def insert(self, f, round, coef, memory):
        if coef is not None:
            f.append(round, np.array([1.0, 2.0]))

    refuses("Mine(budget=5) adds a term whose coefficients are of shape (2,), not (1,)", budget=budget(insert))

    def change(self, f, round, coef, memory):
        enter(self, f, round, coef, memory)
        f.change(np.ones(f.n))

    refuses("Mine(budget=5) gives coefficients of shape (1,), not (1, 1)", budget=budget(change))


def test_a_term_that_is_not_there():
    for i in (-1, 5):

        def insert(self, f, round, coef, memory, i=i):
            if f.n == self.budget:
                f.remove(i)
            enter(self, f, round, coef, memory)

        refuses(f"Mine(budget=5) removes term {i}, but the 5 terms are 0 to 4", IndexError, budget=budget(insert))


def test_a_column_that_is_not_there():
    def insert(self, f, round, coef, memory):
        if coef is not None and f.n < self.budget:
            f.append(round, coef, peek=1.0)

    refuses(
        "Mine(budget=5) has no column 'peek': its columns are ['peak']",
        budget=budget(insert, columns={"peak": "number"}),
    )


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        (
            {"columns": ("peak",)},
            "Mine.columns must give each name a kind, one of scores, weight, number; got ('peak',)",
        ),
        ({"columns": {"peak": "height"}}, "Mine.columns must give each name a kind, one of scores, weight, number"),
        ({"columns": {"coef": "scores"}}, "Mine.columns: every table has 'coef', choose another name"),
        ({"per_output": {"sum": "sums"}}, "Mine.per_output must give each name a kind, one of scores, squares, length"),
    ],
)
def test_columns_without_a_kind(stated, told):
    for base in (Budget, Update)[: 1 if "columns" in stated else 2]:
        with pytest.raises(TypeError) as caught:
            type("Mine", (base,), stated)
        assert told in str(caught.value)


# -- memories


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        ([], [], "remembers 'it', which is a list and cannot be saved: remember numbers, NumPy arrays of numbers"),
        (0.0, {"a": 1}, "remembers 'it', which is a dict and cannot be saved"),
        (np.random.default_rng(0), None, "remembers 'it', which is a Generator and cannot be saved"),
        (np.array(["a"]), None, "remembers 'it', which is a ndarray and cannot be saved"),
        (0.0, np.inf, "remembers 'it' = inf, which cannot be saved: remember finite numbers"),
        (np.zeros(2), np.full(2, np.nan), "remembers 'it' = [nan nan], which cannot be saved"),
        (
            np.zeros(2),
            np.zeros(3),
            "remembers 'it' in the shape (3,), which began as (2,): keep the shape, or begin with",
        ),
        (0.0, np.zeros(3), "remembers 'it' in the shape (3,), which began as ()"),
    ],
    ids=str,
)
def test_a_memory_that_cannot_be_saved(first, then, told):
    def start(self, run):
        return {"it": first}

    def insert(self, f, round, coef, memory):
        enter(self, f, round, coef, memory)
        memory["it"] = memory["it"] if then is None else then

    def step(self, round, memory):
        memory["it"] = memory["it"] if then is None else then
        return 1.0, -round.slope

    refuses(f"Mine(budget=5) {told}", budget=budget(insert, start))
    refuses(f"Mine() {told}", update=update(step, start))

    def adapt(self, x, z, dz, drawn, memory):
        memory["it"] = memory["it"] if then is None else then

    mine = type("Yours", (Fourier,), {"start": start, "adapt": adapt})(Gaussian(1.0), 3)
    with pytest.raises(TypeError) as caught:
        onkel.Learner(onkel.Features(mine), Hinge(), Perceptron(), columns=4).learn(X, y)
    assert f"{mine!r} {told}" in str(caught.value)


def test_a_memory_that_start_does_not_name():
    def insert(self, f, round, coef, memory):
        enter(self, f, round, coef, memory)
        memory["seen"] = 1.0

    refuses("Mine(budget=5) added the memory entry 'seen': `start` must return all entries", budget=budget(insert))

    def step(self, round, memory):
        memory.clear()
        return 1.0, None

    told = "Mine() removed the memory entry 'seen': `start` must return all entries"
    refuses(told, update=update(step, lambda self, run: {"seen": 1.0}))
    refuses("Mine().start must return a dictionary, got 0", update=update(step, lambda self, run: 0))


def test_an_array_for_each_output_that_is_not_named():
    class Mine(Update):
        def start(self, run):
            return {"sum": np.zeros(run.outputs)}

        def step(self, round, memory):
            memory["sum"] = memory["sum"] + round.slope
            return 1.0, -round.slope

    model = onkel.ComposedClassifier(update=Mine()).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model.partial_fit(X[:1], [7])
    assert "what Mine() remembers for each output must be named in per_output" in str(caught.value)
    np.testing.assert_array_equal(model.decision_function(X), before)


# -- steps


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        ((1.0, np.zeros(2)), "got (1.0, array([0., 0.]))"),
        ((1.0, 0.5), "got (1.0, 0.5)"),
        (("1", None), "got ('1', None)"),
        (None, "got None"),
        (1.0, "got 1.0"),
    ],
    ids=str,
)
def test_a_step_of_the_wrong_shape(answer, got):
    told = "Mine().step must return a factor and coefficients of shape (1,) or None, "
    refuses(told + got, update=update(lambda self, round, memory: answer))


@pytest.mark.parametrize("answer", [(np.nan, None), (1.0, np.array([np.inf])), (np.inf, np.zeros(1))], ids=str)
def test_a_step_out_of_range_is_not_taken(answer):
    def step(self, round, memory):
        return answer if round.t == 9 else (1.0, -round.slope)

    learner = onkel.Learner(onkel.Expansion(Gaussian(1.0)), Hinge(), update(step), columns=4)
    with pytest.raises(Diverged, match=r"row 8: the step is .*: the model diverges"):
        learner.learn(X, y)
    assert learner.t == 8
    assert np.isfinite(learner.scores(X)).all()


# -- losses, kernels and maps


@pytest.mark.parametrize("answer", [0.5, (0.5, -1.0), (0.5, np.zeros(2)), np.zeros(2), None], ids=str)
def test_a_loss_that_returns_something_else(answer):
    mine = type("Mine", (Loss,), {"__call__": lambda self, y, s: answer})()
    with pytest.raises(TypeError) as caught:
        onkel.Learner(onkel.Expansion(Gaussian(1.0)), mine, Perceptron(), columns=4)
    assert "Mine() must return its value, a number, and its slope, an array of shape (1,), got" in str(caught.value)


@pytest.mark.parametrize(("base", "name"), [(MarginLoss, "of_margin"), (ResidualLoss, "of_residual")])
def test_a_loss_without_a_derivative(base, name):
    mine = type("Mine", (base,), {name: lambda self, q: q**2})()
    with pytest.raises(TypeError, match=rf"Mine\.{name} must return two numbers, value and derivative, got 0\.0"):
        onkel.Learner(onkel.Expansion(Gaussian(1.0)), mine, Perceptron(), columns=4)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("shape", [lambda total: 1.0, lambda total: np.exp(-total)[:, None]], ids=["float", "matrix"])
def test_a_kernel_that_returns_something_else(unit, shape):
    own = {"pair": lambda self, x, z: (x - z) ** 2, "shape": lambda self, total: shape(total), "unit": unit}
    mine = type("Mine", (Kernel,), own)()
    told = (
        r"Mine\(\)\.shape must return an array with one value for each sum .* for an array of [0-9]+ sums? it returned"
    )
    for hypothesis in (onkel.Expansion(mine), GroupedExpansion((mine,))):
        with pytest.raises(TypeError, match=told):
            onkel.Learner(hypothesis, Hinge(), Perceptron(), columns=4).learn(X, y)


def test_a_map_of_another_width():
    for answer in (np.zeros((1, 3)), np.zeros(6), 0.0):
        mine = type("Yours", (Fourier,), {"features": lambda self, *of, answer=answer: answer})(Gaussian(1.0), 3)
        with pytest.raises(TypeError) as caught:
            onkel.Learner(onkel.Features(mine), Hinge(), Perceptron(), columns=4).learn(X, y)
        assert f"{mine!r}.features must return an array of 6 columns, as `size` says" in str(caught.value)


def test_what_a_part_needs_and_nobody_offers():
    class Mine(Update):
        @property
        def needs(self):
            return super().needs | {"a friend"}

    refuses("Mine() needs a part that offers 'a friend'; got none", ValueError, update=Mine())
    friend = type("Friend", (Bounded,), {"insert": enter, "traits": ("a friend",)})(5)
    with pytest.raises(NotImplementedError):
        learned(friend, Mine())


def test_the_name_of_a_part_is_taken_once():
    """Files and twins know parts by name: one of one's own that is called like ours is refused."""
    with pytest.raises(TypeError, match=r"there is a part called Stop in onkel\.budgets\.removal: choose another name"):
        type("Stop", (Bounded,), {"insert": enter})
