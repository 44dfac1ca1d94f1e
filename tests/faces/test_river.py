"""River's own checks for every estimator, and the habits its users rely on."""

import pytest

import onkel

river = pytest.importorskip("river")
from river import base, checks, compose, datasets, evaluate, metrics, preprocessing  # noqa: E402

MODELS = {
    name: cls for name, cls in onkel.algorithms.estimators().items() if cls.online and not name.endswith("Detector")
}


def cases():
    for name, cls in MODELS.items():
        for params in cls._unit_test_params():
            for number, check in enumerate(checks.yield_checks(cls(**params))):
                marks = [pytest.mark.slow] if check.__name__ == "check_bounded_memory_growth" else []
                yield pytest.param(cls(**params), check, id=f"{name}-{check.__name__}-{number}", marks=marks)


@pytest.mark.parametrize(("estimator", "check"), list(cases()))
def test_checks(estimator, check):
    check(estimator.clone())


@pytest.mark.parametrize("name", ["RBPClassifier", "PAClassifier", "KLRSGDClassifier"])
def test_a_pipeline_of_river(name):
    model = preprocessing.StandardScaler() | getattr(onkel, name)()
    metric = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert metric.get() > 0.8
    assert isinstance(model, (compose.Pipeline, base.Classifier))


def test_the_detector_ranks_the_novel_first():
    usual = [(x, 0) for x, _ in datasets.Phishing().take(300)]
    novel = [({name: value + 3 for name, value in x.items()}, 1) for x, _ in datasets.Phishing().take(20)]
    model = onkel.NORMADetector()
    assert isinstance(model, base.AnomalyDetector)
    checks.common.check_learn_one(model.clone(), usual)
    checks.common.check_shuffle_features_no_impact(model.clone(), usual)
    checks.common.check_emerging_features(model.clone(), usual)
    checks.common.check_disappearing_features(model.clone(), usual)
    checks.common.check_pickling(model.clone(), usual)
    checks.anomaly.check_roc_auc(model.clone(), usual + novel)
