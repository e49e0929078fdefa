"""What is asked: from the arguments of a query to the request that is sent, and to how its answer is read."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from windrow import _core
from windrow._async.exchange import Exchange
from windrow._shared.binding import Parameters, extended, needs_form
from windrow._shared.calls import Call, Repeat, multipart
from windrow._shared.contexts import QueryContext, TzMode
from windrow._shared.errors import ProgrammingError
from windrow._shared.external import ExternalData
from windrow._shared.progress import ProgressOption, report_for
from windrow._shared.reading import read_options
from windrow._shared.settings import SettingDef, all_checked
from windrow._shared.timezones import find_zone

STREAM_BLOCK_ROWS = "8192"  # small blocks: the first comes early, and few bytes wait at a time


class Asking(Exchange):
    """The part of the client that makes requests of queries."""

    server_tz: tzinfo
    server_settings: dict[str, SettingDef]
    tz_mode: TzMode
    query_limit: int
    form_encode_query_params: bool
    _apply_server_tz: bool
    _read_headers: list[tuple[str, str]]

    def create_query_context(
        self,
        query: str | bytes | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        column_oriented: bool | None = None,
        use_numpy: bool | None = False,
        max_str_len: int | None = 0,
        context: QueryContext | None = None,
        query_tz: str | tzinfo | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        use_na_values: bool | None = None,
        streaming: bool = False,
        as_pandas: bool = False,
        external_data: ExternalData | None = None,
        use_extended_dtypes: bool | None = None,
        transport_settings: dict[str, str] | None = None,
        tz_mode: TzMode | None = None,
    ) -> QueryContext:
        """The arguments of a query as an object that can be used again; with `context`, a changed copy of that one.

        `query_formats` say how values of a type are given (`{"IPv*": "string"}`), `column_formats` how those of a
        column are. `use_none=False` gives a type's default value for NULL. Moments are given in `query_tz`, or in the
        zone that `column_tzs` names for their column. ProgrammingError for a zone or a mode that isn't known.
        """
        explicit = tz_mode is not None or (context is not None and context._tz_mode_explicit)
        given: dict[str, Any] = {
            "parameters": parameters,
            "settings": settings,
            "query_formats": query_formats,
            "column_formats": column_formats,
            "encoding": encoding,
            "use_none": use_none,
            "column_oriented": column_oriented,
            "use_numpy": use_numpy,
            "max_str_len": max_str_len,
            "query_tz": query_tz,
            "column_tzs": column_tzs,
            "as_pandas": as_pandas,
            "streaming": streaming,
            "external_data": external_data,
            "transport_settings": transport_settings,
            "server_tz": self.server_tz,
            "tz_mode": tz_mode if explicit else self.tz_mode,
        }
        if context is not None:
            made = context.updated_copy(query, use_extended_dtypes=use_extended_dtypes, **given)
        else:
            if use_extended_dtypes is None:
                use_extended_dtypes = True if as_pandas and use_na_values is None else use_na_values
            made = QueryContext(
                query if query is not None else "",
                use_extended_dtypes=use_extended_dtypes,
                apply_server_tz=self._apply_server_tz,
                **given,
            )
        made._tz_mode_explicit = explicit
        return made

    def _take_zone(self, context: QueryContext, response: Any) -> None:
        """The answer says in which zone the server (or this session) is."""
        named = response.headers.get("x-clickhouse-timezone")
        zone = find_zone(named) if named else None
        context.response_tz = None if zone is None or zone == self.server_tz else zone

    def _reading(self, context: QueryContext) -> _core.ReadOptions:
        return read_options(
            query_formats=context.query_formats or None,
            column_formats=context.column_formats or None,
            encoding=context.encoding,
            use_none=context.use_none,
            query_tz=context.query_tz,
            column_tzs=context.column_tzs,
            tz_mode=context.tz_mode,
            response_tz=context.response_tz,
            server_tz=context.server_tz,
            apply_server_tz=context.apply_server_tz,
        )

    def _checked(self, settings: dict[str, Any] | None) -> dict[str, str]:
        """Settings of one call as they are sent."""
        return all_checked(settings, self.server_settings, self._targets.settings) if settings else {}

    def _read_call(self, context: QueryContext) -> Call:
        """The request for a query that is read as Native."""
        params = self._checked(context.settings)
        bound = context.bound
        text = bound.text
        if self.query_limit and context.is_select and not context.has_limit:
            text = extended(text, f"\n LIMIT {self.query_limit}")
        if not bound.statement.is_insert:
            text = extended(text, "\n FORMAT Native")
        repeat = Repeat.READ if bound.statement.is_read and "query" not in params else Repeat.NEVER
        call = Call(params, repeat=repeat, native=True)
        if context.streaming:
            self._own_setting(call, "max_block_size", STREAM_BLOCK_ROWS)
        self._put_query(call, text, bound.parameters, context.external_data)
        call.headers += self._read_headers
        if context.transport_settings:
            call.headers += context.transport_settings.items()
        return call

    def _own_setting(self, call: Call, name: str, value: str) -> None:
        """A setting that this client wants by itself: not where the user has one, or where it can't be changed."""
        if name in call.params or name in self._targets.settings or name in self._refused_settings:
            return
        known = self.server_settings.get(name)
        if known is not None and known.readonly != 1:
            call.params[name] = value
            call.own_settings += (name,)

    def _put_query(
        self, call: Call, text: str | bytes, parameters: dict[str, str], external_data: ExternalData | None
    ) -> None:
        """Puts the query where it belongs: into the body, or into a form when there is more than fits a URL."""
        if external_data is None and not needs_form(text, parameters, self.form_encode_query_params):
            call.params.update(parameters)
            call.body = text.encode() if isinstance(text, str) else text
            if isinstance(text, str):
                call.headers.append(("Content-Type", "text/plain; charset=utf-8"))
            return
        fields: dict[str, str | bytes] = {}
        files: dict[str, tuple[str, bytes, str]] = {}
        if needs_form(text, parameters, self.form_encode_query_params):
            fields = {"query": text, **parameters}
        elif isinstance(text, bytes):
            raise ProgrammingError(
                "A query with bytes in it can't go with external data into a URL: set form_encode_query_params=True"
            )
        else:
            call.params.update(parameters)
            call.params["query"] = text
        if external_data is not None:
            call.params.update(external_data.query_params)
            files = external_data.form_data
        call.body, content_type = multipart(fields, files)
        call.headers.append(("Content-Type", content_type))

    def _ask_for_progress(self, call: Call, progress: ProgressOption) -> None:
        call.report = report_for(progress)
        for name, value in (("send_progress_in_http_headers", "1"), ("http_headers_progress_interval_ms", "100")):
            if name in self.server_settings and self.server_settings[name].readonly != 1:
                call.params[name] = value

    def _asks_for_columns_only(self, context: QueryContext) -> bool:
        """A result of no rows has no header in Native, so its columns have to be asked for in another format."""
        bound = context.bound
        return bound.statement.ends_with_limit_zero and not bound.statement.is_insert and isinstance(bound.text, str)
