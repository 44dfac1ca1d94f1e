"""Parts by somebody who knows the public interface alone: what the library promises of its own holds for them, too.

A kernel, two losses, an update that remembers numbers for each output and each column, a budget with columns and a
memory of every kind, and a map that learns. They have no twin, and run on the Python engine.
"""

import copy
import pickle
from typing import ClassVar

import numpy as np
import pytest
from streams import binary, multiclass, regression

import onkel
from onkel.budgets import Bounded, Stop
from onkel.core.basis import Basis
from onkel.core.random import Random, uniforms
from onkel.kernels import Gaussian, Kernel
from onkel.losses import Hinge, MarginLoss, ResidualLoss
from onkel.maps import Fourier, Map
from onkel.updates import Gradient, PassiveAggressive, Update, along


class StrangeKernel(Kernel):
    """k(x, z) = 1 / (1 + gamma |x - z|^2)."""

    gamma: float = 1.0

    def __post_init__(self):
        self._positive("gamma")

    def pair(self, x, z):
        return np.square(x - z)

    def shape(self, total):
        return 1 / (1 + self.gamma * np.maximum(total, 0))


class StrangeHinge(MarginLoss):
    """A hinge whose kink is a parabola."""

    margin: float = 1.0
    threshold: ClassVar = "margin"

    def of_margin(self, q):
        short = self.margin - q
        return (short - 0.5, -1.0) if short > 1 else (0.5 * max(short, 0.0) ** 2, -max(short, 0.0))


class StrangeResidual(ResidualLoss):
    """ln cosh r."""

    def of_residual(self, r):
        return float(np.logaddexp(r, -r) - np.log(2)), float(np.tanh(r))


class StrangeStep(Update):
    """A step that is the shorter, the more slope an output has had, and the larger the rows have been."""

    eta: float = 1.0
    per_output: ClassVar = {"squares": "squares"}

    def start(self, run):
        return {"squares": np.zeros(run.outputs), "largest": np.zeros(run.columns), "steps": 0}

    def step(self, round, memory):
        size = 1 + np.max(memory["largest"], initial=0)
        squares = memory["squares"] + np.square(round.slope)
        coef = along(round.slope / np.sqrt(np.maximum(squares, 1e-300)), self.eta * round.weight / size)
        memory["squares"] = squares
        memory["largest"] = np.maximum(memory["largest"], np.abs(round.x.dense(len(memory["largest"]))))
        memory["steps"] += coef is not None
        return 0.999, coef


class StrangeBudget(Bounded):
    """When full, a term leaves that no recent example was near, and that is as it was when it came; by chance another.

    Columns: `use`, how near later examples were; `began`, the coefficients at the beginning; `heft`, their length.
    """

    chance: float = 0.1
    columns: ClassVar = {"use": "number", "began": "scores", "heft": "weight"}
    per_output: ClassVar = {"total": "scores", "recent.y": "targets"}

    def start(self, run):
        return {
            "random": Random(run.seed, "useful"),
            "recent": Basis(run.columns, run.dtype, run.sparse, {"y": 1}),
            "total": np.zeros(run.outputs),
            "mean": np.zeros(run.columns),
            "rounds": 0,
            "full": False,
            "lengths": np.zeros(0),
        }

    def insert(self, f, round, coef, memory):
        memory["rounds"] += 1
        memory["mean"] += (round.x.dense(len(memory["mean"])) - memory["mean"]) / memory["rounds"]
        recent = memory["recent"]
        if recent.n == 3:
            recent.remove(int(np.argmin(recent["born"][:, 0])))
        recent.append(round.x, born=round.t, y=round.y)
        f.basis["use"][:] = 0.9 * f.basis["use"] + round.k[:, None]
        if coef is None:
            return
        memory["total"] += coef
        if f.n == self.budget:
            memory["full"] = True
            near = sum(f.row(recent.row(i)) for i in range(recent.n))
            moved = np.abs(f.coef - f.basis["began"]).sum(axis=1) / f.basis["heft"][:, 0]
            at_random = memory["random"].uniform() < self.chance
            leaves = memory["random"].below(f.n) if at_random else int(np.argmin(f.basis["use"][:, 0] + near + moved))
            f.remove(leaves)
        inner = coef / f.scale
        f.append(round, coef, use=1.0, began=inner, heft=np.linalg.norm(inner))
        memory["lengths"] = np.append(memory["lengths"], np.linalg.norm(coef))[-5:]


class StrangeMap(Map):
    """Cosines of projections, which stretch with the columns that were not 0, and shift with the recent examples."""

    traits: ClassVar = ("adapts",)
    per_output: ClassVar = {"pull": "scores"}

    @property
    def size(self):
        return self.components

    def draw(self, keys, seed):
        return {"directions": uniforms(seed, "strange", keys, self.components).T}

    def start(self, run):
        return {
            "rounds": 0,
            "shift": 0.5,
            "random": Random(run.seed, "strange"),
            "counts": np.zeros(run.columns),
            "pull": np.zeros(run.outputs),
            "recent": Basis(run.columns, run.dtype, run.sparse, {"z": self.components}),
            "sums": np.zeros(0),
        }

    def project(self, X, drawn, memory):
        recent = memory["recent"]
        near = recent["z"].sum(axis=0) if recent.n else 0.0
        seen = np.tanh(memory["counts"] / (1 + memory["rounds"]))
        return X @ (drawn["directions"] * (1 + seen)).T + memory["shift"] + near

    def features(self, X, drawn, memory):
        return np.cos(self.project(X, drawn, memory)) / np.sqrt(self.components)

    def length2(self, z):
        return float(z @ z)

    def adapt(self, x, z, dz, drawn, memory):
        memory["rounds"] += 1
        memory["counts"] += x.dense(len(memory["counts"])) != 0
        memory["shift"] += 0.01 * np.tanh(dz.sum()) + 0.001 * memory["random"].uniform()
        memory["pull"] = 0.9 * memory["pull"] + dz.sum()
        memory["sums"] = np.append(memory["sums"], dz.sum())[-3:]
        recent = memory["recent"]
        if recent.n == 3:
            recent.remove(0)
        recent.append(x, born=memory["rounds"], z=0.01 * z)


def terms():
    return onkel.Expansion(StrangeKernel(0.5), StrangeBudget(8))


def features():
    return onkel.Features(Fourier(Gaussian(0.5), 10))


def learned_features():
    return onkel.Features(StrangeMap(Gaussian(0.5), 10))


MODELS = {
    "classifier": (onkel.ComposedClassifier, terms, StrangeHinge()),
    "regressor": (onkel.ComposedRegressor, terms, StrangeResidual()),
    "features": (onkel.ComposedClassifier, features, StrangeHinge()),
    "map": (onkel.ComposedClassifier, learned_features, StrangeHinge()),
    "map regressor": (onkel.ComposedRegressor, learned_features, StrangeResidual()),
}
CLASSIFIERS = ["classifier", "features", "map"]
every_model = pytest.mark.parametrize("kind", MODELS)
FORMS = ["dense", "float32", "sparse", "wide"]
AVERAGES = [False, True, "all"]


def make(kind, **params):
    cls, hypothesis, loss = MODELS[kind]
    return cls(hypothesis=hypothesis(), loss=loss, update=StrangeStep(0.5), **params)


def stream(kind, form="dense", classes=2, rounds=80):
    if "regressor" in kind:
        return regression(rounds, form=form)
    return binary(rounds, form=form) if classes == 2 else multiclass(rounds, form=form)


def told(kind, y):
    return {} if "regressor" in kind else {"classes": np.unique(y)}


def predicted(model, X):
    return model.predict(X) if isinstance(model, onkel.ComposedRegressor) else model.decision_function(X)


def same(a, b):
    """All that was learned, bit by bit."""
    one, two = a.state(), b.state()
    assert one[1] == two[1]
    assert one[0].keys() == two[0].keys()
    for name, array in one[0].items():
        np.testing.assert_array_equal(array, two[0][name], err_msg=name, strict=True)


@every_model
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", [2, 4])
def test_any_chunking(kind, form, classes):
    X, y = stream(kind, form, classes)
    average = AVERAGES[(FORMS.index(form) + classes // 2) % 3]
    whole, pieces, single = (make(kind, average=average) for _ in range(3))
    scores = whole.learn(X, y, **told(kind, y))
    cuts = [slice(0, 1), slice(1, 30), slice(30, 33), slice(33, 80)]
    found = [pieces.learn(X[cut], y[cut], **told(kind, y)) for cut in cuts]
    np.testing.assert_array_equal(np.concatenate(found), scores)
    same(pieces, whole)
    for i in range(80):
        single.partial_fit(X[[i]], y[[i]], **told(kind, y))
    same(single, whole)
    assert np.isfinite(scores).all() and np.ptp(scores) > 0.1


@every_model
@pytest.mark.parametrize("form", FORMS)
def test_resume_is_never_stopped(kind, form, tmp_path):
    X, y = stream(kind, form, classes=4)
    never = make(kind, average=AVERAGES[FORMS.index(form) % 3], random_state=5)
    never.learn(X[:40], y[:40], **told(kind, y))
    never.save(tmp_path / "model")
    others = [onkel.load(tmp_path / "model"), copy.deepcopy(never), copy.copy(never), pickle.loads(pickle.dumps(never))]
    scores = never.learn(X[40:], y[40:])
    for other in others:
        np.testing.assert_array_equal(other.learn(X[40:], y[40:]), scores)
        same(other, never)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(("third", "columns"), [(-5, (1, 2, 0)), (0, (0, 2, 1)), (5, (0, 1, 2))])
def test_a_class_joins(kind, average, third, columns, tmp_path):
    """A binary f becomes (-f/2, f/2), and what the parts remember follows."""
    X, y = stream(kind)
    model = make(kind, average=average).partial_fit(X, y)
    f, before = model.decision_function(X), model.state()[0]
    model.learn(X[:1], [third], sample_weight=[0.0])
    s, after = model.decision_function(X), model.state()[0]
    np.testing.assert_allclose(s[:, columns], np.column_stack([-f / 2, f / 2, 0 * f]), atol=1e-12)
    squares = after["update.squares"][list(columns)]
    np.testing.assert_array_equal(squares, [*np.repeat(before["update.squares"], 2), 0])
    if kind == "classifier":
        began, total = before["basis.began"][:, 0], before["budget.total"][0]
        np.testing.assert_array_equal(
            after["basis.began"][:, columns], np.column_stack([-began / 2, began / 2, 0 * began])
        )
        np.testing.assert_array_equal(after["budget.total"][list(columns)], [-total / 2, total / 2, 0])
        np.testing.assert_array_equal(after["basis.use"], before["basis.use"])
        assert set(after["budget.recent.y"].ravel()) <= set(columns[:2])
    if kind == "map":
        pull = before["map.pull"][0]
        np.testing.assert_array_equal(after["map.pull"][list(columns)], [-pull / 2, pull / 2, 0])
        np.testing.assert_array_equal(after["map.counts"], before["map.counts"])
    labels = np.where(np.arange(80) % 3, y, third)
    model.learn(X[:40], labels[:40])
    model.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.learn(X[40:], labels[40:]), model.learn(X[40:], labels[40:]))
    same(loaded, model)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_one_class_is_a_beginning(kind):
    X, y = stream(kind, classes=4)
    for known in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3]), ([3], [3, 0], [3, 0, 1, 2]):
        model = make(kind)
        for classes in known:
            seen = np.isin(y, classes)
            model.partial_fit(X[seen], y[seen])
        assert model.classes_.tolist() == [0, 1, 2, 3]


@every_model
def test_a_feature_joins(kind, tmp_path):
    """Dictionaries whose keys grow are full rows with zeros."""
    X, y = stream(kind, rounds=60)
    X[:20, 3] = 0
    grown, full = make(kind), make(kind)
    names = range(4) if MODELS[kind][1] != terms else "abcd"
    for i, x in enumerate(X):
        full.learn_one(x, y[i])
        grown.learn_one({name: v for name, v in zip(names, x, strict=True) if v or i >= 20}, y[i])
        if i == 30:
            grown.save(tmp_path / "model")
            grown = onkel.load(tmp_path / "model")
    np.testing.assert_allclose(predicted(grown, X), predicted(full, X), atol=1e-10)
    one, two = grown.state()[0], full.state()[0]
    for name in ("update.largest", "budget.mean", "map.counts"):
        if name in one:
            np.testing.assert_allclose(one[name], two[name])


def test_many_features_join():
    """Past the number of columns at which rows are stored without their zeros."""
    X, y = binary(40)
    grown, whole = make("classifier"), make("classifier")
    everything = {f"x{j}": 0.0 for j in range(1500)}
    for i, x in enumerate(X):
        row = {f"x{(37 * i * (j + 1)) % (10 + 35 * i)}": v for j, v in enumerate(x)}
        grown.learn_one(row, y[i])
        whole.learn_one(row if i else everything | row, y[i])
        assert grown.predict_one(row) == whole.predict_one(row)
    np.testing.assert_allclose(grown.dual_coef_, whole.dual_coef_, atol=1e-10)


@every_model
def test_predicting_changes_nothing_and_a_weight_of_zero_leaves_a_row_out(kind):
    X, y = stream(kind)
    model, other = make(kind), make(kind)
    model.learn(X, y, **told(kind, y))
    weight = np.tile([1.0, 0.0], 80)
    other.learn(np.repeat(X, 2, axis=0), np.repeat(y, 2), sample_weight=weight, **told(kind, y))
    same(model, other)
    predicted(model, X)
    same(model, other)


@every_model
def test_numpy_alone_runs_them(kind):
    X, y = stream(kind)
    model = make(kind).fit(X, y)
    assert model.engine_ == "python"
    with onkel.use_engine("native"), pytest.raises(ValueError, match=r"no C\+\+ twin of Strange|not built"):
        make(kind).fit(X, y)


# -- one recipe, two learners

RECIPES = {
    "strange": (lambda: onkel.Expansion(StrangeKernel(0.5), StrangeBudget(6)), StrangeHinge(), StrangeStep(0.5)),
    "expansion": (lambda: onkel.Expansion(Gaussian(1.0), Stop(6)), Hinge(), PassiveAggressive()),
    "features": (lambda: onkel.Features(Fourier(Gaussian(1.0), 10)), Hinge(), Gradient(0.2)),
}


@pytest.mark.parametrize("name", RECIPES)
def test_one_recipe_is_two_models(engine, name):
    if engine == "native" and name == "strange":
        pytest.skip("no twin in C++")
    X, y = binary(120)
    make_hypothesis, loss, update = RECIPES[name]
    recipe = make_hypothesis()

    def learner():
        return onkel.native.fastest(onkel.Learner(recipe, loss, update, columns=4, seed=3))

    alone = learner()
    wanted = np.concatenate([alone.learn(X[:60], y[:60])[0], alone.learn(X[60:], y[60:])[0]])
    one, two = learner(), learner()
    first = one.learn(X[:60], y[:60])[0]
    two.learn(X, -y)
    second = one.learn(X[60:], y[60:])[0]
    np.testing.assert_array_equal(np.concatenate([first, second]), wanted)
    assert recipe == make_hypothesis() and repr(recipe) == repr(make_hypothesis())
    assert one.kind == engine
