"""Native: the C++ counterparts (twins) of parts and loops, and the choice between them and the Python engine."""

from onkel.native.choice import available, description, use_engine
from onkel.native.engines import NativeHedge, NativeLearner, fastest, has_twin, learn_together, twin
from onkel.native.text import parse_libsvm, parse_table

__all__ = [
    "NativeHedge",
    "NativeLearner",
    "available",
    "description",
    "fastest",
    "has_twin",
    "learn_together",
    "parse_libsvm",
    "parse_table",
    "twin",
    "use_engine",
]
