"""Makes the golden files anew from the queries in cases.txt: `make.py http://user:password@host:port/`."""

import base64
import pathlib
import sys
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).parent
SETTINGS = {
    "output_format_native_use_flattened_dynamic_and_json_serialization": 1,
    "allow_experimental_nullable_tuple_type": 1,
    "allow_experimental_qbit_type": 1,
    "allow_suspicious_low_cardinality_types": 1,
    "allow_suspicious_variant_types": 1,
    "enable_time_time64_type": 1,
    "session_timezone": "UTC",
}


def answer(server: urllib.parse.SplitResult, query: str, **more: int) -> bytes:
    url = f"{server.scheme}://{server.hostname}:{server.port}/?" + urllib.parse.urlencode({**SETTINGS, **more})
    login = base64.b64encode(f"{server.username}:{server.password}".encode()).decode()
    request = urllib.request.Request(url, data=query.encode(), headers={"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request) as response:
        return response.read()


def main() -> None:
    server = urllib.parse.urlsplit(sys.argv[1])
    for line in (HERE / "cases.txt").read_text().splitlines():
        name, query = line.split("\t")
        native = answer(server, f"{query} FORMAT Native", client_protocol_version=54405)
        (HERE / f"{name}.native").write_bytes(native)
        (HERE / f"{name}.rowbinary").write_bytes(answer(server, f"{query} FORMAT RowBinary"))


if __name__ == "__main__":
    main()
