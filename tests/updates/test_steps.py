"""Steps: what the presets do not show."""

from onkel.updates import Gradient


def test_schedules():
    assert [Gradient(0.6).rate(t) for t in (1, 4)] == [0.6, 0.6]
    assert [Gradient(0.6, schedule="1/t").rate(t) for t in (1, 4)] == [0.6, 0.15]
    assert [Gradient(0.6, schedule="1/sqrt(t)").rate(t) for t in (1, 4)] == [0.6, 0.3]
