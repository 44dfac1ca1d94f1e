"""River's own checks for every estimator, and the habits its users rely on."""

import pytest

import onkel

river = pytest.importorskip("river")
from river import checks  # noqa: E402

MODELS = {name: cls for name, cls in onkel.algorithms.estimators().items() if not name.endswith("Detector")}


def cases():
    for name, cls in MODELS.items():
        for number, check in enumerate(checks.yield_checks(cls())):
            yield pytest.param(cls, check, id=f"{name}-{check.__name__}-{number}")


@pytest.mark.parametrize(("cls", "check"), list(cases()))
def test_checks(cls, check):
    check(cls())
