"""onkel inspect: shows what a model file holds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from onkel.cli import models
from onkel.cli.show import finite, pairs
from onkel.core.wording import listed
from onkel.evaluation import report
from onkel.evaluation.follower import Follower
from onkel.evaluation.results import settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.set_defaults(run=_inspect)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file that onkel run, onkel tune or save wrote")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _inspect(arguments: argparse.Namespace) -> int:
    follower = models.read(arguments.model)
    data = _as_data(arguments.model, follower)
    if arguments.json:
        print(json.dumps(data, indent=1))
        return 0
    parameters = ", ".join(f"{name}={value}" for name, value in data.pop("settings").items())
    error = data.pop("error")
    if error is not None:
        data[f"{report.measure(follower.task)} so far"] = report.show_error(follower.task)(error)
    for name in ("classes", "columns"):
        data[name] = data[name] and listed([str(one) for one in data[name]])
    pairs({**data, "settings": parameters})
    return 0


def _as_data(path: Path, follower: Follower) -> dict[str, Any]:
    model = follower.model
    started = hasattr(model, "t_")
    counted = bool(follower.about)
    return {
        "learner": type(model).__name__,
        "task": follower.task,
        "examples": model.t_ if started else 0,
        "features": model.n_features_in_ if started else None,
        "columns": follower.schema.features,
        "target": follower.schema.target,
        "classes": follower.classes.tolist() if follower.task == "classification" and started else None,
        "support vectors": model.n_support_ if started else 0,
        "kernel": str(model.kernel_) if started and hasattr(model, "kernel_") else None,
        "error": finite(follower.error) if counted else None,
        "scale": None if follower.scale is None else "standardised by the examples it learned",
        "stream": follower.about.get("source"),
        "position": follower.about.get("position"),
        "bytes": path.stat().st_size,
        "paper": type(model).paper,
        "settings": settings(model),
    }
