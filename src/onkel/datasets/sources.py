"""The sets of the papers: what they are, and where they are published.

Names, sizes and splits are those of the experiments. Checksums are given where the publisher's or a third party's are
known; for the others the first download is trusted and recorded (see `storage`), and sizes must agree with this table.
"""

from __future__ import annotations

import dataclasses

from onkel.datasets.stream import Task

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_FIGSHARE = "https://ndownloader.figshare.com/files/"


@dataclasses.dataclass(frozen=True)
class Source:
    """A published file.

    Parameters
    ----------
    url : its address.
    format : "libsvm"; "csv" with a header; "table", numbers without header.
    target : target column: a name of the header, or the position in a table, from 1.
    drop : columns of a CSV file that are not features.
    member : the file's name inside an archive (.zip, .tgz).
    sha256 : of the file as published, where known.
    """

    url: str
    format: str = "libsvm"
    target: str | None = None
    drop: tuple[str, ...] = ()
    member: str | None = None
    sha256: str | None = None


@dataclasses.dataclass(frozen=True)
class PaperSet:
    """A set of the papers.

    Parameters
    ----------
    name : the name of its file in the data folder, without .npz.
    task : "classification" or "regression".
    rows, features : its size.
    n_train : rows of the official training part, the first ones; None without a split.
    about : one sentence for people.
    sources : the published files, training part first; none where there is no address to fetch it from.
    labels : the numbers that stand for text labels.
    sparse : whether it is kept as a sparse matrix.
    """

    name: str
    task: Task
    rows: int
    features: int
    n_train: int | None
    about: str
    sources: tuple[Source, ...] = ()
    labels: tuple[tuple[str, int], ...] = ()
    sparse: bool = False


def _libsvm(kind: str, *files: str) -> tuple[Source, ...]:
    return tuple(Source(f"{_LIBSVM}{kind}/{file}") for file in files)


def _uci(file: str, target: str, *drop: str, member: str | None = None) -> Source:
    return Source(_UCI + file, "table" if target.isdigit() else "csv", target, drop, member)


def _esl(file: str) -> Source:
    return Source(f"https://web.stanford.edu/~hastie/ElemStatLearn/datasets/{file}", "table", "1")


_SETS = (
    # two classes
    PaperSet(
        "german", "classification", 1000, 24, None, "credit risks, in [-1, 1]", _libsvm("binary", "german.numer_scale")
    ),
    PaperSet(
        "german_raw", "classification", 1000, 24, None, "credit risks, unscaled", _libsvm("binary", "german.numer")
    ),
    PaperSet("svmguide3", "classification", 1284, 21, 1243, "vehicles", _libsvm("binary", "svmguide3", "svmguide3.t")),
    PaperSet("madelon", "classification", 2600, 500, 2000, "artificial", _libsvm("binary", "madelon", "madelon.t")),
    PaperSet(
        *("spambase", "classification", 4601, 57, None, "e-mail, counts of words and signs"),
        sources=(_uci("spambase/spambase.data", "58"),),
    ),
    PaperSet("mushrooms", "classification", 8124, 112, None, "one-hot", _libsvm("binary", "mushrooms"), sparse=True),
    PaperSet(
        *("magic04", "classification", 19020, 10, None, "showers of particles; +1 is gamma"),
        sources=(_uci("magic/magic04.data", "11"),),
        labels=(("g", 1), ("h", -1)),
    ),
    PaperSet(
        "a9a", "classification", 48842, 123, 32561, "census, one-hot", _libsvm("binary", "a9a", "a9a.t"), sparse=True
    ),
    PaperSet("w7a", "classification", 49749, 300, 24692, "web pages", _libsvm("binary", "w7a", "w7a.t"), sparse=True),
    PaperSet("w8a", "classification", 64700, 300, 49749, "web pages", _libsvm("binary", "w8a", "w8a.t"), sparse=True),
    PaperSet(
        *("ijcnn1", "classification", 141691, 22, 49990, "a combustion engine"),
        sources=_libsvm("binary", "ijcnn1.bz2", "ijcnn1.t.bz2"),
    ),
    PaperSet("codrna", "classification", 331152, 8, 59535, "RNA", _libsvm("binary", "cod-rna", "cod-rna.t")),
    PaperSet("susy", "classification", 5000000, 18, None, "collisions of particles", _libsvm("binary", "SUSY.xz")),
    PaperSet("kddcup08", "classification", 102294, 117, None, "mammography; KDD Cup 2008, on registration"),
    PaperSet("kddcup99", "classification", 1131571, 127, None, "network attacks; KDD Cup 1999, no copy in this form"),
    PaperSet(
        "airlines", "classification", 5929413, 8, None, "delays of 2008; ASA Data Expo 2009, no copy in this form"
    ),
    # several classes
    PaperSet(
        *("covtype", "classification", 581012, 54, None, "kinds of forest; load(..., positive=2) for the papers' two"),
        sources=(  # the checksum is scikit-learn's
            Source(
                *(_FIGSHARE + "5976039", "table", "55"),
                sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            ),
        ),
    ),
    PaperSet(
        "dna", "classification", 3186, 180, 2000, "splice junctions", _libsvm("multiclass", "dna.scale", "dna.scale.t")
    ),
    PaperSet(
        "satimage", "classification", 4435, 36, 4435, "pictures of the ground", _libsvm("multiclass", "satimage.scale")
    ),
    PaperSet(
        *("satimage_raw", "classification", 6435, 36, 4435, "pictures of the ground, unscaled"),
        sources=(_uci("statlog/satimage/sat.trn", "37"), _uci("statlog/satimage/sat.tst", "37")),
    ),
    PaperSet("usps", "classification", 9298, 256, 7291, "written digits", (_esl("zip.train.gz"), _esl("zip.test.gz"))),
    PaperSet(
        *("usps_smooth", "classification", 9298, 256, 7291, "written digits, LIBSVM's smoothed version"),
        sources=_libsvm("multiclass", "usps.bz2", "usps.t.bz2"),
    ),
    PaperSet(
        *("mnist", "classification", 70000, 784, 60000, "written digits, pixels 0 to 255"),
        sources=_libsvm("multiclass", "mnist.bz2", "mnist.t.bz2"),
    ),
    PaperSet(
        *("letter", "classification", 20000, 16, 15000, "printed letters, in [-1, 1]"),
        sources=_libsvm("multiclass", "letter.scale", "letter.scale.t"),
    ),
    PaperSet(
        *("shuttle", "classification", 58000, 9, 43500, "positions of radiators"),
        sources=_libsvm("multiclass", "shuttle.scale", "shuttle.scale.t"),
    ),
    PaperSet(
        *("acoustic", "classification", 98528, 50, 78823, "vehicles, heard"),
        sources=_libsvm("multiclass", "vehicle/acoustic.bz2", "vehicle/acoustic.t.bz2"),
    ),
    PaperSet(
        *("poker", "classification", 1025010, 10, 25010, "hands of cards"),
        sources=(_uci("poker/poker-hand-training-true.data", "11"), _uci("poker/poker-hand-testing.data", "11")),
    ),
    PaperSet(
        *("poker25k", "classification", 25010, 10, None, "hands of cards, the training part"),
        sources=(_uci("poker/poker-hand-training-true.data", "11"),),
    ),
    # regression
    PaperSet("housing", "regression", 506, 13, None, "prices of houses in Boston", _libsvm("regression", "housing")),
    PaperSet("mg", "regression", 1385, 6, None, "Mackey and Glass's series", _libsvm("regression", "mg")),
    PaperSet(
        "abalone", "regression", 4177, 8, None, "age of shells, in [-1, 1]", _libsvm("regression", "abalone_scale")
    ),
    PaperSet(
        *("parkinsons", "regression", 5875, 20, None, "severity from voices; total UPDRS"),
        sources=(_uci("parkinsons/telemonitoring/parkinsons_updrs.data", "total_UPDRS", "motor_UPDRS"),),
    ),
    PaperSet("cpusmall", "regression", 8192, 12, None, "activity of a computer", _libsvm("regression", "cpusmall")),
    PaperSet(
        *("cadata", "regression", 20640, 8, None, "prices of houses in California"),
        sources=(  # the checksum is scikit-learn's
            Source(
                *(_FIGSHARE + "5976036", "table", "9"),
                member="CaliforniaHousing/cal_housing.data",
                sha256="aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
            ),
        ),
    ),
    PaperSet("casp", "regression", 45730, 9, None, "shapes of proteins", (_uci("00265/CASP.csv", "RMSD"),)),
    PaperSet(
        *("slice", "regression", 53500, 385, None, "place of a slice in the body"),
        sources=(_uci("00206/slice_localization_data.zip", "reference", member="slice_localization_data.csv"),),
    ),
    PaperSet(
        *("year", "regression", 515345, 90, 463715, "year of a song"),
        sources=_libsvm("regression", "YearPredictionMSD.bz2", "YearPredictionMSD.t.bz2"),
    ),
)
SETS: dict[str, PaperSet] = {entry.name: entry for entry in _SETS}
