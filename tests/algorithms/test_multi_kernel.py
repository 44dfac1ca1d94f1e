"""Pools of kernels: each is its paper's box, score by score, on both engines; identities and bounds.

The boxes of `boxes.multi_kernel` know nothing of the library. Both see the same stream and the same random numbers.
"""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from box_checks import Slots, same
from boxes import multi_kernel as boxes
from boxes.feature_maps import fourier
from streams import CLASSES, ROUNDS, binary, inputs, multiclass, regression

import onkel
from onkel.core.random import Random
from onkel.evaluation import plots
from onkel.faces.pool import GAUSSIANS, POOL
from onkel.hypotheses import Expansion
from onkel.kernels import Cauchy, Gaussian, Laplacian, Linear, Polynomial
from onkel.learners.hedge import Hedge
from onkel.learners.pool import seeds
from onkel.losses import Mistake
from onkel.maps import Fourier

SEED = 7
KERNELS = (Gaussian(0.1), Gaussian(1.0), Gaussian(4.0), Polynomial(2, 0.5))
WIDTHS = KERNELS[:3]
M = len(KERNELS)
BUDGET = 6 * M + 3
STREAMS = {"binary": binary, "several": multiclass, "real": regression}
MODES = ["U", "DD", "SD", "DS", "SS"]
POOLS = [
    onkel.OMKCClassifier,
    onkel.SPAOMKLClassifier,
    onkel.FOGDOMKLClassifier,
    onkel.NOGDOMKLClassifier,
    onkel.RakerClassifier,
]


def draws(purpose, seed=SEED, count=M, rounds=ROUNDS):
    """The numbers a stream of the library gives: `count` in every round."""
    random = Random(seed, purpose)
    return np.array([[random.uniform() for _ in range(count)] for _ in range(rounds)])


def gram(X, kernels=KERNELS):
    return np.stack([kernel(X) for kernel in kernels])


def agree(model, X, y, run, kernels=KERNELS):
    """Is the model the run of a box? It learns in pieces; weights and sizes are compared at each of the cuts."""
    more = {} if y.dtype.kind == "f" and len(np.unique(y)) > 2 else {"classes": np.unique(y)}
    cuts = [0, 5, 40, 120, len(y)]
    for start, stop in pairwise(cuts):
        scores = model.learn(X[start:stop], y[start:stop], **more)
        same(scores, run.S[start:stop])
        same(model.weights_, run.W[stop])
        if model.n_support_:
            np.testing.assert_array_equal(model.sizes_, run.sizes[stop])
    assert model.weights_.sum() == pytest.approx(1.0, abs=1e-12)
    assert model.n_support_ == model.sizes_.sum()
    assert model.t_ == len(y)
    if run.F is not None:
        fresh, dense = inputs(20, seed=1), X.toarray() if sp.issparse(X) else X
        if dense.shape[1] != fresh.shape[1]:
            return
        for learner, kernel, F in zip(model._learned.engine.learners, kernels, run.F, strict=True):
            same(learner.scores(fresh), kernel(fresh, dense) @ F[-1])


# -- OMKC: modes, components, budgets

# component -> parameters of the estimator, options of the box
COMPONENTS = {
    "perceptron": ({}, {}),
    "pa": ({"C": 0.4}, {"C": 0.4}),
    "rbp": ({}, {}),
    "forgetron": ({}, {}),
    "bogd": ({"C": 0.3}, {"eta": 0.3, "lam": 0.001}),
    "bpa": ({"C": 0.4}, {"C": 0.4, "ties": 1e-9}),  # as the library: costs this close are equal
}
BOUNDED = ["rbp", "forgetron", "bogd", "bpa"]
REAL = {
    "perceptron": ({"C": 0.3}, {"eta": 0.3, "loss": "epsilon_insensitive"}),
    "pa": ({"C": 0.4}, {"C": 0.4, "loss": "epsilon_insensitive"}),
    "rbp": ({"C": 0.3}, {"eta": 0.3, "loss": "epsilon_insensitive"}),
    "forgetron": ({"C": 0.3}, {"eta": 0.3, "loss": "epsilon_insensitive"}),
    "bogd": (
        {"C": 0.3},
        {"eta": 0.3, "lam": 0.001, "removal": "fifo", "unbiased": False, "loss": "squared"},
    ),
}


@cache
def omkc_box(kind, component, mode, shared, form="dense", **more):
    X, y = STREAMS[kind](form=form)
    options = dict((REAL if kind == "real" else COMPONENTS)[component][1]) | more
    if kind == "real":
        options |= {"epsilon": 0.2, "eta_w": 0.0 if mode == "U" else 0.7, "combination": "scores"}
    if component in BOUNDED:
        options |= {"budget": BUDGET, "shared": shared, "choose": [Slots(seed) for seed in seeds(SEED, M)]}
    run = boxes.omkc(
        gram(X if form == "dense" else X.toarray()),
        y,
        outputs=CLASSES if kind == "several" else 1,
        mode=mode,
        component=component,
        discount=0.9,
        smoothing=0.05,
        uniforms_update=draws("update"),
        uniforms_combine=draws("combination"),
        **options,
    )
    return X, y, run


def omkc(kind, component, mode, shared, **more):
    params = {"mode": mode, "component": component, "kernels": KERNELS, "random_state": SEED}
    if "S" in mode and "single" not in more:
        params |= {"smoothing": 0.05}
    if component in BOUNDED:
        params |= {"budget": BUDGET, "shared": shared}
    if kind == "real":
        weights = {} if mode == "U" else {"eta_weights": 0.7}
        return onkel.OMKCRegressor(**params | REAL[component][0] | {"epsilon": 0.2} | weights | more)
    weights = {} if mode == "U" else {"discount": 0.9}
    return onkel.OMKCClassifier(**params | COMPONENTS[component][0] | weights | more)


CASES = [
    pytest.param(
        *(omkc(kind, component, mode, shared), kind, component, mode, shared),
        id=f"{kind}-{component}-{mode}-{'shared' if shared else 'each'}",
    )
    for kind, modes in (("binary", MODES), ("several", ["DD", "SS"]), ("real", ["U", "DD", "SD"]))
    for component in (REAL if kind == "real" else COMPONENTS)
    for mode in modes
    for shared in ([False, True] if component in BOUNDED else [False])
]


@pytest.mark.parametrize(("estimator", "kind", "component", "mode", "shared"), CASES)
def test_omkc_is_its_box(engine, estimator, kind, component, mode, shared):
    X, y, run = omkc_box(kind, component, mode, shared)
    model = estimator.clone()
    agree(model, X, y, run)
    assert model.engine_ == engine
    if component in BOUNDED:
        assert (run.sizes.sum(axis=1) <= BUDGET).all()
        assert run.sizes[-1].sum() == (BUDGET if shared else BUDGET // M * M)


def test_a_shared_budget_is_the_papers_choice_where_updates_are_sampled(engine):
    for mode, shared in (("DD", False), ("SD", True)):
        X, y, run = omkc_box("binary", "rbp", mode, shared)
        agree(omkc("binary", "rbp", mode, None), X, y, run)


def test_full_kernels_without_terms_skip(engine):
    """With room for three terms in all, most kernels never get one."""
    X, y = binary(100)
    model = onkel.OMKCClassifier(component="rbp", budget=M, shared=True, kernels=KERNELS, mode="DD")
    for i in range(len(y)):
        model.partial_fit(X[[i]], y[[i]], classes=[-1, 1])
        assert model.n_support_ <= M
    hooks = [Slots(seed) for seed in seeds(0, M)]
    run = boxes.omkc(gram(X), y, component="rbp", budget=M, shared=True, choose=hooks)
    np.testing.assert_array_equal(model.sizes_, run.sizes[-1])
    assert (run.sizes[-1] == 0).any() or (run.sizes[-1] == 1).all()


def test_steps_without_the_division(engine):
    for component in ("pa", "bpa"):
        X, y, run = omkc_box("binary", component, "SD", True, divide=False)
        agree(omkc("binary", component, "SD", True, divide=False), X, y, run)
        assert np.abs(run.S - omkc_box("binary", component, "SD", True)[2].S).max() > 1e-3


def test_combination_by_scores(engine):
    X, y, run = omkc_box("binary", "pa", "DS", False, combination="scores")
    agree(omkc("binary", "pa", "DS", False, combination="scores"), X, y, run)


def test_one_component_may_answer(engine):
    """single: the answer is that of the component which one number picks by the weights."""
    X, y, run = omkc_box("binary", "perceptron", "DD", False)
    model = omkc("binary", "perceptron", "DS", False, single=True)
    u = draws("combination", count=1)[:, 0]
    picked = [int(np.searchsorted(np.cumsum(th), v, side="right")) for th, v in zip(run.W[:-1], u, strict=True)]
    wanted = np.where(run.P[np.arange(len(y)), picked] >= 0, 1.0, -1.0)
    np.testing.assert_array_equal(model.learn(X, y), wanted)
    assert len(set(picked)) == M


def test_strict_discount(engine):
    """A component that says 0 keeps its weight, and learns all the same."""
    X, y = binary(1)
    for strict, lost in ((False, 1), (True, 0)):
        model = onkel.OMKCClassifier(kernels=KERNELS, strict_discount=strict).partial_fit(X, y, classes=[-1, 1])
        np.testing.assert_array_equal(model._learned.engine.losses, np.full(M, lost))
        np.testing.assert_array_equal(model.sizes_, 1)


@pytest.mark.parametrize("form", ["sparse", "wide"])
def test_sparse_rows(engine, form):
    for kind, component, mode in (("binary", "pa", "SS"), ("several", "forgetron", "DD")):
        agree(omkc(kind, component, mode, False), *omkc_box(kind, component, mode, False, form))


def test_any_learner_may_be_the_component(engine, tmp_path):
    X, y = binary()
    named = omkc("binary", "bogd", "SD", True)
    given = omkc("binary", "bogd", "SD", True, C=None)
    given.set_params(component=onkel.BOGDClassifier(eta=0.9)).set_params(component__eta=0.3)
    np.testing.assert_array_equal(given.learn(X, y), named.learn(X, y))
    given.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    assert loaded.get_params()["component__eta"] == 0.3
    np.testing.assert_array_equal(loaded.predict(X), given.predict(X))
    projecting = onkel.OMKCClassifier(component=onkel.ProjectronClassifier(budget=9), kernels=KERNELS).fit(X, y)
    assert (projecting.sizes_ == 9).all()
    many = onkel.OMKCClassifier(component=onkel.ProjectronClassifier(), budget=4 * 7, kernels=KERNELS).fit(X, y)
    assert (many.sizes_ == 7).all()


def test_a_component_of_ones_own_runs_in_python():
    class Timid(onkel.KernelPerceptronClassifier):
        def parts(self, kernel):
            class Rarely(Mistake):
                pass

            return Expansion(kernel, self.budget_part()), Rarely(), super().parts(kernel)[2]

    X, y = binary(50)
    model = onkel.OMKCClassifier(component=Timid(), kernels=KERNELS, mode="SD")
    same(model.learn(X, y), onkel.OMKCClassifier(kernels=KERNELS, mode="SD").learn(X, y))
    assert model.engine_ == "python"


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"C": 1.0}, r"C means nothing to the component 'perceptron', got 1.0"),
        ({"component": "rbp", "C": 1.0}, r"C means nothing to the component 'rbp'"),
        ({"budget": 100}, r"budget means nothing to the component 'perceptron', got 100.*rbp"),
        ({"component": "pa", "budget": 100}, r"budget means nothing to the component 'pa'"),
        ({"component": "rbp", "budget": 3}, r"budget must be an integer >= 4, one term for each kernel, got 3"),
        ({"component": "rbp", "budget": 8.5}, r"budget must be an integer >= 4"),
        ({"component": "pa", "shared": True}, r"shared=True means nothing to the component 'pa'"),
        ({"component": "rbp", "shared": "yes"}, r"shared must be None, True or False, got 'yes'"),
        ({"divide": False}, r"divide=False means nothing to Perceptron"),
        ({"component": "pa", "divide": 0}, r"divide must be True or False, got 0"),
        ({"component": "pa", "C": -1.0}, r"OMKCClassifier\.C must be > 0, got -1.0"),
        ({"component": "bogd", "C": -1.0}, r"OMKCClassifier\.C must be > 0, got -1.0"),
        ({"component": "knn"}, r"component must be one of 'perceptron', 'pa', .*got 'knn'"),
        ({"component": onkel.SPAClassifier()}, r"average=False, got SPAClassifier"),
        ({"component": onkel.PARegressor()}, r"for the same task"),
        ({"mode": "SU"}, r"mode must be one of 'U', 'DD', .*got 'SU'"),
        ({"single": True}, r'single=True means nothing to the mode \'DD\': use "DS" or "SS"'),
        ({"discount": 0.0}, r"OMKCClassifier\.discount must be in \(0, 1\], got 0.0"),
        ({"mode": "SD", "smoothing": 1.5}, r"OMKCClassifier\.smoothing must be between 0 and 1, got 1.5"),
        ({"smoothing": 0.1}, r"OMKCClassifier\.smoothing must be left at 0.001 with mode='DD', got 0.1"),
        ({"mode": "U", "discount": 0.9}, r'OMKCClassifier\.discount must be left at 0.99 with mode="U", got 0.9'),
        ({"mode": "U", "strict_discount": True}, r'strict_discount must be left at False with mode="U"'),
        ({"mode": "DS", "single": True, "smoothing": 0.1}, r"OMKCClassifier\.smoothing must be left at 0.001 with"),
        (
            {"component": "pa", "divide": False, "kernels": WIDTHS},
            r"OMKCClassifier\.divide must be left at True with kernels for which k\(x, x\) is 1, got False",
        ),
        ({"combination": "sum"}, r"combination must be one of 'vote', 'scores', got 'sum'"),
        ({"kernels": []}, r"kernels must not be empty"),
    ],
)
def test_bad_parameters_are_refused_by_name(params, told):
    X, y = binary(10)
    with pytest.raises(ValueError, match=told):
        onkel.OMKCClassifier(**{"kernels": KERNELS} | params).fit(X, y)


# -- SPA-OMKL, FOGD-OMKL, NOGD-OMKL, Raker


def sampled(rounds=ROUNDS, seed=SEED):
    """One number a round for each component, from streams of their own."""
    return np.hstack([draws("sampling", own, 1, rounds) for own in seeds(seed, M)])


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("divide", [True, False])
def test_spa_omkl_is_its_box(engine, kind, divide):
    X, y = STREAMS[kind]()
    options = {"eta": 0.3, "alpha": 0.8, "beta": 1.5, "smoothing": 0.05, "divide": divide}
    params = {**options, "kernels": KERNELS, "random_state": SEED}
    if kind == "real":
        options |= {"epsilon": 0.2, "eta_w": 0.7, "combination": "scores", "loss": "epsilon_insensitive"}
        model = onkel.SPAOMKLRegressor(**params, epsilon=0.2, eta_weights=0.7)
    else:
        options |= {"discount": 0.9}
        model = onkel.SPAOMKLClassifier(**params, discount=0.9)
    run = boxes.spa_omkl(gram(X), y, outputs=CLASSES if kind == "several" else 1, uniforms=sampled(), **options)
    agree(model, X, y, run)
    assert 0 < run.sizes[-1].min() < run.sizes[-1].max()


def features(X, kernels, components, shared):
    each = [SEED] * len(kernels) if shared else seeds(SEED, len(kernels))
    keys = np.arange(X.shape[1], dtype=np.uint64)
    drawn = [Fourier(k, components).draw(keys, seed)["directions"] for k, seed in zip(kernels, each, strict=True)]
    return [fourier(X, U) for U in drawn]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", STREAMS)
def test_fogd_omkl_is_its_box(engine, kind, shared):
    X, y = STREAMS[kind]()
    Zs = features(X, WIDTHS, 20, shared)
    params = {"components": 20, "eta": 0.4, "kernels": WIDTHS, "random_state": SEED, "shared_draws": shared}
    options = {"outputs": CLASSES if kind == "several" else 1, "eta": 0.4}
    for loss in ("squared", "absolute") if kind == "real" else ("hinge", "logistic"):
        if kind == "real":
            tube = {"epsilon": 0.2} if loss == "squared" else {}
            model = onkel.FOGDOMKLRegressor(**params, loss=loss, eta_weights=0.7, **tube)
            more = {"loss": loss, "epsilon": 0.2, "eta_w": 0.7, "combination": "scores"}
        else:
            model = onkel.FOGDOMKLClassifier(**params, loss=loss, discount=0.9)
            more = {"loss": loss, "discount": 0.9}
        agree(model, X, y, boxes.fogd_omkl(Zs, y, **options, **more))


def test_shared_draws_are_one_draw_stretched(engine):
    X, y = binary(50)
    model = onkel.FOGDOMKLClassifier(kernels=WIDTHS, shared_draws=True, random_state=SEED, components=5)
    model.fit(X, y)
    keys = np.arange(4, dtype=np.uint64)
    one = Fourier(Gaussian(0.5), 5).draw(keys, SEED)["directions"]
    for kernel in WIDTHS:
        sigma = 1 / math.sqrt(2 * kernel.gamma)
        np.testing.assert_allclose(Fourier(kernel, 5).draw(keys, SEED)["directions"], one / sigma, rtol=1e-14)
    for mixed in ([Gaussian(1.0), Cauchy(1.0)], [Laplacian(1.0), Gaussian(2.0)]):
        with pytest.raises(ValueError, match="kernels of one kind"):
            onkel.FOGDOMKLClassifier(kernels=mixed, shared_draws=True).fit(X, y)
    with pytest.raises(ValueError, match="shared_draws must be True or False, got 1"):
        onkel.FOGDOMKLClassifier(shared_draws=1).fit(X, y)


@pytest.mark.parametrize("kind", STREAMS)
def test_nogd_omkl_is_its_box(engine, kind):
    X, y = STREAMS[kind]()
    kernels = (Gaussian(0.3), Gaussian(1.0), Gaussian(4.0))
    for switch in ("lazy", "eager"):
        words = {"budget": 15, "rank": 6, "eta": 0.2, "switch": switch}
        options = words | {"outputs": CLASSES if kind == "several" else 1}
        if kind == "real":
            model = onkel.NOGDOMKLRegressor(kernels=kernels, epsilon=0.2, eta_weights=0.7, **words)
            options |= {"loss": "squared", "epsilon": 0.2, "eta_w": 0.7, "combination": "scores"}
        else:
            model = onkel.NOGDOMKLClassifier(kernels=kernels, discount=0.9, **words)
            options |= {"discount": 0.9}
        agree(model, X, y, boxes.nogd_omkl(gram(X, kernels), y, **options))


@pytest.mark.parametrize("kind", STREAMS)
def test_raker_is_its_box(engine, kind):
    X, y = STREAMS[kind]()
    Zs = features(X, WIDTHS, 20, False)
    for loss in ("squared", "absolute") if kind == "real" else ("logistic", "hinge"):
        for eta_weights in (None, 0.2):
            face = onkel.RakerRegressor if kind == "real" else onkel.RakerClassifier
            params = {"components": 20, "eta": 0.4, "lam": 0.05, "loss": loss, "eta_weights": eta_weights}
            model = face(**params, kernels=WIDTHS, random_state=SEED)
            options = {"outputs": CLASSES if kind == "several" else 1, "eta": 0.4, "lam": 0.05, "eta_w": eta_weights}
            agree(model, X, y, boxes.raker(Zs, y, loss=loss, **options))


def test_float32_rows_meet_kernels_in_double(engine):
    X, y = binary(form="float32")
    for cls in POOLS:
        kernels = WIDTHS if "FOGD" in cls.__name__ or "Raker" in cls.__name__ else KERNELS
        single, double = cls(kernels=kernels), cls(kernels=kernels)
        np.testing.assert_array_equal(single.learn(X, y), double.learn(X.astype(np.float64), y))
        assert single.state()[1]["run"]["dtype"] == "float32"
        np.testing.assert_array_equal(single.predict(X), double.predict(X.astype(np.float64)))


# -- one kernel is the single learner (section 9), exactly


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    ("pool", "single"),
    [
        (onkel.OMKCClassifier(), onkel.KernelPerceptronClassifier()),
        (onkel.OMKCClassifier(mode="SD"), onkel.KernelPerceptronClassifier()),
        (onkel.OMKCClassifier(component="pa", C=0.3), onkel.PAClassifier(C=0.3)),
        (onkel.OMKCClassifier(component="rbp", budget=9), onkel.RBPClassifier(budget=9)),
        (onkel.OMKCClassifier(component="rbp", budget=9, shared=True), onkel.RBPClassifier(budget=9)),
        (onkel.OMKCClassifier(component="forgetron", budget=9, shared=True), onkel.ForgetronClassifier(budget=9)),
        (onkel.OMKCClassifier(component="bogd", budget=9, shared=True), onkel.BOGDClassifier(budget=9, eta=0.1)),
        (onkel.OMKCClassifier(component="bpa", budget=9, C=0.4, shared=True), onkel.BPAClassifier(budget=9, C=0.4)),
        (onkel.SPAOMKLClassifier(eta=0.3), onkel.SPAClassifier(eta=0.3, beta=3.0, average=False)),
        (onkel.FOGDOMKLClassifier(components=20), onkel.FOGDClassifier(components=20, eta=0.2)),
        (onkel.FOGDOMKLClassifier(components=20, eta=None), onkel.FOGDClassifier(components=20)),
        (
            onkel.FOGDOMKLClassifier(components=20, shared_draws=True),
            onkel.FOGDClassifier(components=20, eta=0.2),
        ),
        (onkel.NOGDOMKLClassifier(budget=15), onkel.NOGDClassifier(budget=15)),
        (onkel.OMKCRegressor(C=0.3), onkel.KernelPerceptronRegressor(eta=0.3)),
        (onkel.SPAOMKLRegressor(beta=5.0), onkel.SPARegressor(eta=0.1, average=False)),
        (onkel.FOGDOMKLRegressor(components=20), onkel.FOGDRegressor(components=20, eta=0.2)),
        (onkel.NOGDOMKLRegressor(budget=15), onkel.NOGDRegressor(budget=15)),
        (onkel.RakerRegressor(components=20), onkel.FOGDRegressor(components=20, eta=0.5, epsilon=0.0)),
    ],
    ids=lambda model: str(model) if isinstance(model, (onkel.OMKCClassifier,)) else None,
)
def test_one_kernel_is_the_single_learner(engine, pool, single, several):
    real = type(pool).__name__.endswith("Regressor")
    if real and several:
        pytest.skip("regression has one kind of stream")
    X, y = (regression if real else multiclass if several else binary)()
    pool = pool.clone({"kernels": [Gaussian(0.7)], "random_state": SEED})
    single = single.clone({"kernel": Gaussian(0.7), "random_state": SEED})
    if "combination" in pool.get_params():
        pool.set_params(combination="scores")
    np.testing.assert_array_equal(pool.learn(X, y), single.learn(X, y))
    state, inner = single.state()[0], pool.state()[0]
    for name, array in state.items():
        np.testing.assert_array_equal(inner[f"0.{name}"], array, err_msg=name)
    if not real:
        pool.set_params(combination="vote")
        fresh = inputs(30, seed=3)
        np.testing.assert_array_equal(pool.clone().fit(X, y).predict(fresh), single.predict(fresh))


# -- laws of the modes


def test_sampling_everything_is_sampling_nothing(engine):
    """smoothing=1 draws every component: SD is DD, and SS is DS up to nothing."""
    X, y = binary()
    for component in ("perceptron", "pa", "rbp"):
        each = {"kernels": KERNELS, "component": component}
        each |= {"budget": BUDGET, "shared": False} if component == "rbp" else {}
        runs = [onkel.OMKCClassifier(mode="DD", **each)]
        runs += [onkel.OMKCClassifier(mode=mode, smoothing=1.0, **each) for mode in ("SD", "DS", "SS")]
        scores = [model.learn(X, y) for model in runs]
        for other in scores[1:]:
            np.testing.assert_array_equal(other, scores[0])


def test_equal_weights_have_the_same_components(engine):
    X, y = binary()
    u, dd = (onkel.OMKCClassifier(mode=mode, kernels=KERNELS).fit(X, y) for mode in ("U", "DD"))
    np.testing.assert_array_equal(u.sizes_, dd.sizes_)
    for name, array in u.state()[0].items():
        if not name.startswith("hedge"):
            np.testing.assert_array_equal(array, dd.state()[0][name])
    np.testing.assert_array_equal(u.weights_, np.full(M, 1 / M))
    assert np.ptp(dd.weights_) > 0


def test_perceptrons_keep_their_mistakes(engine):
    X, y = binary()
    model = onkel.OMKCClassifier(kernels=KERNELS).fit(X, y)
    np.testing.assert_array_equal(model.sizes_, model._learned.engine.losses)


def test_the_hedge_bound_holds_on_every_run():
    """sum_t [answer wrong] <= 2 (ln m + ln(1 / gamma) M_i) / (1 - gamma), for every component i."""
    for seed in range(10):
        for discount in (0.5, 0.9, 0.99):
            X, y = binary(400, seed=seed)
            for cls in POOLS[:4]:
                model = cls(discount=discount, random_state=seed, kernels=WIDTHS)
                wrong = np.sum(np.where(model.learn(X, y) >= 0, 1, -1) != y)
                M_i = model._learned.engine.losses
                bound = 2 * (math.log(len(M_i)) - math.log(discount) * M_i) / (1 - discount)
                assert (wrong <= bound).all()


def test_the_expected_number_of_terms_is_bounded():
    """E[#SV_i] <= alpha T / beta; by Hoeffding the mean over R seeds exceeds it by sqrt(T ln(1/p) / 2R) rarely."""
    T, R, alpha, beta = 400, 60, 1.0, 3.0
    sizes = []
    for seed in range(R):
        X, y = binary(T, seed=seed)
        model = onkel.SPAOMKLClassifier(kernels=KERNELS, random_state=seed, alpha=alpha, beta=beta).fit(X, y)
        sizes.append(model.sizes_)
    margin = math.sqrt(T * math.log(1e9) / (2 * R))
    assert (np.mean(sizes, axis=0) <= alpha * T / beta + margin).all()
    assert np.mean(sizes) > 5


def test_weights_find_the_right_kernel():
    """On labels that only one kernel can tell, the weight goes to it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 2))
    y = np.where(np.sin(9 * X[:, 0]) * np.sin(9 * X[:, 1]) > 0, 1, -1)
    model = onkel.OMKCClassifier(component="pa", kernels=[Linear(), Gaussian(0.01), Gaussian(10.0)]).fit(X, y)
    assert model.weights_[2] > 0.95


# -- side by side


@pytest.mark.parametrize("cls", POOLS)
def test_threads_change_nothing(engine, cls):
    X, y = binary(60)
    kernels = WIDTHS
    one, three = cls(kernels=kernels), cls(kernels=kernels, n_jobs=3)
    np.testing.assert_array_equal(one.learn(X, y), three.learn(X, y))
    a, b = one.state()[0], three.state()[0]
    assert all(np.array_equal(a[name], b[name]) for name in a)


def test_divergence_on_threads_is_raised(engine):
    X, y = regression(60)
    kernels = [Gaussian(1.0), Polynomial(3, 1.0), Polynomial(2, 1.0)]
    model = onkel.NOGDOMKLRegressor(kernels=kernels, eta=1e9, budget=50, n_jobs=2)
    with pytest.raises(FloatingPointError, match=r"row \d+: .*diverges"):
        model.learn(X, y)
    assert all(np.isfinite(a).all() for a in model.state()[0].values())


# -- Hedge itself


def test_default_pools_are_those_of_the_thesis():
    sigmas = sorted(1 / math.sqrt(2 * k.gamma) for k in GAUSSIANS)
    np.testing.assert_allclose(sigmas, 2.0 ** np.arange(-6, 7))
    assert len(POOL) == 16 and {k.degree for k in POOL if isinstance(k, Polynomial)} == {1, 2, 3}


def test_a_hedge_takes_any_learners():
    """Components may themselves be native learners; the pool goes round them in Python."""
    X, y = binary(120)
    whole = onkel.OMKCClassifier(kernels=KERNELS)
    scores = whole.learn(X, y)
    inner = [onkel.KernelPerceptronClassifier(kernel=k).partial_fit(X[:1], y[:1], classes=[-1, 1]) for k in KERNELS]
    pool = Hedge([model._learned.engine for model in inner])
    again = pool.learn(X[1:], y[1:])[0][:, 0]
    pool.losses += 1  # of the first round
    assert np.abs(np.sign(again[50:]) - np.sign(scores[51:])).mean() < 0.2
    assert pool.learn(X[:0], y[:0])[0].shape == (0, 1)


def test_seeds_of_components():
    assert seeds(5, 1) == [5]
    assert len(set(seeds(5, 16))) == 16 and seeds(5, 16)[:3] == seeds(5, 3)


# -- classes that join


def test_classes_join_every_component(engine):
    """Each component's new class has score 0; a pool of two classes answers as before by scores."""
    X, y = binary(80)
    for cls in (onkel.OMKCClassifier, onkel.SPAOMKLClassifier, onkel.NOGDOMKLClassifier):
        model = cls(kernels=KERNELS, combination="scores").fit(X, y)
        before, weights = model.decision_function(X), model.weights_
        model.learn(X[:1], [5], sample_weight=[0.0])
        assert model.classes_.tolist() == [-1, 1, 5]
        after = model.decision_function(X)
        np.testing.assert_allclose(after, np.column_stack([-before / 2, before / 2, 0 * before]), atol=1e-13)
        np.testing.assert_array_equal(model.weights_, weights)
        model.partial_fit(X, np.where(np.arange(80) % 4, y, 5))
        assert np.isfinite(model.decision_function(X)).all()


def test_weights_over_time_are_drawn():
    """plots.trail watches weights_: one line for each kernel, each ending at the last weight."""
    X, y = binary(200)
    model, other = onkel.OMKCClassifier(kernels=KERNELS), onkel.OMKCClassifier(kernels=KERNELS)
    names = [str(kernel) for kernel in KERNELS]
    picture = plots.trail(model, X, y, "weights_", points=10, classes=[-1, 1])
    other.learn(X, y)
    np.testing.assert_array_equal(model.weights_, other.weights_)
    assert picture.startswith("<svg") and all(name in picture for name in names)
    assert picture.count("<polyline") + picture.count("<path") >= M


# -- projections in common


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_shared_draws_are_the_single_learners_of_that_seed(engine, form):
    """Widths that are powers of two stretch a projection exactly: natively nothing differs, in any chunks."""
    X, y = binary(form=form)
    kernels = GAUSSIANS[4:9]
    pool = onkel.FOGDOMKLClassifier(kernels=kernels, components=21, shared_draws=True, random_state=SEED)
    for start, stop in pairwise([0, 1, 40, 120, ROUNDS]):
        pool.learn(X[start:stop], y[start:stop], classes=[-1, 1])
    for i, kernel in enumerate(kernels):
        single = onkel.FOGDClassifier(kernel=kernel, components=21, eta=0.2, random_state=SEED).fit(X, y)
        atol = 0 if engine == "native" else 1e-13  # NumPy's products depend on how many rows there are
        one, other = pool.state()[0][f"{i}.weights.coef"], single.state()[0]["weights.coef"]
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)
    fresh = inputs(70, seed=4, form=form)
    whole = pool.decision_function(fresh)
    np.testing.assert_array_equal(whole, np.concatenate([pool.decision_function(fresh[[i]]) for i in range(70)]))


def test_what_was_looked_at_is_forgotten(engine):
    """A buffer that is used again holds other rows."""
    X, y = binary(64)
    model = onkel.FOGDOMKLClassifier(kernels=WIDTHS, components=9, shared_draws=True)
    model.partial_fit(X, y)
    other = inputs(64, seed=9)
    wanted = model.decision_function(other)
    X[:] = other
    np.testing.assert_array_equal(model.decision_function(X), wanted)
    twin = onkel.FOGDOMKLClassifier(kernels=WIDTHS, components=9, shared_draws=True)
    twin.partial_fit(binary(64)[0], y)
    np.testing.assert_array_equal(model.learn(X, y), twin.learn(other, y))


def test_features_join_shared_draws(engine):
    X, y = binary(60)
    X[:20, 3] = 0
    grown, full = (
        onkel.FOGDOMKLClassifier(kernels=WIDTHS, components=9, shared_draws=True, combination="scores") for _ in "ab"
    )
    for x, t in zip(X, y, strict=True):
        full.learn_one(x, t)
        grown.learn_one({j: v for j, v in enumerate(x.tolist()) if v}, t)
    np.testing.assert_allclose(grown.decision_function(X), full.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("make", [onkel.OMKCClassifier, onkel.SPAOMKLClassifier, onkel.FOGDOMKLClassifier])
@pytest.mark.parametrize("seed", range(3))
def test_engines_agree_on_kernels_that_have_died_out(make, seed):
    """The narrowest kernels of the pool are below the smallest numbers, and vote by the signs of what is left."""
    X = np.random.default_rng(seed).standard_normal((250, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    with onkel.use_engine("python"):
        expected = make().learn(X, y)
    np.testing.assert_allclose(make().learn(X, y), expected, rtol=0, atol=1e-10)
