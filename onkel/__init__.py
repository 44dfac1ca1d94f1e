"""onkel: online kernel learning. Non-linear classifiers and regressors from a stream, in bounded memory."""

from importlib.metadata import PackageNotFoundError, version

from onkel import kernels, losses
from onkel.algorithms import catalogue, estimators
from onkel.algorithms.auto_kernel import *  # noqa: F403
from onkel.algorithms.batch import *  # noqa: F403
from onkel.algorithms.double_update import *  # noqa: F403
from onkel.algorithms.feature_maps import *  # noqa: F403
from onkel.algorithms.feature_pools import *  # noqa: F403
from onkel.algorithms.gradients import *  # noqa: F403
from onkel.algorithms.group_sparsity import *  # noqa: F403
from onkel.algorithms.merging import *  # noqa: F403
from onkel.algorithms.multi_kernel import *  # noqa: F403
from onkel.algorithms.passive_aggressive import *  # noqa: F403
from onkel.algorithms.perceptrons import *  # noqa: F403
from onkel.algorithms.projections import *  # noqa: F403
from onkel.algorithms.pursuit import *  # noqa: F403
from onkel.algorithms.sampling import *  # noqa: F403
from onkel.estimator import load
from onkel.native import use as engine
from onkel.transformers import *  # noqa: F403
from onkel.transformers import __all__ as _transformers
from onkel.tuning import tune

try:
    __version__ = version("onkel")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0"

__all__ = ["catalogue", "engine", "kernels", "load", "losses", "tune", *estimators(), *_transformers]
