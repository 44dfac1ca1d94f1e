"""Native: the twins of parts and loops in C++, and the choice between them and the definitions in Python."""

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
