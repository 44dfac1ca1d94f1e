"""The cells of tables in Parquet and Arrow files, as columns with names.

Each reader takes the name of a file (for messages) and the open file. It returns the names of the columns, and a
function that yields the file block by block: the cells of each column.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from onkel.core import optional
from onkel.core.errors import DataError
from onkel.datasets.tables import Cells, Table

Batches = Callable[[Table], Iterator[list[Cells]]]

_ROWS = 8192  # of a Parquet file, at once


# -- Parquet and Arrow -------------------------------------------------------------------------------------


def parquet_cells(name: str, file: Any) -> tuple[list[str], Batches]:
    parquet = _pyarrow("parquet")
    with _arrow_problems(f"{name} is not a Parquet file"):
        table = parquet.ParquetFile(file)
        names = list(table.schema_arrow.names)
    return names, _batches(name, lambda: table.iter_batches(batch_size=_ROWS))


def arrow_cells(name: str, file: Any) -> tuple[list[str], Batches]:
    ipc = _pyarrow("ipc")
    in_blocks = file.peek(6)[:6] == b"ARROW1"  # else a stream
    with _arrow_problems(f"{name} is not an Arrow file"):
        table = (ipc.open_file if in_blocks else ipc.open_stream)(file)
        names = list(table.schema.names)
    if not in_blocks:
        return names, _batches(name, lambda: iter(table))
    return names, _batches(name, lambda: (table.get_batch(i) for i in range(table.num_record_batches)))


def _pyarrow(part: str) -> Any:
    return optional.load(f"pyarrow.{part}", "Parquet and Arrow files")


@contextlib.contextmanager
def _arrow_problems(what: str, remedy: str = "") -> Iterator[None]:
    """Whatever a damaged file makes of pyarrow becomes one sentence: `what`, the reason and the remedy."""
    try:
        yield
    except DataError:
        raise
    except Exception as problem:
        reason = str(problem).split("\n")[0] or type(problem).__name__
        raise DataError(f"{what}: {reason}{remedy}") from None


def _batches(name: str, batches: Callable[[], Iterator[Any]]) -> Batches:
    def parts(table: Table) -> Iterator[list[Cells]]:
        start = 0
        for batch in _checked(name, batches):
            if batch.num_rows:
                wanted = table.wanted()
                with _arrow_problems(f"{name}, rows from {start}", "; save the column as numbers or texts"):
                    columns = [
                        _arrow_cells(column) if kind else () for column, kind in zip(batch.columns, wanted, strict=True)
                    ]
                yield columns
            start += batch.num_rows

    return parts


def _checked(name: str, batches: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """The batches, each checked in full before anything is read: offsets may point outside the buffers of a file."""
    left, start = None, 0
    while True:
        with _arrow_problems(f"{name} is damaged, from row {start} on", "; write or fetch it again"):
            left = batches() if left is None else left
            batch = next(left, None)
            if batch is None:
                return
            batch.validate(full=True)
        yield batch
        start += batch.num_rows


def _arrow_cells(column: Any) -> Cells:
    """A column as numbers with NaN for nulls, or as texts with None."""
    types = _pyarrow("types")
    kind = column.type
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        if column.null_count or not types.is_integer(kind):
            column = column.cast("float64", safe=False)
        return column.to_numpy(zero_copy_only=False)
    return [None if value is None else str(value) for value in column.to_pylist()]
