"""Faces: estimators, each with both interfaces, that of scikit-learn and that of river."""

from onkel.faces.classifier import Classifier
from onkel.faces.detector import Detector
from onkel.faces.estimator import Estimator
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor

__all__ = ["Classifier", "Detector", "Estimator", "OneKernel", "Regressor"]
