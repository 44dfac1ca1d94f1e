"""The quick tests cover every composition of parts."""

from collections import defaultdict

import pytest
import rings
from streams import EVERY, settings


@pytest.fixture
def collected(request):
    """What the tests over the estimators try, by function, and what the quick ones of them try."""
    found = defaultdict(lambda: ([], []))
    for one, quick in request.config.stash[rings.TRIED]:
        found[one.function][0].append(one)
        if quick:
            found[one.function][1].append(one)
    return found


def test_every_function_tries_every_composition_of_parts_in_the_quick_ring(collected):
    for function, (every, quick) in collected.items():
        assert {one[1:3] for one in quick} == {one[1:3] for one in every}, function


def test_every_variation_of_a_function_is_quick_somewhere(collected):
    """Of the form of the input, the average and the like: where there are enough compositions to vary them."""
    for function, (every, quick) in collected.items():
        for name in rings.VARIED:
            values = [{dict(one.variation).get(name) for one in ones} for ones in (every, quick)]
            assert values[0] == values[1] or len({one.composition for one in every}) < 12, (function, name)


def test_every_composition_of_the_catalogue_is_tried_one_by_one_and_in_chunks(collected):
    law = next((quick for function, (_, quick) in collected.items() if function.endswith("::test_any_chunking")), None)
    if law is None:
        pytest.skip("that law is not among the tests of this run")
    wanted = {rings.composition((name, number)) for name in EVERY for number in range(len(settings(name)))}
    for engine in ("python", "native"):
        assert {one.composition for one in law if ("engine", repr(engine)) in one.rest} == wanted, engine
