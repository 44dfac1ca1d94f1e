"""The shell command: what it prints, what it refuses in which words, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import onkel
from onkel import datasets
from onkel.algorithms import Entry, find
from onkel.cli import algorithms, main, models, progress, race, show
from onkel.cli.commands import COMMANDS
from onkel.cli.lineup import BUDGETS, GAMMAS, LINEUP
from onkel.core.wording import counted
from onkel.datasets.sources import Source
from onkel.evaluation import report
from onkel.evaluation.totals import trivial

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small CSV file: two blobs, a text column, an integer and a real target."""
    random = np.random.default_rng(0)
    side = random.integers(0, 2, size=60)
    x = random.normal(size=(60, 2)) * [1, 1000] + side[:, None] * [4, 4000]
    rows = [
        f"{a:.4f},{b:.2f},row {i},{('no', 'yes')[k]},{a + 3:.3f}"
        for i, ((a, b), k) in enumerate(zip(x, side, strict=True))
    ]
    path = tmp_path / "blobs.csv"
    path.write_text("\n".join(["a,b,id,answer,level", *rows]) + "\n")
    return path


def refused(capsys: Capture, *words: object) -> str:
    """The sentence on standard error of a command that must end with status 2 and say nothing else."""
    assert main([str(word) for word in words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("onkel: ")
    assert output.err.count("\n") == 1
    return output.err


def shell(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from onkel.cli import main; sys.exit(main())", *words]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", **changes}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


# -- race


def race_of(table: Path) -> list[str]:
    return ["race", str(table), "--target", "answer", "--drop", "id,level"]


def test_a_file_is_raced_by_the_whole_lineup(table: Path, capsys: Capture) -> None:
    assert main(race_of(table)) == 0
    out = capsys.readouterr().out
    assert out.startswith("blobs.csv: 60 rows; features standardised over the whole stream\n")
    assert "classification, 2 classes; 60 examples, 2 features; 1 shuffled order" in " ".join(out.split())
    for name in LINEUP["classification"]:
        assert f"\n{name} " in out
    assert all(len(row) <= 80 for row in out.splitlines())


def test_the_numbers_are_those_of_evaluate(table: Path, capsys: Capture) -> None:
    words = [*race_of(table), "--algorithms", "PA,rbp"]
    assert main([*words, "--budget", "5", "--orders", "3", "--seed", "4", "--gamma", "0.7", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    kernel = onkel.kernels.Gaussian(0.7)
    expected = onkel.race(
        {
            "PA": onkel.PAClassifier(kernel=kernel, C=1.0, random_state=4),
            "RBP": onkel.RBPClassifier(kernel=kernel, budget=5, random_state=4),
        },
        datasets.read(table, target="answer", drop=["id", "level"]).scaled(),
        orders=3,
        seed=4,
    )
    (race,) = data["races"]
    assert {row["name"]: (row["error"], row["deviation"], row["size"]) for row in race["results"]} == {
        result.name: (result.error, result.deviation, result.size) for result in expected.results
    }
    assert race["results"][0]["seen"][-1] == 60
    assert len(race["results"][0]["curve"]) == len(race["results"][0]["seen"])
    assert {row["name"]: row["settings"].get("budget") for row in race["results"]} == {"PA": None, "RBP": "5"}
    assert data["environment"]["onkel"].startswith(onkel.__version__)


def test_regression_by_the_look_of_the_target(table: Path, capsys: Capture) -> None:
    assert main(["race", str(table), "--target", "level", "--drop", "id,answer", "--algorithms", "OGD"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "regression; 60 examples" in out
    assert "target standardised" in out
    assert "RMSE" in out


def test_scale_none_and_keep_order(table: Path, capsys: Capture) -> None:
    words = [*race_of(table), "--algorithms", "PA", "--json"]
    assert main([*words, "--scale", "none", "--keep-order", "--orders", "5"]) == 0
    (race,) = json.loads(capsys.readouterr().out)["races"]
    stream = datasets.read(table, target="answer", drop=["id", "level"])
    trace = onkel.evaluate(onkel.PAClassifier(), stream.X, stream.y)
    assert race["results"][0]["error"] == trace.error[-1]
    assert race["results"][0]["orders"] == 1


def test_limit(table: Path, capsys: Capture) -> None:
    words = [*race_of(table), "--algorithms", "PA", "--limit", "20"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "20 examples" in out
    assert " sd " not in out  # of one order there is none
    assert main([*words, "--orders", "2"]) == 0
    assert " sd " in capsys.readouterr().out


def test_npz_and_libsvm_files(tmp_path: Path, capsys: Capture) -> None:
    stream = datasets.load("breast_cancer")
    np.savez(tmp_path / "data.npz", X=stream.X[:50], y=stream.y[:50])
    assert main(["race", str(tmp_path / "data.npz"), "--algorithms", "PA"]) == 0
    rows = [
        f"{1 if y == 'benign' else -1} 1:{x[0]:.3f} 7:{x[1]:.3f}" for x, y in zip(stream.X[:50], stream.y, strict=False)
    ]
    (tmp_path / "data.svm").write_text("\n".join(rows) + "\n")
    assert main(["race", str(tmp_path / "data.svm"), "--algorithms", "PA"]) == 0
    assert "features divided by their largest magnitude" in " ".join(capsys.readouterr().out.split())


def test_demo_and_its_report(tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "demo.html"
    assert main(["race", "--limit", "40", "--report", str(page)]) == 0
    output = capsys.readouterr()
    for name in datasets.DEMO:
        assert f"\n{name}: " in "\n" + output.out
    assert f"report: {page}" in output.err
    text = page.read_text(encoding="utf-8")
    assert "At a glance" in text
    assert f"--report {page}" in text
    assert all(name in text for line in LINEUP.values() for name in line)


def test_figures_are_written(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "new" / "figures"
    words = ["race", "digits", "--limit", "50", "--algorithms", "PA,FOGD", "--measures", "hinge_loss"]
    assert main([*words, "--figures", str(folder)]) == 0
    assert f"figures: {folder}" in capsys.readouterr().err
    kinds = ["error-by-time", "error-so-far", "hinge-loss", "recent-error", "support-vectors", "time"]
    assert sorted(file.name for file in folder.iterdir()) == [f"digits-{kind}.svg" for kind in kinds]
    assert "the figures cannot be written" in refused(capsys, *words, "--figures", folder / "digits-time.svg")


def test_an_embedded_stream_by_name(capsys: Capture) -> None:
    assert main(["race", "digits", "--limit", "50", "--algorithms", "KernelPerceptron", "--quiet"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert "10 classes; 50 examples" in output.out


def test_an_algorithm_races_where_it_can(capsys: Capture) -> None:
    assert main(["race", "demo", "--limit", "30", "--algorithms", "KLMS,Pegasos", "--json"]) == 0
    races = json.loads(capsys.readouterr().out)["races"]
    assert {race["stream"]: [row["name"] for row in race["results"]] for race in races} == {
        "breast_cancer": ["Pegasos"],
        "digits": ["Pegasos"],
        "drift": ["Pegasos"],
        "diabetes": ["KLMS"],
    }


def test_all_algorithms(capsys: Capture) -> None:
    assert main(["race", "diabetes", "--limit", "30", "--algorithms", "all", "--json"]) == 0
    names = {row["name"] for row in json.loads(capsys.readouterr().out)["races"][0]["results"]}
    assert names == {entry.name for entry in onkel.catalogue() if entry.online and "regression" in entry.classes}


def test_the_lineup_exists() -> None:
    for task, line in LINEUP.items():
        for name, settings in line.items():
            (entry,) = (entry for entry in onkel.catalogue() if entry.name == name)
            entry.classes[task](**settings)
    assert set(GAMMAS) == set(BUDGETS) == set(datasets.DEMO)


def test_what_is_not_finite_is_null_in_json() -> None:
    assert [show.finite(value) for value in (1.5, float("inf"), float("nan"), "x", None)] == [
        1.5,
        None,
        None,
        "x",
        None,
    ]


# -- refusals


def test_problems_are_told_in_a_sentence(table: Path, tmp_path: Path, capsys: Capture) -> None:
    assert (
        "needs a target column: target= (at the shell --target NAME); its columns are a, b, id, answer, level"
        in refused(capsys, "race", table)
    )
    assert "no column 'Answer'" in refused(capsys, "race", table, "--target", "Answer")
    assert "line 2, column 'id': 'row 0' is not a number" in refused(capsys, "race", table, "--target", "answer")
    assert "there is no file nowhere.csv" in refused(capsys, "race", "nowhere.csv", "--target", "y")
    assert "no file and no stream 'nofile'" in refused(capsys, "race", "nofile", "--target", "y")
    assert "no stream 'digit'; did you mean digits?" in refused(capsys, "race", "digit")
    assert "--target is for files" in refused(capsys, "race", "demo", "--target", "y")
    assert "--keep-order is for files" in refused(capsys, "race", "digits", "--keep-order")
    assert "no algorithm is called 'Perzeptron'" in refused(capsys, "race", "--algorithms", "Perzeptron")
    assert "KLMS does regression, not classification" in refused(capsys, "race", "digits", "--algorithms", "KLMS")
    assert "the report cannot be written" in refused(capsys, "race", "--report", tmp_path / "none" / "page.html")
    assert "the report cannot be written" in refused(capsys, "race", "--report", tmp_path)
    for words, wanted in (
        (("race", "digits", "--jobs", "0"), "must be a whole number >= 1 or -1, got '0'"),
        (("run", "digits", "--every", "nan"), "must be a number >= 0, got 'nan'"),
        (("tune", "digits", "--cost", "0"), "must be a number > 0, got '0'"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(list(words))
        assert wanted in capsys.readouterr().err


def test_a_setting_that_a_learner_refuses_names_the_learner(capsys: Capture) -> None:
    sentence = refused(capsys, "race", "breast_cancer", "--algorithms", "PA,BOGD", "--budget", "1", "--limit", "9")
    assert "BOGD on breast_cancer: " in sentence
    assert "budget" in sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["race", "--budget", "0"], "argument --budget: must be a whole number >= 1, got '0'"),
        (["race", "--orders", "two"], "argument --orders: must be a whole number >= 1, got 'two'"),
        (["race", "--seed", "-1"], "argument --seed"),
        (["race", "--gamma", "-1"], "argument --gamma"),
        (["race", "--gamma", "wide"], "argument --gamma: must be a number > 0, got 'wide'"),
        (["race", "--budget", "-3"], "argument --budget: must be a whole number >= 1, got '-3'"),
        (["race", "--algorithms", ","], "argument --algorithms: name at least one"),
        (["race", "--task", "ranking"], "argument --task: invalid choice"),
        (["rase"], "invalid choice: 'rase'"),
        ([], "COMMAND"),
    ],
)
def test_words_that_make_no_sense(words: list[str], sentence: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert sentence in told and told.startswith("onkel") and told.count("\n") == 1


@pytest.mark.parametrize("entry", onkel.catalogue(), ids=lambda entry: entry.name)
def test_every_name_of_the_papers_is_that_algorithm_or_variant(entry: Entry) -> None:
    for alias in entry.aliases:
        assert find(alias) == entry
        assert alias.lower() != entry.name.lower()
    for task, cls in entry.classes.items():
        for variant, settings in cls.variants.items():
            found = find(variant.upper())
            assert (found.name, found.title, found.settings) == (entry.name, variant, settings)
            assert found.classes[task] is cls
            cls(**settings)._check_params()
            assert [name for name, other in cls.variants.items() if other == settings] == [variant]


def test_hyphens_make_no_other_learner(table: Path, capsys: Capture) -> None:
    assert main([*race_of(table), "--algorithms", "BPA-S,bpas,BPAS", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["races"]
    assert [result["name"] for result in found["results"]] == ["BPA-S"]
    spelt = {name.replace("-", "").lower() for entry in onkel.catalogue() for name in (entry.name, *entry.variants)}
    assert len(spelt) == sum(1 + len(entry.variants) for entry in onkel.catalogue())


def test_variants_are_learners_of_their_own(table: Path, capsys: Capture) -> None:
    assert main([*race_of(table), "--algorithms", "BSGD-M,BSGD,bsgd", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["races"]
    kinds = {result["name"]: result["settings"]["maintenance"] for result in found["results"]}
    assert kinds == {"BSGD-M": "merge", "BSGD": "remove"}
    words = ["--algorithms", "BSGD-M,BSGD", "--try", "gamma=0.1", "--try", "lam=0.1", "--json"]
    assert main(["tune", *race_of(table)[1:], *words]) == 0
    tuned = json.loads(capsys.readouterr().out)["candidates"]
    kinds = {one["name"]: one["settings"]["maintenance"] for one in tuned}
    assert kinds == {"BSGD maintenance=merge gamma=0.1 lam=0.1": "merge", "BSGD gamma=0.1 lam=0.1": "remove"}
    assert models.make("BDUOL_near", "classification", {}).maintenance == "nearest"
    assert models.make("BSGD-M", "classification", {"maintenance": "project"}).maintenance == "project"
    assert main(["algorithms", "BSGD"]) == 0
    shown = capsys.readouterr().out
    assert "also called: -\n" in shown
    assert "BSGD-M (maintenance='merge')" in shown


def test_learners_that_cannot_are_left_out(capsys: Capture) -> None:
    words = ["race", "iris", "--limit", "5", "--quiet", "--algorithms"]
    assert main([*words, "all"]) == 0
    output = capsys.readouterr()
    said, *more = output.err.splitlines()
    assert not more
    assert said.startswith("onkel: left out of iris, which they cannot learn: BDUOL, ")
    assert {"TVM", "KLMS"} <= set(said.replace(",", "").split())
    assert "\nPA " in output.out
    assert main([*words, "PA,BDUOL"]) == 2
    assert capsys.readouterr().err == "onkel: BDUOL knows two classes only, and iris has more: leave it out\n"


def test_orders_of_what_keeps_its_order(table: Path, capsys: Capture) -> None:
    assert main([*race_of(table), "--algorithms", "PA", "--keep-order", "--orders", "4"]) == 0
    assert capsys.readouterr().err == "onkel: blobs.csv keeps its order, so it is run once and not 4 times\n"
    assert main(["race", "drift", "--limit", "20", "--algorithms", "PA", "--orders", "5"]) == 0
    assert "onkel: drift keeps its order, so it is run once and not 5 times\n" in capsys.readouterr().err


def test_learners_stand_beside_the_baseline(capsys: Capture, tmp_path: Path) -> None:
    options = ["breast_cancer", "--limit", "100", "--seed", "1"]
    stream = datasets.load("breast_cancer")
    expected = trivial(stream.y[stream.order(0, seed=1)[:100]], "classification")
    for words in (["race", *options, "--algorithms", "PA"], ["tune", *options, "--try", "gamma=0.1", "--quiet"]):
        assert main(words) == 0
        assert f"baseline: {100 * expected:.1f} % (most frequent class so far)" in capsys.readouterr().out
        assert main([*words, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found.get("races", [found])[0]["trivial"] == expected
    page = tmp_path / "race.html"
    assert main(["race", *options, "--algorithms", "PA", "--report", str(page)]) == 0
    assert f"Baseline: {100 * expected:.1f} % (most frequent class so far)" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "meant"), [("FODG", "FOGD"), ("bsgd m", "BSGD-M"), ("projektron", "Projectron")])
def test_a_misspelt_algorithm(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}'; did you mean {meant}\\? known are AdaRaker, "):
        find(name)
    with pytest.raises(ValueError, match="'xyz'; known are AdaRaker, "):
        find("xyz")


def test_one_is_not_many(capsys: Capture) -> None:
    words = ["tune", "breast_cancer", "--limit", "1", "--quiet", "--try", "gamma=0.1", "--try", "eta=1"]
    assert main(words) == 0
    assert "1 setting over 1 example, at the cost of" in capsys.readouterr().out
    assert [counted(n, "class") for n in (1, 2)] == ["1 class", "2 classes"]
    assert counted(1000, "example") == "1,000 examples"


# -- interruption


def test_interrupted_shows_what_was_finished(capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    laps = race.laps

    def interrupted(*args: object, **kwargs: object) -> object:
        run = laps(*args, **kwargs)  # type: ignore[arg-type]
        yield next(run)
        yield next(run)
        raise KeyboardInterrupt

    monkeypatch.setattr(race, "laps", interrupted)
    page = tmp_path / "page.html"
    words = ["race", "demo", "--limit", "30", "--algorithms", "PA,OGD,RBP", "--report", str(page)]
    assert main(words) == 130
    output = capsys.readouterr()
    assert "\nPA " in output.out
    assert "\nOGD " in output.out
    assert "\nRBP " not in output.out
    assert "digits" not in output.out
    assert "interrupted" in output.err
    assert "Traceback" not in output.err
    said = "nterrupted, so this is partial: 2 of 3 learners finished breast_cancer; not begun: digits, drift, diabetes"
    assert said in output.err
    assert said in page.read_text()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_control_c_from_outside(jobs: str) -> None:
    command = "from onkel.cli import shell; print('ready', flush=True); shell()"
    words = [sys.executable, "-c", command, "race", "digits", "--orders", "1000", "--algorithms", "PA", "--jobs", jobs]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted" in err


# -- pipes and terminals


def test_starting_imports_no_learners_of_others() -> None:
    command = "import sys, onkel.cli; print({'sklearn.cluster', 'sklearn.svm', 'sklearn.isotonic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_number_is_cut(columns: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    words = ["race", "breast_cancer", "--limit", "60", "--algorithms", "PA,RBP", "--orders", "3", "--held-out", ".2"]
    assert main([*words, "--measures", "auc,log_loss,hinge_loss", "--quiet"]) == 0
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "…" not in out
    rows = [line.split() for line in out.splitlines() if line.startswith(("PA", "RBP"))]
    assert (
        sorted(map(len, rows)) == {40: [9, 10], 80: [11, 12], 200: [12, 13]}[columns]
    )  # each % is a word, the best has no p
    said = " ".join(out.split())
    assert ("no room for KiB" in said) == (columns < 200)
    assert "p: p-value of the difference from the best" in said


def test_small_chances_and_large_errors_are_written_out() -> None:
    assert report.show_chance(0.0004) == "< 0.001"
    assert report.show_chance(0.0014) == "0.001"
    assert report.show_error("regression")(13012.4) == "13,012"


def test_a_pool_of_learners_says_what_it_counts(capsys: Capture) -> None:
    words = ["race", "breast_cancer", "--limit", "100", "--quiet", "--algorithms"]
    assert main([*words, "AutoKernel"]) == 0
    assert "SV of a pool: the sum over its components" in capsys.readouterr().out
    assert main([*words, "PA"]) == 0
    assert "SV of a pool" not in capsys.readouterr().out


def test_a_pipe_gets_no_control_characters(table: Path) -> None:
    done = shell(*race_of(table))
    assert done.returncode == 0
    assert done.stderr == ""
    assert all(character.isprintable() or character == "\n" for character in done.stdout)


def test_a_terminal_that_knows_ascii_only(table: Path) -> None:
    renamed = table.with_name("größe.csv")
    table.rename(renamed)
    done = shell(*race_of(renamed), "--algorithms", "PA", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "gr??e.csv" in done.stdout


def test_live_progress_on_a_terminal(table: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "REFRESH", 0.0)
    words = [*race_of(table), "--algorithms", "PA"]
    assert main(words) == 0
    assert "mistakes" in capsys.readouterr().err
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


# -- algorithms and version


def test_version(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"onkel {onkel.__version__}\n"


def test_the_catalogue_is_listed(capsys: Capture) -> None:
    assert main(["algorithms"]) == 0
    out = capsys.readouterr().out
    for entry in onkel.catalogue():
        assert f"\n{entry.name} " in out
    assert all(len(row) <= 80 for row in out.splitlines())


def test_the_catalogue_as_json(capsys: Capture) -> None:
    assert main(["algorithms", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in data] == [entry.name for entry in onkel.catalogue()]
    forgetron = next(entry for entry in data if entry["name"] == "Forgetron")
    assert forgetron["estimators"]["ForgetronClassifier"]["budget"] == "100"
    assert "classification" in forgetron["tasks"]


def test_one_algorithm_by_alias(capsys: Capture) -> None:
    assert main(["algorithms", "pa-ii"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("PA: classification, regression\n")
    assert "Crammer" in out
    assert "PARegressor(" in out
    assert "no algorithm is called 'pa-iii'" in refused(capsys, "algorithms", "pa-iii")


def test_citations_are_authors_and_year() -> None:
    assert algorithms._citation("One, Two, Three: A title. J 7, 2006. doi:10.1109/TSP.2008.1") == "One et al. 2006"
    assert algorithms._citation("One, Two: On 2001 things. J 7, 2003") == "One, Two 2003"
    assert algorithms._citation("No title") == "No title"


def test_measures_have_names() -> None:
    assert (report.measure("classification"), report.measure("regression")) == ("mistake rate", "RMSE")


# -- data


def test_data_lists_every_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("ONKEL_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    np.savez(tmp_path / "mg.npz", X=np.zeros((3, 6)), y=np.arange(3.0))
    np.savez(tmp_path / "w8a.npz", X=np.zeros((3, 300)), y=np.arange(3.0))
    (tmp_path / "manifest.json").write_text(json.dumps({"w8a": {"rows": 3}}))
    assert main(["data"]) == 0
    text = capsys.readouterr().out
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert {*datasets.NAMES, *datasets.SETS} <= set(lines)
    for name, words in (
        ("digits", "built in"),
        ("drift", "generated"),
        ("mg", "here"),
        ("a9a", "fetch"),
        ("susy", "5,000,000"),
    ):
        assert words in lines[name]
    assert "nowhere" in lines["kddcup08"] and str(tmp_path) in text
    assert max(map(len, text.splitlines()[:-4])) <= 80
    assert main(["data", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["folder"] == str(tmp_path)
    assert {entry["name"]: entry["where"] for entry in data["streams"]}["mg"] == "here"


def test_data_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("ONKEL_DATA", str(tmp_path / "data"))
    published = tmp_path / "mg.txt"
    published.write_text("0.5 1:1 6:2\n1.5 2:1\n")
    source = Source(published.as_uri())
    small = datasets.PaperSet("mg", "regression", 2, 6, None, "small", (source,))
    monkeypatch.setitem(datasets.SETS, "mg", small)
    assert main(["data", "fetch", "mg"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'data' / 'mg.npz'}\n"
    assert main(["data", "fetch", "mg"]) == 0
    assert "mg is here already" in capsys.readouterr().err
    published.write_text("0.5 1:1 6:2\n2.5 2:1\n")
    assert "is not the file it should be" in refused(capsys, "data", "fetch", "mg", "--again")
    assert "digits needs no download" in refused(capsys, "data", "fetch", "digits")
    assert "did you mean german" in refused(capsys, "data", "fetch", "germann")
    published.unlink()
    monkeypatch.setenv("ONKEL_DATA", str(tmp_path / "other"))
    assert "cannot be reached" in refused(capsys, "data", "fetch", "mg")
    assert main(["race", "mg", "--algorithms", "KLMS"]) == 2
    assert "mg is not in the data folder" in capsys.readouterr().err


# -- completion


def test_bash_completes_commands_options_and_files(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    (tmp_path / "rows.csv").touch()
    script = shell("completion", "bash").stdout

    def offered(*words: str) -> list[str]:
        ask = f"{script}\nCOMP_WORDS=(onkel {' '.join(words)}); COMP_CWORD={len(words)}; _onkel; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path, check=True)
        return done.stdout.split()

    assert offered("ra") == ["race"]
    assert offered("race", "--ta") == ["--target", "--task"]
    assert offered("race", "ro") == ["rows.csv"]
    assert offered("completion", "fi") == ["fish"]


def test_every_shell_is_told_every_command(capsys: Capture) -> None:
    for name in ("bash", "zsh", "fish"):
        assert main(["completion", name]) == 0
        out = capsys.readouterr().out
        assert all(word in out for word in ("race", "run", "tune", "predict", "inspect", "algorithms", "checkpoint"))
    with pytest.raises(SystemExit):
        main(["completion", "tcsh"])


def test_every_command_has_a_help_text_that_fits(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in COMMANDS:
        with pytest.raises(SystemExit) as end:
            main([name, "--help"])
        assert end.value.code == 0
        out = capsys.readouterr().out
        assert out.startswith(f"usage: onkel {name}")
        assert all(len(line) <= 80 for line in out.splitlines())
