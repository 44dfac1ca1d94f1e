"""onkel: online kernel learning. Non-linear classifiers and regressors from a stream, in bounded memory.

`PUBLIC` says every public name once, under the module that defines it. A module is loaded when one of its names is
first used. Type checkers read the same names in the stub beside this file.
"""

import importlib
from typing import Any

PUBLIC = {
    "onkel": (
        *("core", "kernels", "losses", "maps", "updates", "hypotheses", "budgets", "learners", "native", "faces"),
        *("algorithms", "datasets", "evaluation", "papers"),
    ),
    "onkel.core.errors": ("Diverged",),
    "onkel.core.limits": ("use_limits",),
    "onkel.core.version": ("__version__",),
    "onkel.hypotheses": ("Expansion", "Features"),
    "onkel.learners.learner": ("Learner",),
    "onkel.native": ("use_engine",),
    "onkel.faces.transformers": (
        *("FastfoodTransformer", "FourierTransformer", "NystromTransformer", "OrthogonalTransformer"),
        "ReparameterizedTransformer",
    ),
    "onkel.algorithms": ("catalogue", "load"),
    "onkel.algorithms.auto_kernel": ("AutoKernelClassifier", "AutoKernelRegressor"),
    "onkel.algorithms.batch": ("LLSVMClassifier", "LLSVMRegressor"),
    "onkel.algorithms.budgeted_gradients": (
        *("BOGDClassifier", "BOGDRegressor", "BOGDPlusPlusClassifier", "BOGDPlusPlusRegressor", "BSGDClassifier"),
    ),
    "onkel.algorithms.composed": ("ComposedClassifier", "ComposedRegressor"),
    "onkel.algorithms.double_update": ("BDUOLClassifier", "DUOLClassifier"),
    "onkel.algorithms.feature_maps": (
        *("DualSGDClassifier", "DualSGDRegressor", "FOGDClassifier", "FOGDRegressor"),
        *("NOGDClassifier", "NOGDRegressor", "RRFClassifier", "RRFRegressor"),
    ),
    "onkel.algorithms.feature_pools": (
        *("AdaRakerClassifier", "AdaRakerRegressor", "FOGDOMKLClassifier", "FOGDOMKLRegressor"),
        *("NOGDOMKLClassifier", "NOGDOMKLRegressor", "RakerClassifier", "RakerRegressor"),
    ),
    "onkel.algorithms.gradients": (
        *("ILKClassifier", "KLMSRegressor", "KLRSGDClassifier", "NORMAClassifier", "NORMADetector", "NORMARegressor"),
        *("OGDClassifier", "OGDRegressor", "PegasosClassifier"),
    ),
    "onkel.algorithms.group_sparsity": ("OM2Classifier", "ProximalMKLClassifier", "ProximalMKLRegressor"),
    "onkel.algorithms.merging": ("TVMClassifier",),
    "onkel.algorithms.multi_kernel": ("OMKCClassifier", "OMKCRegressor", "SPAOMKLClassifier", "SPAOMKLRegressor"),
    "onkel.algorithms.passive_aggressive": ("PAClassifier", "PARegressor"),
    "onkel.algorithms.perceptrons": (
        *("BudgetPerceptronClassifier", "ForgetronClassifier", "ForgetronRegressor", "KernelPerceptronClassifier"),
        *("KernelPerceptronRegressor", "RBPClassifier", "RBPRegressor", "StoptronClassifier", "StoptronRegressor"),
        "TighterPerceptronClassifier",
    ),
    "onkel.algorithms.projections": (
        *("BPAClassifier", "ProjectronClassifier", "ProjectronPlusPlusClassifier", "ProjectronRegressor"),
    ),
    "onkel.algorithms.pursuit": (
        *("FSGDClassifier", "FSGDRegressor", "IncDecClassifier", "IncDecRegressor", "KNLMSRegressor", "KRLSRegressor"),
        *("POLKClassifier", "POLKRegressor", "PlattRANRegressor", "QKLMSRegressor", "SubsetSelectionClassifier"),
        "SubsetSelectionRegressor",
    ),
    "onkel.algorithms.sampling": (
        *("OSKLClassifier", "OSKLRegressor", "SPAClassifier", "SPARegressor", "SparseKLRClassifier"),
    ),
    "onkel.evaluation.prequential": ("evaluate",),
    "onkel.evaluation.race": ("race",),
    "onkel.evaluation.tuning": ("tune",),
}

_FOUND = {name: module for module, names in PUBLIC.items() for name in names}
__all__ = [name for name in _FOUND if name != "__version__"]


def __getattr__(name: str) -> Any:
    """The public name, loaded when it is first asked for."""
    if name not in _FOUND:
        raise AttributeError(f"module 'onkel' has no attribute {name!r}")
    module = _FOUND[name]
    if module == __name__:
        return importlib.import_module(f"{module}.{name}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted(_FOUND)
