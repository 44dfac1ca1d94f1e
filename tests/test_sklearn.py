"""scikit-learn's own checks for every estimator, and the habits its users rely on."""

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
    if hasattr(estimator, "learn") and not isinstance(estimator, onkel.NORMADetector):
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
