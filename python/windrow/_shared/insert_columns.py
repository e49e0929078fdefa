"""What a column of pandas or Arrow is made of, for `_core.Encoder`: buffers where there are some, else a list.

`parts` answers with a tuple whose first item says which:

- `("numbers", values, mask)`: a NumPy array and a bool array that is true where there is no value (or None).
- `("arrow", array)`: an Arrow array of pandas'. What isn't taken over as a whole comes here a second time.
- `("choices", codes, values)`: a NumPy array of numbers into a list, -1 for no value.
- `("objects", values)`: a list of Python objects, None for no value.
"""

from __future__ import annotations

from typing import Any

from windrow import _core
from windrow._shared.arrow_tables import ExactColumn

Parts = tuple[Any, ...]


def parts(column: Any, start: int, stop: int) -> Parts | None:
    """Rows `start` to `stop` of a pandas Series, Index or array, or of an Arrow array; None for anything else."""
    module = type(column).__module__.partition(".")[0]
    if module == "pandas":
        return _of_pandas(getattr(column, "array", column)[start:stop])
    if module == "pyarrow":
        return _of_arrow(column.slice(start, stop - start))
    if module == "polars":
        return "objects", column.slice(start, stop - start).to_list()
    if isinstance(column, ExactColumn):
        return column.parts(start, stop)
    return None


def columns(frame: Any, names: list[str]) -> list[Any] | None:
    """The columns of a pandas or polars frame, a table that speaks Arrow, or a NumPy array of rows; None for anything else."""
    module = type(frame).__module__.partition(".")[0]
    if module == "pandas":
        return [frame.iloc[:, index] for index in range(frame.shape[1])]
    if module == "pyarrow":
        return list(frame.columns)
    if module == "polars":
        return list(frame.get_columns())
    if module == "numpy":
        return _of_numpy(frame, names)
    arrow = _core.ArrowColumns.of(frame)
    if arrow is not None and arrow.names is not None:
        return [arrow.column(index) for index in range(len(arrow.names))]
    return None


def _of_numpy(array: Any, names: list[str]) -> list[Any]:
    fields = array.dtype.names
    if fields is None:
        return [array[:, index] for index in range(array.shape[1])]
    # Fields that are called otherwise than the columns are taken in their order.
    return [array[name] for name in (names if set(names) <= set(fields) else fields)]


def _of_pandas(array: Any) -> Parts:
    import pandas as pd

    dtype = array.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "choices", array.codes, _listed(array.categories.array)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return "numbers", array.to_numpy(dtype=f"datetime64[{dtype.unit}]"), None
    if isinstance(dtype, (pd.StringDtype, pd.ArrowDtype)):
        return _of_arrow_backed(array)
    kind = getattr(dtype, "kind", "O")
    if hasattr(dtype, "numpy_dtype") and kind in "iufb" and not isinstance(array, pd.arrays.NumpyExtensionArray):
        return "numbers", array.to_numpy(dtype=dtype.numpy_dtype, na_value=0), array.isna()
    if kind in "iufbMm" and not isinstance(dtype, (pd.PeriodDtype, pd.SparseDtype)):
        return "numbers", array.to_numpy(), None
    return "objects", _listed(array)


def _of_arrow_backed(array: Any) -> Parts:
    if hasattr(array, "__arrow_array__"):
        try:
            return "arrow", array.__arrow_array__()
        except ImportError:
            # Strings of a pandas without pyarrow.
            pass
    return "objects", _listed(array)


def _listed(array: Any) -> list[Any]:
    missing = array.isna()
    values = list(array)
    if missing.any():
        return [None if is_missing else value for is_missing, value in zip(missing, values)]
    return values


def _of_arrow(array: Any) -> Parts:
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if isinstance(array, pa.ChunkedArray):
            # Some types can't be combined, and pyarrow gives no array for no chunks in some versions.
            return "objects", _python_values(array)
    types, kind = pa.types, array.type
    if types.is_integer(kind) or types.is_floating(kind):
        return "numbers", array.fill_null(0).to_numpy(zero_copy_only=False), _mask(array)
    return "objects", _python_values(array)


def _python_values(array: Any) -> list[Any]:
    """Maps as dicts, which older versions of pyarrow make lists of pairs of."""
    try:
        return list(array.to_pylist(maps_as_pydicts="lossy"))
    except TypeError:
        return list(array.to_pylist())


def _mask(array: Any) -> Any:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
