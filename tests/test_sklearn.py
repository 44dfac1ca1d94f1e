"""scikit-learn's own checks for every estimator, and the habits its users rely on."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import onkel


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
