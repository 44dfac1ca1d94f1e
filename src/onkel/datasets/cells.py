"""The cells of tables in Parquet and Arrow files, as columns with names.

Each reader takes the name of a file (for messages) and the open file. It returns the names of the columns, and a
function that yields the file block by block: the cells of each column.
"""

from __future__ import annotations

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
    table = _arrow_opened(name, "Parquet", lambda: parquet.ParquetFile(file))
    return list(table.schema_arrow.names), _batches(name, lambda: table.iter_batches(batch_size=_ROWS))


def arrow_cells(name: str, file: Any) -> tuple[list[str], Batches]:
    ipc = _pyarrow("ipc")
    if file.peek(6)[:6] == b"ARROW1":
        table = _arrow_opened(name, "Arrow", lambda: ipc.open_file(file))
        return list(table.schema.names), _batches(
            name, lambda: (table.get_batch(i) for i in range(table.num_record_batches))
        )
    stream = _arrow_opened(name, "Arrow", lambda: ipc.open_stream(file))
    return list(stream.schema.names), _batches(name, lambda: iter(stream))


def _pyarrow(part: str) -> Any:
    return optional.load(f"pyarrow.{part}", "Parquet and Arrow files")


def _arrow_opened(name: str, kind: str, open_: Callable[[], Any]) -> Any:
    try:
        return open_()
    except (ValueError, OSError) as problem:  # pyarrow's own errors are these
        reason = str(problem).split("\n")[0]
        raise DataError(f"{name} is not {'an Arrow' if kind == 'Arrow' else 'a Parquet'} file: {reason}") from None


def _batches(name: str, batches: Callable[[], Iterator[Any]]) -> Batches:
    def parts(table: Table) -> Iterator[list[Cells]]:
        for batch in batches():
            if batch.num_rows:
                wanted = table.wanted()
                yield [_arrow_cells(column) if kind else () for column, kind in zip(batch.columns, wanted, strict=True)]

    return parts


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
