"""Papers run again: protocols as TOML, ours beside the printed numbers; and that every file in papers/ is sound."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

import onkel
from onkel import cli
from onkel.papers import comparison, experiment, reproduction
from onkel.papers.experiment import ExperimentError, Trial
from onkel.papers.reproduction import Results

PAPERS = Path(__file__).parents[2] / "papers"
HERE = pytest.mark.skipif(not PAPERS.is_dir(), reason="papers/ is part of the source tree only")

TABLE = """
title = "A small table"
runs = 3
metric = "mistakes"
chosen = "by hand"

[settings]
kernel = { part = "Gaussian", gamma = 0.5 }

[sets.wide]
data = "german"
values = { B = 10 }

[sets.gone]
data = "codrna"
values = { B = 10 }

[algorithms.Perceptron]
estimator = "KernelPerceptronClassifier"

[algorithms.RBP]
estimator = "RBPClassifier"
settings = { budget = "$B" }

[algorithms.OGD]
estimator = "OGDClassifier"
grid = { eta = [0.5, 0.0001] }
on = { gone = { eta = 1.0 } }
"""

PRINTED = """table,set,algorithm,metric,mean,std,note
table1,wide,Perceptron,mistakes,{perceptron},0.5,
table1,wide,Perceptron,seconds,1.2,,
table1,wide,RBP,mistakes,99.9,0.1,
table1,wide,RBP,support,10,0.0,
table1,wide,OGD,mistakes,,,lost in the text
table1,wide,Forgetron,mistakes,20.0,1.0,
table1,gone,Perceptron,mistakes,20.0,1.0,
table2,wide,Perceptron,mistakes,1.0,1.0,
"""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """A paper with one table over one set that is here, and one that is not."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 24)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1).astype(np.int16)
    orders = np.stack([random.permutation(1000) for _ in range(2)])
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "german.npz", X=X, y=y, perms=orders)
    monkeypatch.setenv("ONKEL_DATA", str(tmp_path / "data"))
    reproduction._stream.cache_clear()
    home = tmp_path / "papers" / "key2000words"
    home.mkdir(parents=True)
    (home / "table1.toml").write_text(TABLE)
    (home / "published.csv").write_text(PRINTED.format(perceptron=40.0))
    monkeypatch.chdir(tmp_path)
    yield home
    reproduction._stream.cache_clear()


def mistakes(model, X, y):
    return 100 * np.mean(np.where(model.learn(X, y, classes=[-1, 1]) >= 0, 1, -1) != y)


def test_a_run_is_the_learner_over_the_published_order(paper):
    found = experiment.read("key2000words/table1")
    results = Results(paper / "results.csv")
    reproduction.run(found, results, sets=["wide"], algorithms=["Perceptron", "RBP"])
    with np.load("data/german.npz") as stored:
        X, y, orders = stored["X"].astype(float), stored["y"], stored["perms"]
    kernel = onkel.kernels.Gaussian(0.5)
    for number in range(2):  # two orders are stored, the third is drawn
        rows = orders[number]
        ours = {trial.algorithm: trial for trial in results.trials if trial.run == number}
        expected = mistakes(onkel.KernelPerceptronClassifier(kernel=kernel), X[rows], y[rows])
        assert ours["Perceptron"].error == pytest.approx(expected)
        expected = mistakes(onkel.RBPClassifier(kernel=kernel, budget=10, random_state=number), X[rows], y[rows])
        assert ours["RBP"].error == pytest.approx(expected) and ours["RBP"].support == 10
    assert len({trial.error for trial in results.trials if trial.algorithm == "Perceptron"}) == 3


def test_nothing_is_run_twice(paper):
    found = experiment.read("key2000words/table1")
    made = []
    reproduction.run(found, Results(paper / "results.csv"), runs=1, progress=made.append)
    assert len(made) == 2 + 3  # two settings of OGD are tried, then every row once
    again = Results(paper / "results.csv")
    reproduction.run(found, again, runs=2, progress=made.append)
    assert len(made) == 5 + 3 and len(again.trials) == 8
    assert [trial.error for trial in Results(paper / "results.csv").trials] == pytest.approx(
        [trial.error for trial in made], rel=1e-5
    )


def test_settings_are_chosen_on_an_order_that_is_not_reported(paper):
    found = experiment.read("key2000words/table1")
    results = Results(paper / "results.csv")
    reproduction.run(found, results, runs=2, algorithms=["OGD"])
    choice = [trial for trial in results.trials if trial.run == reproduction.CHOICE]
    tried = {json.loads(trial.settings)["eta"]: trial.error for trial in choice}
    assert set(tried) == {0.5, 0.0001}
    best = min(tried, key=tried.get)
    assert {json.loads(trial.settings)["eta"] for trial in results.trials if trial.run >= 0} == {best}


def test_processes_change_nothing(paper):
    get_reusable_executor().shutdown()  # processes left from another test know another data folder
    found = experiment.read("key2000words/table1")
    one, two = Results(paper / "one.csv"), Results(paper / "two.csv")
    reproduction.run(found, one, runs=2, algorithms=["Perceptron"])
    reproduction.run(found, two, runs=2, algorithms=["Perceptron"], jobs=2)
    first, second = (sorted((trial.identity, trial.error) for trial in results.trials) for results in (one, two))
    assert first == second


def test_absent_sets_are_said_to_be_absent(paper):
    found = experiment.read("key2000words/table1")
    here, absent = reproduction.available(found)
    assert [dataset.name for dataset in here] == ["wide"] and "codrna" in absent["gone"]
    cells = comparison.compare(found, Results(paper / "results.csv"))
    assert [cell.counts for cell in cells if cell.set == "gone"] == [False]


def test_kept_runs_are_compared_without_the_data(paper, monkeypatch):
    found = experiment.read("key2000words/table1")
    results = Results(paper / "results.csv")
    reproduction.run(found, results, runs=1)
    with_data = comparison.compare(found, results)
    monkeypatch.setenv("ONKEL_DATA", str(paper))
    assert reproduction.available(found)[0] == []
    assert comparison.compare(found, results) == with_data and any(c.ours for c in with_data)


def cell(theirs, deviation, *ours, metric="mistakes"):
    return comparison.Comparison("set", "A", metric, theirs, deviation, "", ours, counts=True, why="")


@pytest.mark.parametrize(
    ("made", "difference", "verdict"),
    [
        (cell("35.2", "0.9", 35.2), 0.0, "within 1"),
        (cell("35.2", "0.9", 35.24), 0.0, "within 1"),  # the printed digit could hide it
        (cell("35.2", "0.5", 35.2 + 0.05 + 0.5), 1.0, "within 1"),
        (cell("35.2", "0.5", 35.2 + 0.05 + 0.75), 1.5, "within 2"),
        (cell("35.2", "0.5", 35.0, 38.0), (36.5 - 35.25) / 0.5, "worse"),
        (cell("35.2", "0.5", 30.0), -(5.2 - 0.05) / 0.5, "better"),
        (cell("85.2", "0.5", 90.0, metric="accuracy"), (4.8 - 0.05) / 0.5, "better"),
        (cell("85.2", "0.5", 80.0, metric="accuracy"), -(5.2 - 0.05) / 0.5, "worse"),
        (cell("9.71", "0.00", 9.73), (0.02 - 0.005) / 0.005, "worse"),  # a deviation printed as 0 is half a digit
        (cell("9.9e3", "", 9000.0, metric="support"), None, ""),
        (cell("", "", 9000.0, metric="support"), None, ""),
        (cell("1.2", "0.1", 9000.0, metric="seconds"), (9000 - 1.25) / 0.1, ""),
        (cell("1.2", "0.1"), None, ""),
    ],
)
def test_differences_in_printed_deviations(made, difference, verdict):
    assert made.difference == (None if difference is None else pytest.approx(difference))
    assert made.verdict == verdict


def test_what_counts(paper):
    found = experiment.read("key2000words/table1")
    results = Results(paper / "results.csv")
    reproduction.run(found, results)
    cells = {(c.set, c.algorithm, c.metric): c for c in comparison.compare(found, results)}
    assert cells["wide", "Perceptron", "mistakes"].counts
    assert cells["wide", "RBP", "mistakes"].verdict == "better"
    assert cells["wide", "RBP", "support"].difference == 0
    assert not cells["wide", "Perceptron", "seconds"].counts
    assert not cells["wide", "OGD", "mistakes"].counts  # lost
    unknown = cells["wide", "Forgetron", "mistakes"]
    assert unknown.counts and not unknown.verdict and "not run" in unknown.why
    (paper / "table1.toml").write_text(TABLE.replace("[sets.gone]", 'differs = "half of it"\n[sets.gone]'))
    changed = comparison.compare(experiment.read("key2000words/table1"), results)
    assert not any(c.counts for c in changed) and any(c.verdict for c in changed)


def test_files_and_the_shell(paper, capsys):
    status = cli.main(["reproduce", "key2000words/table1", "--runs", "2", "--quiet", "--output", "out"])
    printed = capsys.readouterr()
    assert status == 0 and "Perceptron" in printed.out and "gone is absent" in printed.err
    page = Path("out/table1.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "<small>±" in page and "Not run: codrna" in page
    with open("out/table1-compared.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7 and rows[0]["runs"] == "2" and rows[0]["printed"] == "40.0"
    text = Path("out/table1.md").read_text()
    for words in ("## wide", "Not run: codrna", "commit", "seeds", "chosen from"):
        assert words in text
    assert cli.main(["reproduce", "key2000words/table1", "--runs", "2", "--quiet", "--output", "out", "--json"]) == 0
    assert {row["algorithm"] for row in json.loads(capsys.readouterr().out)} == {"Perceptron", "RBP", "OGD"}
    assert cli.main(["reproduce"]) == 0
    assert "key2000words/table1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("reproduce key2000words/table9", "there is no experiment"),
        ("reproduce nothing.toml", "there is no experiment nothing.toml"),
        ("reproduce key2000words/table1 --sets narrow", "no set 'narrow'"),
        ("reproduce key2000words/table1 --algorithms Magic", "no algorithm 'Magic'"),
        ("reproduce key2000words/table1 --sets gone", "no set of key2000words/table1 is here"),
    ],
)
def test_problems_get_a_sentence(paper, capsys, words, sentence):
    assert cli.main(words.split()) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('metric = "mistakes"', 'metric = "luck"', "metric must be one of"),
        ("runs = 3", 'runs = 3\nprotocol = "dream"', "protocol must be one of"),
        ('"RBPClassifier"', '"RPBClassifier"', "no estimator 'RPBClassifier'"),
        ('"$B"', '"$C"', "has no value 'C'"),
        ('"$B"', "0", "RBP on wide"),
        ("gamma = 0.5", "width = 0.5", "Perceptron on wide"),
        ("on = { gone", "on = { lost", "none of the sets"),
        ("on = { gone", 'zero = "0"\non = { gone', "zero must be"),
        ('data = "german"', 'datum = "german"', "datum"),
        ('data = "german"', 'data = "german"\nscale = "huge"', "scale of wide must be"),
        ("[sets.wide]", "[sets.wide", "not a TOML file"),
    ],
)
def test_mistakes_in_a_file_are_named(paper, old, new, sentence):
    assert old in TABLE
    (paper / "table1.toml").write_text(TABLE.replace(old, new))
    with pytest.raises(ExperimentError, match=sentence):
        experiment.read("key2000words/table1")


def test_without_a_source_tree_a_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment, "__file__", str(tmp_path / "lib" / "site" / "onkel" / "papers" / "experiment.py"))
    with pytest.raises(ExperimentError, match="not installed; run this in a checkout"):
        experiment.names()


def test_a_score_of_zero_may_be_a_mistake():
    y, classes = np.array([-1, 1, 1]), np.array([-1, 1])
    assert reproduction._Zero(_Model(), "wrong").learn(None, y, classes=classes).tolist() == [1.0, -1.0, 2.0]
    assert reproduction._Zero(_Model(), "-1").learn(None, y, classes=classes).tolist() == [-1.0, -1.0, 2.0]
    assert reproduction._Zero(_Model(), "-1").n_support_ == 7


class _Model:
    n_support_ = 7

    def learn(self, X, y, classes):
        return np.array([0.0, 0.0, 2.0])


FIGURE = """
title = "A small figure"
runs = 2
metric = "mistakes"

[figure]
horizontal = "{horizontal}"
vertical = ["mistakes", "seconds"]

[settings]
kernel = {{ part = "Gaussian", gamma = 0.5 }}

[sets.wide]
data = "german"
limit = 300

[algorithms.RBP]
estimator = "RBPClassifier"
{sweep}
"""


@pytest.mark.parametrize("horizontal", ["budget", "seconds", "support", "seen"])
def test_figures(paper, horizontal):
    sweep = "" if horizontal == "seen" else "sweep = { budget = [5, 20, 80] }"
    (paper / "figure1.toml").write_text(FIGURE.format(horizontal=horizontal, sweep=sweep))
    found = experiment.read("key2000words/figure1")
    results = Results(paper / "results" / "figure1.csv")
    reproduction.run(found, results)
    curve = comparison._curve(found, results, "wide", found.contenders["RBP"], "mistakes")
    x = [point[0] for point in curve]
    if horizontal == "seen":
        assert x == list(range(15, 301, 15))
    elif horizontal != "seconds":
        assert x == [5, 20, 80]
    assert len(curve) == len(x) and all(0 < y < 100 for _, y in curve)
    written = {path.name for path in comparison.write(found, results)}
    assert {"figure1-wide-mistakes.svg", "figure1-wide-seconds.svg", "figure1.md", "figure1.html"} == written


def test_holdout_learns_from_one_part_and_is_tested_on_the_other(paper):
    held = 'protocol = "holdout"\n' + TABLE.replace('data = "german"', 'data = "german"\nholdout = 0.25')
    (paper / "table1.toml").write_text(held.replace("mistakes", "accuracy"))
    found = experiment.read("key2000words/table1")
    results = Results(paper / "results.csv")
    reproduction.run(found, results, runs=1)
    assert {trial.seen for trial in results.trials if trial.run >= 0} == {750}
    assert {trial.seen for trial in results.trials if trial.run == reproduction.CHOICE} == {600}  # of 750
    rows = np.load("data/german.npz")["perms"][0]
    X, y = (np.load("data/german.npz")[name][rows] for name in "Xy")
    model = onkel.KernelPerceptronClassifier(kernel=onkel.kernels.Gaussian(0.5)).fit(X[:750].astype(float), y[:750])
    ours = next(trial for trial in results.trials if trial.algorithm == "Perceptron")
    assert ours.error == pytest.approx(100 * np.mean(model.predict(X[750:].astype(float)) != y[750:]))


def test_metrics_of_a_run():
    made = Trial("set", "A", "{}", "{}", 0, seen=200, error=25.0, support=50.0, seconds=120.0)
    values = {name: value(made) for name, (value, _) in experiment.METRICS.items()}
    assert values["accuracy"] == 75 and values["sparsity"] == 75 and values["rmse"] == 5 and values["minutes"] == 2


def test_the_summary_judges_what_is_kept(paper, capsys):
    found = experiment.read("key2000words/table1")
    reproduction.run(found, Results(paper / "results" / "table1.csv"))
    assert cli.main(["reproduce", "--summary"]) == 0
    page = capsys.readouterr().out
    cells = [c for c in comparison.compare(found, Results(paper / "results" / "table1.csv")) if c.counts]
    done = [c for c in cells if c.verdict]
    good = [c for c in done if c.verdict != "worse"]
    assert f"**{len(good)} of the {len(done)} cells that were run" in page
    assert f"{len(cells) - len(done)} of the {len(cells)} that count were not run" in page and "Forgetron" in page
    close = [c for c in done if c.difference is not None and abs(c.difference) <= 2]
    assert f"{len(close)} ({100 * len(close) / len(done):.1f} %) are within two" in page
    assert all("key2000words/" in row for row in page.partition("## Not run")[2].split("\n- ")[1:2])


# -- the papers themselves


@HERE
@pytest.mark.parametrize("path", sorted(PAPERS.glob("*/*.toml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_protocol_can_be_built(path):
    found = experiment.read(path)  # constructs every estimator with every setting
    assert found.title and found.chosen and found.runs >= 1 and found.contenders
    assert found.figure or found.published
    named = {(row["set"], row["algorithm"]) for row in found.published}
    for name, algorithm in named:
        assert name in found.sets and algorithm in found.contenders
    for place in found.reasons:
        name, _, algorithm = place.partition("/")
        assert name in found.sets and algorithm in found.contenders


@HERE
@pytest.mark.parametrize("paper_", sorted(path.name for path in PAPERS.glob("*/")))
def test_every_paper_is_complete(paper_):
    home = PAPERS / paper_
    assert f"{{{paper_}," in (home / "reference.bib").read_text()
    assert (home / "README.md").is_file()
    tables = {path.stem for path in home.glob("*.toml")}
    for row in experiment.published(home):
        assert row["table"] in tables and row["set"] and row["algorithm"] and row["metric"]
        for value in (row["mean"], row["std"]):
            assert not value or (math.isfinite(float(value)) and float(value) >= 0)
        assert row["mean"] or "lost" in row["note"]
        assert not row["std"] or row["mean"]
    rows = [tuple(row[name] for name in ("table", "set", "algorithm", "metric")) for row in experiment.published(home)]
    assert len(rows) == len(set(rows))


@HERE
@pytest.mark.parametrize("path", sorted(PAPERS.glob("*/*.toml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_kept_results_are_of_the_protocol(path):
    found = experiment.read(path)
    for trial in Results(path.parent / "results" / f"{path.stem}.csv").trials:
        assert trial.set in found.sets and trial.algorithm in found.contenders
        assert trial.seen > 0 and trial.seconds >= 0 and trial.run >= reproduction.CHOICE
