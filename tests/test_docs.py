"""The prose is true: examples run and print what they say, names exist, the catalogue is the library's.

`python tests/test_docs.py` writes the generated part of docs/algorithms.md anew.
"""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from streams import learn, settings, stream_for

import onkel
from onkel.algorithms import Entry, estimators
from onkel.cli.lineup import LINEUP
from onkel.faces.one_kernel import OneKernel

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CATALOGUE = ROOT / "docs" / "algorithms.md"
BEGIN = "<!-- from here on written by: python tests/test_docs.py -->\n"

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "--- end of the example in line {}"


def name_of(page):
    return str(page.relative_to(ROOT))


def entries():
    """The catalogue, without what other tests may have defined."""
    return [
        entry
        for entry in onkel.catalogue()
        if all(cls.__module__.startswith("onkel.") for cls in entry.classes.values())
    ]


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
every_page_with_examples = pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text("utf-8")], ids=name_of
)


def prose(page):
    """The text of a page without its boxes."""
    return FENCE.sub("", page.read_text("utf-8"))


# -- examples


def script(text):
    """The Python of a page at its own line numbers, and what each example says it prints (None: nothing said)."""
    lines = [""] * (text.count("\n") + 1)
    expected = {}
    boxes = list(FENCE.finditer(text))
    for i, box in enumerate(boxes):
        if box[1] != "python":
            continue
        first = text.count("\n", 0, box.start(2))
        code = box[2].splitlines()
        lines[first : first + len(code)] = code
        lines[first + len(code)] = f"print({MARK.format(first)!r})"
        follows = boxes[i + 1] if i + 1 < len(boxes) else None
        if follows and follows[1] == "text" and not text[box.end() : follows.start()].strip():
            expected[first] = follows[2]
        else:
            expected[first] = None
    return "\n".join(lines), expected


@every_page_with_examples
def test_examples_run_and_print_what_they_say(page, tmp_path):
    """In a process of its own: an example may define parts, and the suite must not know them."""
    code, expected = script(page.read_text("utf-8"))
    file = tmp_path / f"{page.stem}.py"
    file.write_text(code, "utf-8")
    command = [sys.executable, "-W", "error", "-W", "default:onkel runs on its Python engine:RuntimeWarning", file.name]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, f"{page.name}, at the line that is named last:\n{done.stderr}"
    printed = done.stdout
    for line, wanted in expected.items():
        got, _, printed = printed.partition(MARK.format(line) + "\n")
        assert wanted is None or got == wanted, f"{page.name}, the example in line {line}"


# -- the catalogue


def catalogue_page():
    """The generated part: families in order of appearance, algorithms by name."""
    families = {}
    for entry in entries():
        families.setdefault(next(iter(entry.classes.values())).__module__, []).append(entry)
    return "\n".join(family_section(sys.modules[name], families[name]) for name in sorted(families))


def family_section(module, family):
    title, _, words = inspect.getdoc(module).partition("\n")[0].partition(": ")
    rows = [f"| [{e.name}](#{e.name.lower()}) | {', '.join(e.tasks)} | {e.cost} | {citation(e)} |" for e in family]
    table = "\n".join(["| algorithm | tasks | cost of a round | paper |", "| --- | --- | --- | --- |", *rows])
    parts = [f"## {title}", f"{words[0].upper()}{words[1:]}", table, *map(algorithm_section, family)]
    return "\n\n".join(parts) + "\n"


def citation(entry: Entry):
    """Authors and year."""
    authors, _, rest = entry.paper.partition(":")
    people = authors.split(", ")
    year = re.findall(r"\b(?:19|20)\d\d\b", rest.partition("doi:")[0])[-1]
    return f"{' and '.join(people) if len(people) < 3 else f'{people[0]} et al.'} {year}"


def algorithm_section(entry: Entry):
    parts = [f"### {entry.name}"]
    for cls in entry.classes.values():
        module = cls.__module__.rpartition(".")[2]
        where = f"api/{module}.md#{cls.__module__}.{cls.__name__}"
        sentence, *rest = re.split(r"\n\n", inspect.getdoc(cls).partition("\nParameters\n")[0].strip())
        parts.append(f"**[{cls.__name__}]({where})**: {' '.join(sentence.split())}")
        for paragraph in rest:
            if paragraph.startswith("Composition:"):
                parts.append(f"`{' '.join(paragraph.removeprefix('Composition:').split())}`")
            else:
                parts.append(f"```text\n{paragraph}\n```")
        params = cls().get_params(deep=False)
        own = {name: value for name, value in params.items() if name not in ("kernel", "average", "random_state")}
        parts.append("Parameters: " + (", ".join(f"`{name}={value!r}`" for name, value in own.items()) or "none"))
    names = "Also called " + ", ".join(entry.aliases) + ". " if entry.aliases else ""
    if entry.variants:
        said = [" ".join([name, *(f"`{k}={v!r}`" for k, v in of.items())]) for name, of in entry.variants.items()]
        names += "Variants: " + ", ".join(said) + ". "
    parts.append(f"{names}Paper: {entry.paper}")
    return "\n\n".join(parts)


def test_the_catalogue_page_is_the_library():
    _, _, written = CATALOGUE.read_text("utf-8").partition(BEGIN)
    assert written.strip() == catalogue_page().strip(), "write it anew with: python tests/test_docs.py"


def test_readme_counts_the_learners_of_the_demo():
    told = "{classification} classifiers over three streams, {regression} regressors over one"
    counts = {task: len(line) for task, line in LINEUP.items()}
    assert told.format(**counts) in (ROOT / "README.md").read_text("utf-8")


def test_the_readme_names_every_algorithm_and_no_other():
    table = re.search(r"\| family .*?\n\n", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(entry.name for entry in entries())


# -- links and names


def anchors(page):
    """The anchors of a page's headings, as GitHub and the manual make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@every_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        assert "://" not in target, f"{target}: does it need the network?"
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), target
        if anchor and anchor.startswith("onkel."):  # a heading that mkdocstrings makes
            module, _, name = anchor.rpartition(".")
            assert hasattr(sys.modules[module], name) and f"::: {module}\n" in goal.read_text("utf-8"), target
        elif anchor:
            assert anchor in anchors(goal), target


@every_page
def test_make_targets_exist(page):
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    text = page.read_text("utf-8")
    named = re.findall(r"`make (\w+)", text) + re.findall(r"^make (\w+)", text, re.MULTILINE)
    assert set(named) <= set(targets)


# -- the architecture


def box(heading):
    """The first box below a heading of the architecture."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    return FENCE.search(text, text.index(f"\n## {heading}\n"))[2]


def tree():
    """The paths in the tree: names with a blank between them, two blanks deeper than their folder."""
    above = {}
    for line in box("The tree").splitlines():
        names = re.split(r" {2,}", line.strip())[0].split()
        depth = len(line) - len(line.lstrip())
        folder = above[depth - 2] if depth else ROOT
        yield from (folder / name for name in names)
        above[depth] = folder / names[0]


def test_the_tree_in_the_architecture_is_that_of_the_files():
    named = list(tree())
    assert len(named) == len(set(named))
    assert [name_of(path) for path in named if not path.exists()] == []
    rooms = [file.parent for place in ("src/onkel/*/*.py", "cpp/*/*.?pp", "tests/*/*.?*") for file in ROOT.glob(place)]
    files = [file for place in ("src/onkel/*.py", "cpp/*.?pp") for file in ROOT.glob(place) if file.stem != "__init__"]
    wanted = {path for path in (*rooms, *files) if path.name != "__pycache__"}
    assert sorted(map(name_of, wanted - set(named))) == []


def test_the_ladder_in_the_architecture_is_that_of_the_contract():
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert [re.split(r" {2,}", line)[0] for line in box("The layers").splitlines()] == contract["layers"]


def test_the_table_of_arrays_names_every_array_of_a_state_once():
    text = (ROOT / "docs" / "files.md").read_text("utf-8")
    table = re.search(r"^\| array \|.*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
    named = []
    for name in re.findall(r"`([^`]+)`", "\n".join(row.split(" | ")[0] for row in table.splitlines())):
        named.append(named[-1].rpartition(".")[0] + name if name.startswith(".") else name)
    assert len(named) == len(set(named))
    for name, cls in estimators().items():
        for params in settings(name) if cls.online else []:
            model = cls(**params, **({"average": "all"} if issubclass(cls, OneKernel) else {}))
            learn(model, *stream_for(model, rounds=60))
            arrays = {re.sub(r"^\d+\.", "", array) for array in model.state()[0]}  # 0.basis.coef is that of a component
            assert arrays <= set(named), model


@every_page
def test_the_tests_that_are_named_exist(page):
    sources = [file.read_text("utf-8") for file in ROOT.glob("tests/**/*.py")]
    known = {name for source in sources for name in re.findall(r"def (test_\w+)", source)}
    known |= {file.stem for file in ROOT.glob("tests/**/*.py")}
    assert set(re.findall(r"\btest_\w+", page.read_text("utf-8"))) <= known


def test_every_module_with_public_names_is_in_the_reference():
    """Of the packages in the table of public names those of parts: what they define is to be composed."""
    text = "\n".join(page.read_text("utf-8") for page in ROOT.glob("docs/api/*.md"))
    shown = set(re.findall(r"^::: (\S+)", text, re.MULTILINE))
    parts = {f"onkel.{name}" for name in ("kernels", "losses", "maps", "updates", "hypotheses", "budgets")}
    assert sorted((set(onkel.PUBLIC) | parts) - shown - {"onkel", "onkel.core.version"}) == []


if __name__ == "__main__":
    before = CATALOGUE.read_text("utf-8").partition(BEGIN)[0]
    CATALOGUE.write_text(before + BEGIN + "\n" + catalogue_page(), "utf-8")
    print(f"{name_of(CATALOGUE)} written")
