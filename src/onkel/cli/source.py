"""The sources of examples: a file, standard input, or a stream that has a name; as a whole or in blocks."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onkel import datasets
from onkel.cli.words import Problem, names
from onkel.datasets import Block, Stream
from onkel.datasets.readers import COMPRESSED, opened
from onkel.datasets.reading import Batches, Reading
from onkel.datasets.tables import Schema

ROWS = 1000  # of a block of a stream that has a name


def add(parser: argparse.ArgumentParser, *, default: str | None = None, scale: str) -> None:
    """Add the arguments for streams that are read as a whole; without a default, the stream must be named."""
    named = "a name (see: onkel data)" if default else "or a name (see: onkel data)"
    demo = ", or demo: four small streams (default)" if default else ""
    words = f"a file ({', '.join(datasets.ENDINGS)}), - for standard input, {named}{demo}"
    parser.add_argument("stream", nargs=None if default is None else "?", default=default, metavar="STREAM", help=words)
    group = _add_files(parser)
    group("--scale", choices=["auto", "none"], help=f"auto (default): {scale}")
    group("--keep-order", action="store_true", help="learn the rows as they stand, not shuffled")


def add_input(parser: argparse.ArgumentParser, *, labelled: bool = True) -> None:
    """Add the arguments for a stream that is read block by block."""
    words = f"a file ({', '.join(datasets.ENDINGS)}), - for standard input, or a name (see: onkel data)"
    parser.add_argument("stream", metavar="STREAM", help=words)
    _add_files(parser, labelled)


def _add_files(parser: argparse.ArgumentParser, labelled: bool = True) -> Any:
    """Options about files; messages of the readers advise them by these names."""
    add = parser.add_argument_group("files").add_argument
    add("--target", metavar="NAME", help="target column of a table (npz: target array, default y)")
    add("--drop", type=names, metavar="A,B", help="columns of a table to leave out")
    add("--missing", choices=datasets.MISSING, help="missing values: fill with the mean so far, or drop the row")
    add("--encode", choices=datasets.ENCODE, help="make features of texts (default: refuse them)")
    add("--no-header", action="store_true", help="the first line of a CSV file is data; its columns are 1, 2, ...")
    add("--format", choices=datasets.FORMATS, help="default: by the ending of the name, or the first line")
    if labelled:
        add(
            "--task",
            choices=["auto", *datasets.TASKS],
            help="default auto: classification for texts and few whole numbers",
        )
    return add


def schema(arguments: argparse.Namespace, known: Schema | None = None) -> Schema:
    """How columns are to be read: as a model knows them, and as the options say."""
    known = known or Schema()
    if known.features is not None and arguments.encode not in (None, known.encode):
        learned = f"with --encode {known.encode}" if known.encode else "without --encode"
        raise Problem(f"the model has learned {learned}; omit --encode {arguments.encode}")
    return replace(
        known,
        target=arguments.target or known.target,
        drop=list(dict.fromkeys([*known.drop, *(arguments.drop or ())])),
        missing=arguments.missing or known.missing,
        encode=arguments.encode or known.encode,
    )


def streams(arguments: argparse.Namespace, *, scaled: bool = True, columns: Schema | None = None) -> list[Stream]:
    """The streams that the arguments name; files are scaled if the arguments say so."""
    if arguments.stream != "demo" and _is_file(arguments.stream):
        how: dict[str, Any] = {"task": arguments.task or "auto", "ordered": arguments.keep_order}
        stream = datasets.read(arguments.stream, **how, schema=columns or schema(arguments), **_form(arguments))
        return [stream.scaled() if scaled and arguments.scale != "none" else stream]
    chosen = datasets.DEMO if arguments.stream == "demo" else [arguments.stream]
    found = [datasets.load(name) for name in chosen]
    _refuse_options(arguments, ("task", "scale", "keep_order"))
    return found


def reading(
    arguments: argparse.Namespace, columns: Schema, *, skip: bool, growing: bool, place: dict[str, Any] | None
) -> contextlib.AbstractContextManager[Reading]:
    """The stream that the arguments name, to be read block by block; see `datasets.readers.opened`."""
    if _is_file(arguments.stream):
        how: dict[str, Any] = _form(arguments) | {"skip": skip, "growing": growing, "place": place}
        return opened(arguments.stream, columns, **how)
    stream = datasets.load(arguments.stream)
    _refuse_options(arguments)
    batches = Batches(stream.name, Block(stream.X, stream.y).pieces(ROWS), columns, skip=skip)
    if place is not None:
        batches.go_to(place)
    return contextlib.nullcontext(batches)


def blocks(arguments: argparse.Namespace, columns: Schema, learning: bool = True) -> Iterator[Block]:
    """The stream that the arguments name, block by block; what its columns are is added to `columns`."""
    if _is_file(arguments.stream):
        return datasets.chunks(arguments.stream, schema=columns, learning=learning, **_form(arguments))
    stream = datasets.load(arguments.stream)
    _refuse_options(arguments)
    return Block(stream.X, stream.y).pieces(ROWS)


def _form(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"header": not arguments.no_header, "format": arguments.format}


def expected(arguments: argparse.Namespace) -> int | None:
    """An estimate of the number of rows, for the progress; None if there is none."""
    if not _is_file(arguments.stream):
        return len(datasets.load(arguments.stream))
    path = Path(arguments.stream)
    try:
        with path.open("rb") as file:
            start = file.read(1 << 16)
    except OSError:
        return None
    lines = start.count(b"\n")
    is_text = b"\0" not in start and not start.startswith(tuple(COMPRESSED))
    return round(path.stat().st_size * lines / len(start)) if is_text and lines else None


def _refuse_options(arguments: argparse.Namespace, more: Sequence[str] = ()) -> None:
    for option in ("target", "drop", "missing", "encode", "no_header", "format", *more):
        if getattr(arguments, option):
            raise Problem(f"--{option.replace('_', '-')} is for files; {arguments.stream} needs none")


def _is_file(name: str) -> bool:
    known = name in (*datasets.NAMES, *datasets.SETS)
    return not known and (name == "-" or bool(Path(name).suffix) or Path(name).exists())
