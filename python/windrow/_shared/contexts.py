"""Contexts: the arguments of a query or of an insert, kept together so that they can be used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timezone, tzinfo
from typing import Any, Literal

from windrow._shared.arrow_tables import is_arrow_table
from windrow._shared.binding import Bound, Parameters, bind
from windrow._shared.errors import ProgrammingError
from windrow._shared.external import ExternalData
from windrow._shared.rename import renamer_of
from windrow._shared.timezones import find_zone

TzMode = Literal["naive_utc", "aware", "schema"]
TzSource = Literal["auto", "server", "local"]
TZ_MODES = ("naive_utc", "aware", "schema")
TZ_SOURCES = ("auto", "server", "local")


class BaseQueryContext:
    """What queries and inserts have in common: settings, formats of values, and HTTP headers (`transport_settings`)."""

    def __init__(
        self,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        use_extended_dtypes: bool = False,
        use_numpy: bool = False,
        transport_settings: dict[str, str] | None = None,
    ) -> None:
        self.settings = settings or {}
        self.query_formats = query_formats or {}
        self.column_formats = column_formats or {}
        self.encoding = encoding
        self.use_extended_dtypes = use_extended_dtypes
        self.use_numpy = use_numpy
        self.transport_settings = transport_settings


class QueryContext(BaseQueryContext):
    """A query with everything that says how it is sent and how its result is read. `client.create_query_context` makes
    it.

    The text is bound when it is first needed; `set_parameters` and `set_parameter` bind it anew.
    """

    def __init__(
        self,
        query: str | bytes = "",
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        server_tz: tzinfo = timezone.utc,
        use_none: bool | None = None,
        column_oriented: bool | None = None,
        use_numpy: bool | None = None,
        max_str_len: int | None = 0,
        query_tz: str | tzinfo | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        use_extended_dtypes: bool | None = None,
        as_pandas: bool = False,
        streaming: bool = False,
        apply_server_tz: bool = False,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        rename_response_column: str | None = None,
        tz_mode: TzMode | None = None,
    ) -> None:
        super().__init__(
            settings,
            query_formats,
            column_formats,
            encoding,
            bool(use_extended_dtypes),
            bool(use_numpy),
            transport_settings,
        )
        self.query = query
        self.parameters: Any = parameters or {}
        self.use_none = use_none is not False
        self.column_oriented = bool(column_oriented)
        self.max_str_len = max_str_len or 0
        self.server_tz = server_tz
        self.apply_server_tz = apply_server_tz
        self.external_data = external_data
        self._tz_mode: TzMode = "naive_utc"
        self._tz_mode_explicit = False
        if tz_mode is not None:
            self.tz_mode = tz_mode
        self.query_tz = _zone("query_tz", query_tz)
        self.column_tzs = {name: _zone("column_tz", zone) for name, zone in column_tzs.items()} if column_tzs else None
        self.response_tz: tzinfo | None = None
        self.as_pandas = as_pandas
        self.streaming = streaming
        self.column_renamer: Callable[[str], str] | None = None
        self._rename: str | None = None
        if rename_response_column:
            self.rename_response_column = rename_response_column
        self._bound: Bound | None = None

    @property
    def bound(self) -> Bound:
        """The query as it is sent, without its format."""
        if self._bound is None:
            self._bound = bind(self.query, self.parameters, self.server_tz)
        return self._bound

    @property
    def final_query(self) -> str | bytes:
        """The query's text with the parameters in it that are bound here."""
        return self.bound.text

    @property
    def bind_params(self) -> dict[str, str]:
        """The parameters that are bound at the server, by their names in the URL."""
        return self.bound.parameters

    @property
    def is_select(self) -> bool:
        """Whether there is a SELECT in it."""
        return self.bound.statement.is_select

    @property
    def has_limit(self) -> bool:
        """Whether there is a LIMIT in it."""
        return self.bound.statement.has_limit

    @property
    def is_insert(self) -> bool:
        """Whether it is an INSERT."""
        return self.bound.statement.is_insert

    @property
    def is_command(self) -> bool:
        """Whether it is a statement without a result, such as CREATE."""
        return self.bound.statement.is_command

    @property
    def tz_mode(self) -> TzMode:
        """How moments in UTC are given: "naive_utc", "aware" or "schema" (as the column's type says)."""
        return self._tz_mode

    @tz_mode.setter
    def tz_mode(self, mode: TzMode) -> None:
        if mode not in TZ_MODES:
            raise ProgrammingError(f"tz_mode={mode!r} isn't known: use one of {', '.join(TZ_MODES)}")
        self._tz_mode = mode
        self._tz_mode_explicit = True

    @property
    def rename_response_column(self) -> str | None:
        """The rule by which columns of the result are renamed."""
        return self._rename

    @rename_response_column.setter
    def rename_response_column(self, method: str | None) -> None:
        self._rename = method
        self.column_renamer = renamer_of(method)

    def set_parameters(self, parameters: Parameters) -> None:
        """Binds the query to other parameters."""
        self.parameters = parameters
        self._bound = None

    def set_parameter(self, key: str, value: Any) -> None:
        """Sets one named parameter."""
        if not isinstance(self.parameters, dict):
            self.parameters = {}
        self.parameters[key] = value
        self._bound = None

    def set_response_tz(self, response_tz: tzinfo | None) -> None:
        """The zone that the answer named, when it isn't the server's."""
        self.response_tz = response_tz

    def updated_copy(
        self,
        query: str | bytes | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        server_tz: tzinfo | None = None,
        use_none: bool | None = None,
        column_oriented: bool | None = None,
        use_numpy: bool | None = None,
        max_str_len: int | None = None,
        query_tz: str | tzinfo | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        use_extended_dtypes: bool | None = None,
        as_pandas: bool = False,
        streaming: bool = False,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        rename_response_column: str | None = None,
        tz_mode: TzMode | None = None,
    ) -> QueryContext:
        """A copy in which the given arguments hold; settings, formats and named parameters are merged."""
        if isinstance(self.parameters, dict):
            changed: Any = {**self.parameters, **(parameters if isinstance(parameters, dict) else {})}
        else:
            changed = self.parameters if parameters is None else parameters
        other = QueryContext(
            query=query or self.query,
            parameters=changed,
            settings={**self.settings, **(settings or {})},
            query_formats={**self.query_formats, **(query_formats or {})},
            column_formats={**self.column_formats, **(column_formats or {})},
            encoding=encoding or self.encoding,
            server_tz=server_tz or self.server_tz,
            use_none=_first(use_none, self.use_none),
            column_oriented=_first(column_oriented, self.column_oriented),
            use_numpy=_first(use_numpy, self.use_numpy),
            max_str_len=_first(max_str_len, self.max_str_len),
            query_tz=_first(query_tz, self.query_tz),
            column_tzs=_first(column_tzs, self.column_tzs),
            use_extended_dtypes=_first(use_extended_dtypes, self.use_extended_dtypes),
            as_pandas=as_pandas,
            streaming=streaming,
            apply_server_tz=self.apply_server_tz,
            external_data=_first(external_data, self.external_data),
            transport_settings=_first(transport_settings, self.transport_settings),
            rename_response_column=_first(rename_response_column, self.rename_response_column),
            tz_mode=tz_mode if tz_mode is not None else self.tz_mode,
        )
        other._tz_mode_explicit = tz_mode is not None or self._tz_mode_explicit
        return other


class InsertContext(BaseQueryContext):
    """A table with columns and types, ready for inserts; `client.create_insert_context` makes it.

    `data` is set for each insert and is empty again after it.
    """

    def __init__(
        self,
        table: str,
        column_names: Sequence[str],
        column_types: Sequence[Any],
        data: Any = None,
        column_oriented: bool | None = None,
        settings: dict[str, Any] | None = None,
        compression: str | bool | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        block_size: int | None = None,
        transport_settings: dict[str, str] | None = None,
        server_tz: tzinfo = timezone.utc,
    ) -> None:
        super().__init__(
            settings=settings,
            query_formats=query_formats,
            column_formats=column_formats,
            transport_settings=transport_settings,
        )
        self.table = table
        self.column_names = column_names
        self.column_types = column_types
        self.column_oriented = bool(column_oriented)
        self.compression = compression
        self.req_block_size = block_size
        self.server_tz = server_tz
        self.row_count = 0
        self.column_count = 0
        #: The table as it was described, to be described again: name, database, settings. None for types that the program
        #: has given.
        self._described: tuple[str, str | None, dict[str, Any] | None] | None = None
        #: Whether the columns are all that the table has, in its order, whatever they are called now.
        self._has_all_columns = False
        self._data: Any = None
        if data is not None:
            self.data = data

    @property
    def type_names(self) -> list[str]:
        """The columns' types as ClickHouse names them."""
        return [kind if isinstance(kind, str) else kind.name for kind in self.column_types]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to insert."""
        return self._data is None

    @property
    def data(self) -> Any:
        """What is inserted: rows, columns (`column_oriented`), a pandas DataFrame or a NumPy array."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        self._data = None
        self.row_count = self.column_count = 0
        if data is None or len(data) == 0:
            return
        rows, columns = _extent(data, self.column_oriented)
        if rows and columns:
            if columns != len(self.column_names):
                raise ProgrammingError(
                    f"The rows have {columns} values, but {len(self.column_names)} columns are named: make them equal"
                )
            self.row_count, self.column_count, self._data = rows, columns, data


def _extent(data: Any, column_oriented: bool) -> tuple[int, int]:
    """The number of rows and of columns."""
    names = getattr(getattr(data, "dtype", None), "names", None)
    if names is not None:  # a structured NumPy array
        return len(data), len(names)
    if hasattr(data, "columns") and hasattr(data, "dtypes"):  # a data frame
        return len(data), len(data.columns)
    if is_arrow_table(data):
        return data.num_rows, data.num_columns
    if column_oriented:
        return len(data[0]), len(data)
    return len(data), len(data[0])


def _zone(argument: str, zone: str | tzinfo | None) -> Any:
    if not isinstance(zone, str):
        return zone
    found = find_zone(zone)
    if found is None:
        raise ProgrammingError(
            f"{argument} {zone} is not recognized; install the package tzdata if this system has no time zone database"
        )
    return found


def _first(given: Any, otherwise: Any) -> Any:
    return otherwise if given is None else given
