"""deploy/ and docs/deployment.md: read by the types of whoever runs them, taken by the program, and probed on a real gateway."""

from __future__ import annotations

import http.client
import json
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deployment.files import DEPLOY, DEPLOYED, FILES, SECRETS, commands, kubernetes, read, report, settings, size, windrow
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import HELD, INTO_T, ids, make_table, rows
from harness.paths import ROOT
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

PAGE = (ROOT / "docs" / "deployment.md").read_text()
# After gather.shutdown_timeout_ms (docs/operations.md).
LAST_WRITES_SECONDS = 10
BROKEN = [
    ("compose", "healthcheck:", "healthchecks:", "healthchecks"),
    ("compose", "- windrow-data:/var", "- windrow-date:/var", "undefined volume windrow-date"),
    ("compose", "      - clickhouse\n", "      - clickhous\n", "undefined service"),
    ("compose", "stop_grace_period: 60s", "stop_grace_period: soon", "stop_grace_period"),
    ("compose", "- \"9000:9000\"", "- \"9000:native\"", "native"),
    ("dockerfile", "ENTRYPOINT", "ENTRYPOINTS", "unknown instruction"),
    ("dockerfile", "COPY --from=build", "COPY --form=build", "unknown flag"),
    ("dockerfile", "FROM debian", "FROM --platform debian", "platform"),
    ("dockerfile", "HEALTHCHECK --interval", "HEALTHCHECK --intervals", "unknown flag"),
    ("kubernetes", "terminationGracePeriodSeconds", "terminationGraceSeconds", "unknown field"),
    ("kubernetes", "failureThreshold: 60", "failureThreshold: long", "failureThreshold"),
    ("kubernetes", "  replicas: 3", "  replicas: 3\n  replicas: 2", "already set"),
    ("kubernetes", "memory: 512Mi", "memory: 512M1", "quantity"),
    ("kubernetes", "memory: 512Mi", "memory: 2Gi", "more memory is asked for"),
    ("kubernetes", "serviceName: windrow-each", "serviceName: windrow", "headless"),
    ("kubernetes", "targetPort: native", "targetPort: nativ", "no container has the port nativ"),
    ("kubernetes", "/readyz, port: admin", "/readyz, port: 8081", "no container has the port 8081"),
    ("kubernetes", "{ name: data, mountPath", "{ name: date, mountPath", "no volume"),
    ("kubernetes", "key: admin-token", "key: token", "WINDROW_ADMIN_TOKEN"),
    ("kubernetes", "fieldPath: metadata.name", "fieldPath: metadata.nam", "none of"),
    ("kubernetes", "$(POD_NAME)", "$(POD)", "$(POD) is no variable before it"),
    ("kubernetes", "configMap: { name: windrow }", "configMap: { name: window }", "no ConfigMap"),
    ("kubernetes", "      labels: { app.kubernetes.io/name: windrow }", "      labels: { app: windrow }", "selects no pods"),
    ("kubernetes", "sessionAffinity: ClientIP", "sessionAffinity: Client", "none of"),
    ("kubernetes", "  name: windrow-each", "  name: windrow_each", "lowercase"),
    ("kubernetes", "kind: PodDisruptionBudget", "kind: PodBudget", "not a kind"),
]


@pytest.mark.parametrize("kind", FILES)
def test_its_reader_finds_no_fault(kind: str) -> None:
    assert report(kind, DEPLOY / FILES[kind])["faults"] == []


@pytest.mark.parametrize(("kind", "right", "wrong", "said"), BROKEN)
def test_a_mistake_is_found(kind: str, right: str, wrong: str, said: str, tmp_path: Path) -> None:
    text = (DEPLOY / FILES[kind]).read_text()
    assert right in text
    (tmp_path / FILES[kind]).write_text(text.replace(right, wrong))
    faults = report(kind, tmp_path / FILES[kind])["faults"]
    assert said in "\n".join(faults), faults


@pytest.mark.parametrize("missing", SECRETS)
def test_compose_asks_for_its_secrets(missing: str) -> None:
    given = {name: value for name, value in SECRETS.items() if name != missing}
    assert missing in report("compose", DEPLOY / FILES["compose"], given)["faults"][0]


@pytest.mark.parametrize("kind", DEPLOYED)
def test_the_program_takes_its_settings(kind: str, tmp_path: Path) -> None:
    deployed = DEPLOYED[kind]()
    assert deployed.environment["WINDROW_CONFIG"] == deployed.settings_path
    known = settings(deployed.settings_text, deployed.environment, tmp_path)
    assert "(default)" not in known["backend"] and known["admin.token"] == "(set)"
    assert {int(known[name].strip('"').rsplit(":", 1)[1]) for name in ("http.listen", "native.listen", "admin.listen")} == deployed.ports
    # A folder of its own below what is kept.
    assert Path(known["data_dir"].strip('"')).parent == Path(deployed.volume)
    assert deployed.grace_seconds >= int(known["gather.shutdown_timeout_ms"]) / 1000 + LAST_WRITES_SECONDS
    with pytest.raises(AssertionError, match="WINDROW_ADMIN_TOKENS"):
        settings(deployed.settings_text, {**deployed.environment, "WINDROW_ADMIN_TOKENS": "x"}, tmp_path)
    with pytest.raises(AssertionError, match="max_byte"):
        settings(deployed.settings_text.replace("max_bytes", "max_byte", 1), deployed.environment, tmp_path)
    # Off loopback, the admin port wants its token.
    with pytest.raises(AssertionError, match="admin.token"):
        settings(deployed.settings_text, {**deployed.environment, "WINDROW_ADMIN_TOKEN": ""}, tmp_path)


def test_both_have_the_same_settings(tmp_path: Path) -> None:
    composed, clustered = (settings(made().settings_text, made().environment, tmp_path) for made in DEPLOYED.values())
    different = {name for name in composed if composed[name] != clustered[name]}
    assert different == {"backend", "backend.choice", "cluster.gateways", "cluster.self", "cluster.secret"}


def test_each_pod_is_one_of_the_gateways(tmp_path: Path) -> None:
    manifests = read("kubernetes")
    stateful = manifests["statefulSets"][0]["spec"]
    service = next(each for each in manifests["services"] if each["metadata"]["name"] == stateful["serviceName"])
    known = [settings(made.settings_text, made.environment, tmp_path) for made in map(kubernetes, range(stateful["replicas"]))]
    [gateways] = {each["cluster.gateways"] for each in known}
    assert json.loads(gateways) == [json.loads(each["cluster.self"]) for each in known]
    assert {each["cluster.secret"] for each in known} == {"(set)"}
    for each in known:
        named = urlsplit(json.loads(each["cluster.self"]))
        assert named.hostname.endswith("." + service["metadata"]["name"])
        assert named.port in {port["port"] for port in service["spec"]["ports"]}, "the name of a pod leads to its ports by the headless service"
    beyond = kubernetes(stateful["replicas"])
    with pytest.raises(AssertionError, match="none of `cluster.gateways`"):
        settings(beyond.settings_text, beyond.environment, tmp_path)


def test_the_volume_has_room(tmp_path: Path) -> None:
    deployed = kubernetes()
    known = settings(deployed.settings_text, deployed.environment, tmp_path)
    needed = sum(size(known[name]) for name in ("journal.max_bytes", "dead_letters.max_bytes", "append.max_spool_bytes"))
    claim = read("kubernetes")["statefulSets"][0]["spec"]["volumeClaimTemplates"][0]
    assert size(claim["spec"]["resources"]["requests"]["storage"]) > needed


def test_the_image_is_what_the_others_take_it_for() -> None:
    pod = read("kubernetes")["statefulSets"][0]["spec"]["template"]["spec"]
    container, service = pod["containers"][0], read("compose")["services"]["windrow"]
    [[user], [volume], [entry], [arguments]] = (commands(name) for name in ("USER", "VOLUME", "ENTRYPOINT", "CMD"))
    security = pod["securityContext"]
    assert user["value"] == f"{security['runAsUser']}:{security['runAsGroup']}" and security["fsGroup"] == security["runAsGroup"]
    assert {volume["value"]} == {made().volume for made in DEPLOYED.values()}
    assert entry["words"] == ["windrow"] and arguments["words"] == container["args"] == ["serve"]
    assert windrow("serve", "--help").returncode == 0
    assert container["image"] == service["image"]
    assert (ROOT / service["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    settings_file = next(copied for copied in commands("COPY") if copied["sources"] == ["deploy/windrow.toml"])
    assert {settings_file["target"]} == {made().settings_path for made in DEPLOYED.values()}
    [made_for] = (each["words"][0] for each in commands("RUN"))
    assert made_for.endswith(f"chown {user['value']} {volume['value']}")
    [check] = commands("HEALTHCHECK")
    assert check["words"] == service["healthcheck"]["test"]


def test_the_image_is_built_of_all_that_the_build_needs() -> None:
    build, root, result = read("dockerfile")
    rust = of_workspace('rust-version = "(.*)"')
    assert build["base"] == f"rust:{rust}-bookworm"
    # The C library that it runs with is the one that it is linked to.
    assert root["base"] == "debian:bookworm-slim" and result["base"] == "scratch"
    copied = [
        source
        for command in (*build["commands"], *root["commands"], *result["commands"])
        if command["name"] == "COPY" and "from" not in command
        for source in command["sources"]
    ]
    assert all((ROOT / source).exists() for source in copied)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(copied)
    for needed in [*members(), *included()]:
        assert any((ROOT / source) in (needed, *needed.parents) for source in copied), needed


def of_workspace(pattern: str) -> str:
    return re.search(f"^{pattern}$", (ROOT / "Cargo.toml").read_text(), re.M)[1]


def members() -> list[Path]:
    """Of the workspace: cargo reads the manifests of all of them."""
    return [path for pattern in re.findall('"(.*?)"', of_workspace(r"members = \[(.*)\]")) for path in ROOT.glob(pattern)]


def included() -> list[Path]:
    """What is compiled into the program from elsewhere."""
    found = []
    paths = [path for folder in ("core", "optional") for path in (ROOT / folder).glob("*/src/**/*.rs")]
    for path in paths:
        for named in re.findall(r'include_(?:str|bytes)!\(\s*(?:concat!\()?"((?:\.\./)+[^"]+)"', path.read_text()):
            found.append((path.parent / named).resolve())
    assert ROOT / "docs" / "compatibility.md" in found
    return found


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("deployment") / "engine")
    yield engine
    engine.stop()


def start(folder: Path, engine: Engine, backend: str | None = None) -> RemoteGateway:
    """With the settings of kubernetes.yaml, but on ports of this machine."""
    deployed = kubernetes()
    environment = {name: value for name, value in deployed.environment.items() if name != "WINDROW_CONFIG"}
    backend = backend or backend_url(TESTER, f"{engine.direct.host}:{engine.direct.port}")
    return RemoteGateway(folder, backend, engine.direct, config=deployed.settings_text, environment=environment)


def ask(gateway: RemoteGateway, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(gateway.admin.host, gateway.admin.port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def probes(gateway: RemoteGateway) -> dict[str, int]:
    container = read("kubernetes")["statefulSets"][0]["spec"]["template"]["spec"]["containers"][0]
    return {name: ask(gateway, container[f"{name}Probe"]["httpGet"]["path"])[0] for name in ("startup", "liveness", "readiness")}


def check_of_compose(gateway: RemoteGateway) -> int:
    how, name, *arguments = read("compose")["services"]["windrow"]["healthcheck"]["test"]
    assert (how, name) == ("CMD", "windrow")
    environment = {**gateway.environment, "WINDROW_ADMIN_LISTEN": f"{gateway.admin.host}:{gateway.admin.port}"}
    environment.pop("WINDROW_EMBEDDED_ENGINE")
    return windrow(*arguments, environment={**environment, "WINDROW_CONFIG": str(gateway.config_path)}).returncode


def test_probes_are_answered_without_a_token(engine: Engine, tmp_path: Path) -> None:
    gateway = start(tmp_path, engine)
    assert probes(gateway) == {"startup": 200, "liveness": 200, "readiness": 200}
    assert ask(gateway, "/metrics")[0] == 401
    assert check_of_compose(gateway) == 0
    assert gateway.data_dir.stat().st_mode & 0o777 == 0o700
    assert gateway.stop() == 0
    assert check_of_compose(gateway) == 1


def test_a_gateway_that_has_seen_no_clickhouse_lives_and_is_not_ready(engine: Engine, tmp_path: Path) -> None:
    gateway = start(tmp_path, engine, "http://windrow:s3cret@127.0.0.1:1")
    assert probes(gateway) == {"startup": 200, "liveness": 200, "readiness": 503}
    assert check_of_compose(gateway) == 0
    assert gateway.stop() == 0


def test_the_end_is_told_and_nobody_new_is_let_in(engine: Engine, tmp_path: Path) -> None:
    """Why a gateway is taken out of its balancer before it gets a SIGTERM."""
    make_table(engine.direct)
    gateway = start(tmp_path, engine)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(lambda: tested.insert(INTO_T, rows(1), **HELD))
        eventually(lambda: '"inserts":1' in buffers(gateway), "it is gathered")
        engine.child.signal(signal.SIGSTOP)
        try:
            gateway.child.signal(signal.SIGTERM)
            eventually(lambda: ask(gateway, "/readyz") == (503, "shutting down\n"), "its end is told")
            assert ask(gateway, "/healthz")[0] == 200
            eventually(lambda: refuses(gateway), "nobody new is let in")
        finally:
            engine.child.signal(signal.SIGCONT)
        assert waits.result().status == 200
    assert gateway.child.wait() == 0
    assert ids(engine.direct) == [1]


def buffers(gateway: RemoteGateway) -> str:
    connection = http.client.HTTPConnection(gateway.admin.host, gateway.admin.port, timeout=60)
    connection.request("GET", "/api/v1/buffers", headers={"Authorization": f"Bearer {gateway.environment['WINDROW_ADMIN_TOKEN']}"})
    try:
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def refuses(gateway: RemoteGateway) -> bool:
    connection = http.client.HTTPConnection(gateway.http.host, gateway.http.port, timeout=60)
    try:
        connection.connect()
    except ConnectionRefusedError:
        return True
    finally:
        connection.close()
    return False


def test_what_the_page_says_of_settings_is_so(tmp_path: Path) -> None:
    examples = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    assert len(examples) == 4
    known = set.union(*(set(settings(example, {}, tmp_path)) for example in examples))
    named = set(re.findall(r"`([a-z_]+\.[a-z_]+)(?: = [^`]*)?`", PAGE)) - {"system.asynchronous_inserts", "install.sh", "rows.duckdb"}
    assert len(named) > 8 and named <= known, named - known
