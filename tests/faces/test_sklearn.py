"""scikit-learn's own checks for every estimator and transformer, and the habits its users rely on."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import onkel
from onkel.kernels import Gaussian, Linear


def expected_failures(estimator):
    """Checks that an online learner fails by its nature, and why."""
    order = "learning twice from a row is not learning once with double weight: the second time it is known"
    if not estimator.online:
        order = "landmarks are chosen among the rows: a row that comes twice may be chosen twice"
    if not isinstance(estimator, onkel.NORMADetector):  # which takes no weights
        return {
            "check_sample_weight_equivalence_on_dense_data": order,
            "check_sample_weight_equivalence_on_sparse_data": order,
        }
    return {}


@parametrize_with_checks(
    [cls() for cls in onkel.algorithms.estimators().values()], expected_failed_checks=expected_failures
)
def test_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([getattr(onkel, name)() for name in onkel.faces.transformers.__all__])
def test_checks_of_transformers(estimator, check):
    check(estimator)


def test_grid_search_over_nested_parameters():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), onkel.OGDClassifier(kernel=Gaussian()))
    grid = {"ogdclassifier__kernel__gamma": [1e-4, 0.03], "ogdclassifier__eta": [0.1, 0.5]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    best = search.best_estimator_[-1]
    assert best.kernel.gamma == search.best_params_["ogdclassifier__kernel__gamma"] == best.kernel_.gamma


def test_nested_parameters_replace_a_part_and_never_change_it():
    kernel = Gaussian(0.5)
    model = onkel.OGDClassifier(kernel=kernel)
    assert model.get_params()["kernel__gamma"] == 0.5
    other = clone(model).set_params(kernel__gamma=2.0)
    assert (model.kernel, kernel.gamma, other.kernel) == (kernel, 0.5, Gaussian(2.0))
    assert onkel.OGDClassifier().set_params(kernel__gamma=3.0).kernel == Gaussian(3.0)
    with pytest.raises(ValueError, match="degree"):
        model.set_params(kernel__degree=2)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nonsense__gamma=2)


def test_probabilities_only_where_the_loss_is_logistic():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = onkel.KLRSGDClassifier(eta=0.5).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert not hasattr(onkel.OGDClassifier(), "predict_proba")
    assert hasattr(onkel.OGDClassifier(loss="logistic"), "predict_proba")


def test_a_regressor_in_cross_validation():
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    assert cross_val_score(onkel.PARegressor(C=0.1, kernel=Linear()), X, y, cv=3).mean() > 0.2
