"""The objects that an application becomes: labels, names, dependencies, determinism, and what the server says of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from application.shop import FOLDER, application, environment, produced, program, service, trees

from steersman.application import ApplicationError, application_objects, load_application, object_warnings
from steersman.application.model import (
    Build,
    DependsOn,
    FileContent,
    FileGrant,
    HealthCheck,
    Mount,
    Network,
    NetworkUse,
    Port,
    Restart,
    Volume,
    WatchRule,
)
from steersman.controlplane import ControlPlane
from steersman.objects import encode_any
from steersman.workloads.kinds import KINDS, Container, ExecProbe, HttpProbe, TcpProbe


def everything():
    """An application that uses every field which has an effect."""
    return application(
        service(
            "web",
            5,
            command=("python3", "-m", "web"),
            ports=(Port(published=8080, target=3000),),
            depends_on=(
                DependsOn(service="Order_DB", condition="service_healthy"),
                DependsOn(service="api"),
                DependsOn(service="migrate", condition="service_completed_successfully"),
                DependsOn(service="extra", required=False),
            ),
            healthcheck=HealthCheck(
                action=HttpProbe(url="http://localhost:3000/health"),
                interval=1,
                timeout=0.5,
                retries=4,
                start_period=5,
            ),
            restart=Restart(policy="on-failure", maximum=3),
            watch=(WatchRule(paths=("src/**/*.py",), ignore=("*.pyc",)), WatchRule(paths=("web.toml",), debounce=1.5)),
            labels={"team": "front"},
            user="www:www",
            stop_signal="SIGINT",
            stop_grace_period=2.5,
        ),
        service("api", 20, entrypoint=("python3",), command=("api.py",), ports=(Port(),), scale=2),
        service(
            "migrate", 30, working_folder="/srv/shop/db", healthcheck=HealthCheck(action=ExecProbe(command=["true"]))
        ),
        service(
            "Order_DB",
            40,
            image="docker.io/library/postgres:16",
            entrypoint=("docker-entrypoint.sh", "postgres"),
            command=("-c", "fsync=off"),
            environment={"POSTGRES_PASSWORD": "secret"},
            ports=(Port(published=5432, target=5432), Port(target=53, protocol="udp", published=5353)),
            expose=(9187,),
            healthcheck=HealthCheck(action=ExecProbe(command=["/bin/sh", "-c", "pg_isready"])),
            restart=Restart(policy="on-failure", maximum=5),
            volumes=(
                Mount(type="volume", source="data", target="/var/lib/postgresql/data"),
                Mount(type="volume", source="seed", target="/seed", read_only=True),
                Mount(type="volume", target="/scratch"),
                Mount(type="bind", source="db/init", target="/init", read_only=True),
                Mount(type="tmpfs", target="/tmp"),
            ),
            networks=(NetworkUse(name="back_end", aliases=("database",)), NetworkUse(name="office")),
            secrets=(FileGrant(source="password", target="/run/secrets/password", mode=0o400, user="70", group="70"),),
            configs=(FileGrant(source="settings", target="/etc/settings.ini"),),
            working_folder="/srv",
            user="postgres",
            hostname="orders",
            labels={"team": "data"},
            tty=True,
            stdin_open=True,
            pull_policy="always",
            platform="linux/amd64",
            stop_signal="SIGQUIT",
            stop_grace_period=30,
            run_arguments=("--cap-add", "SYS_NICE"),
        ),
        service(
            "mail",
            70,
            build=Build(
                context="mail",
                dockerfile="Dockerfile.dev",
                args={"VERSION": "2"},
                target="dev",
                labels={"team": "mail"},
                tags=("mail:dev",),
                secrets=("password", "token"),
            ),
            scale=2,
            ports=(Port(published=2525, target=25),),
        ),
        volumes={"data": Volume(name="shop_data"), "seed": Volume(name="seed", external=True)},
        networks={"back_end": Network(name="shop_back_end"), "office": Network(name="office", external=True)},
        secrets={
            "password": FileContent(file=Path("password.txt")),
            "token": FileContent(environment="TOKEN", content="t0ken"),
        },
        configs={"settings": FileContent(content="a=1\n")},
        objects=({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": "default"}},),
    )


@pytest.fixture(scope="module")
async def client():
    async with ControlPlane(resources=KINDS, controllers=()) as plane:
        yield plane.client


async def test_the_server_accepts_every_object(client):
    for each in application_objects(everything(), project="shop"):
        await client.apply(each, field_manager="test")


def test_the_same_application_gives_equal_objects():
    first, second = ([encode_any(each) for each in application_objects(everything(), project="shop")] for _ in range(2))
    assert first == second


def test_every_object_has_its_labels_and_its_place():
    found = trees(everything())
    for name, tree in found.items():
        labels = tree["metadata"]["labels"]
        assert labels["steersman.dev/project"] == "shop"
        shared = tree["kind"] in {"ConfigMap", "ContainerNetwork", "ContainerVolume"}
        assert ("steersman.dev/service" in labels) is not shared, name
    web = found["ExecutableReplicaSet/web"]
    assert web["metadata"]["annotations"]["steersman.dev/order"] == "0"
    assert web["spec"]["template"]["labels"] == {"steersman.dev/project": "shop", "steersman.dev/service": "web"}
    database = found["Container/order-db"]["metadata"]
    assert database["labels"]["steersman.dev/service"] == "Order_DB"
    assert database["annotations"]["steersman.dev/order"] == "3"
    assert msgspec.json.decode(web["metadata"]["annotations"]["steersman.dev/depends-on"])[0] == {
        "service": "Order_DB",
        "condition": "service_healthy",
    }


def test_an_edited_service_changes_its_objects_and_those_that_name_its_address():
    app = everything()
    before = trees(app)

    def changed(name, **fields):
        edited = msgspec.structs.replace(app.services[name], **fields)
        after = trees(msgspec.structs.replace(app, services={**app.services, name: edited}))
        return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}

    assert changed("migrate", command=("./other",)) == {"ExecutableReplicaSet/migrate"}
    assert changed("mail", user="mail") == {"Container/mail", "Container/mail-2"}
    assert changed("Order_DB", ports=(Port(published=5433, target=5432),)) == {
        "Container/order-db",
        "Service/order-db",
        "ExecutableReplicaSet/web",
    }


def test_dependencies_name_objects():
    assert program(everything(), "web")["steersman"]["dependsOn"] == [
        {"kind": "Container", "name": "order-db", "condition": "Healthy"},
        {"kind": "ExecutableReplicaSet", "name": "api", "condition": "Started"},
        {"kind": "ExecutableReplicaSet", "name": "migrate", "condition": "Completed"},
    ]
    app = application(service("a", image="a", scale=2), service("b", depends_on=(DependsOn(service="a"),)))
    assert [each["name"] for each in program(app, "b")["steersman"]["dependsOn"]] == ["a", "a-2"]
    app = application(service("a", command=("x",)), service("b", depends_on=(DependsOn(service="a", required=False),)))
    assert [each["optional"] for each in program(app, "b")["steersman"]["dependsOn"]] == [True]


def test_a_dependent_says_that_it_restarts_with_its_dependency():
    app = application(
        service("a", command=("x",)), service("b", command=("x",), depends_on=(DependsOn(service="a", restart=True),))
    )
    [found] = [each for each in application_objects(app, project="p") if each.key.name == "b"]
    assert '"restart":"true"' in found.metadata.annotations["steersman.dev/depends-on"]


def test_a_container_at_scale_0_has_no_object_and_keeps_nothing_waiting():
    """As in Compose: a scale of 0 means no container, and dependents start without it."""
    app = application(service("a", image="a", scale=0), service("b", depends_on=(DependsOn(service="a"),)))
    assert not [each for each in application_objects(app, project="p") if isinstance(each, Container)]
    assert "dependsOn" not in program(app, "b").get("steersman", {})


def test_a_process_finds_its_dependencies_by_the_variables_of_kubernetes():
    env = environment(program(everything(), "web"))
    assert env["ORDER_DB_SERVICE_HOST"] == "localhost"
    assert env["ORDER_DB_SERVICE_PORT"] == "5432"
    assert env["API_SERVICE_PORT"] == '{{portFor "api"}}'
    assert not any(name.startswith("MIGRATE_") for name in env), "it has ended when web starts"


def test_a_declared_variable_wins():
    app = application(
        service("db", ports=(Port(target=5432),)),
        service(
            "web",
            environment={"DB_SERVICE_HOST": "elsewhere", "PORT": "1"},
            ports=(Port(target=3000),),
            depends_on=(DependsOn(service="db"),),
        ),
    )
    assert environment(program(app, "web")) == {
        "DB_SERVICE_HOST": "elsewhere",
        "PORT": "1",
        "DB_SERVICE_PORT": "5432",
    }


@pytest.mark.parametrize(
    ("ports", "scale", "spec", "producer", "port"),
    [
        ([Port(published=3000, target=3000)], 1, "Proxyless", {"port": 3000}, "3000"),
        ([Port(target=3000)], 1, "Proxyless", {"port": 3000}, "3000"),
        ([Port(published=8080, target=3000)], 1, 8080, {"port": 3000}, "3000"),
        ([Port(published=8080)], 1, 8080, {}, '{{portForServing "web"}}'),
        ([Port()], 1, 0, {}, '{{portForServing "web"}}'),
        ([Port(target=3000)], 2, 3000, {}, '{{portForServing "web"}}'),
        ([Port(published=8080, target=3000)], 2, 8080, {}, '{{portForServing "web"}}'),
        ([Port(target=3000, host_address="127.0.0.2")], 1, "Proxyless", {"address": "127.0.0.2", "port": 3000}, "3000"),
    ],
)
def test_ports_of_a_process(ports, scale, spec, producer, port):
    app = application(service("web", ports=tuple(ports), scale=scale))
    found = trees(app)
    service_spec = found["Service/web"]["spec"]
    mode = service_spec["addressAllocationMode"]
    assert (mode if mode == "Proxyless" else service_spec["port"]) == spec
    assert produced(found["ExecutableReplicaSet/web"]) == [{"serviceName": "web", **producer}]
    assert environment(program(app, "web"))["PORT"] == port


def test_several_ports_have_a_service_each():
    ports = (Port(target=80), Port(published=9100, target=9090, name="metrics"), Port(name="debug"))
    app = application(service("web", ports=ports), service("see", depends_on=(DependsOn(service="web"),)))
    found = trees(app)
    assert [key for key in found if key.startswith("Service/")] == [
        "Service/web",
        "Service/web-9090",
        "Service/web-debug",
    ]
    env = environment(program(app, "web"))
    assert (env["PORT"], env["PORT_METRICS"], env["PORT_DEBUG"]) == ("80", "9090", '{{portForServing "web-debug"}}')
    assert environment(program(app, "see"))["WEB_9090_SERVICE_PORT"] == "9100"


def test_ports_of_a_container():
    found = trees(everything())
    assert found["Container/order-db"]["spec"]["ports"] == [
        {"containerPort": 5432, "hostPort": 0, "protocol": "TCP"},
        {"containerPort": 53, "hostPort": 5353, "protocol": "UDP"},
    ]
    assert produced(found["Container/order-db"]) == [{"serviceName": "order-db", "port": 5432}]
    assert found["Service/order-db"]["spec"]["port"] == 5432
    everywhere = application(service("db", image="db", ports=(Port(published=1, target=2, host_address="0.0.0.0"),)))
    assert trees(everywhere)["Service/db"]["spec"]["address"] == "0.0.0.0"


def test_what_a_process_exposes_has_an_address():
    assert (
        trees(application(service("web", expose=(3000,))))["Service/web"]["spec"]["addressAllocationMode"]
        == "Proxyless"
    )


def test_a_container_has_every_field_of_its_service():
    spec = trees(everything())["Container/order-db"]["spec"]
    assert (spec["command"], spec["args"]) == ("docker-entrypoint.sh", ["postgres", "-c", "fsync=off"])
    assert spec["restartPolicy"] == "on-failure"
    assert spec["pullPolicy"] == "always"
    assert spec["labels"] == [{"key": "team", "value": "data"}]
    assert spec["steersman"]["stopSignal"] == "SIGQUIT"
    assert spec["steersman"]["stopTimeout"] == "30s"
    assert spec["networks"] == [
        {"name": "back-end", "aliases": ["Order_DB", "database"]},
        {"name": "office", "aliases": ["Order_DB"]},
    ]
    assert spec["runArgs"] == [
        *("--workdir", "/srv", "--user", "postgres", "--hostname", "orders", "--platform", "linux/amd64"),
        *("--tty", "--interactive", "--restart", "on-failure:5", "--expose", "9187", "--tmpfs", "/tmp"),
        *("--cap-add", "SYS_NICE"),
    ]
    assert [(each["type"], each["source"], each["target"], each["readOnly"]) for each in spec["volumeMounts"]] == [
        ("volume", "shop_data", "/var/lib/postgresql/data", False),
        ("volume", "seed", "/seed", True),
        ("volume", "", "/scratch", False),
        ("bind", "/srv/shop/db/init", "/init", True),
    ]


def test_secrets_and_configs_are_files():
    (files,) = trees(everything())["Container/order-db"]["spec"]["createFiles"]
    password, settings = files["entries"]
    assert (password["name"], password["mode"], password["owner"]) == ("run/secrets/password", 0o400, 70)
    assert password["source"] == str(FOLDER / "password.txt")
    assert (settings["name"], settings["mode"], settings["contents"]) == ("etc/settings.ini", 0o444, "a=1\n")


def test_containers_networks_and_volumes_have_the_names_of_compose_in_the_runtime():
    found = trees(everything())
    assert found["Container/mail"]["spec"]["containerName"] == "shop-mail-1"
    assert found["Container/mail"]["metadata"]["annotations"]["steersman.dev/generated-name"] == "true"
    assert found["ContainerNetwork/back-end"]["spec"]["networkName"] == "shop_back_end"
    assert found["ContainerNetwork/default"]["spec"]["networkName"] == "shop_default"
    assert found["ContainerNetwork/office"]["spec"]["mode"] == "existing"
    assert found["ContainerVolume/data"]["spec"] == {"name": "shop_data", "persistent": True}
    assert "ContainerVolume/seed" not in found, "an external volume is not ours"


def test_an_internal_network_has_no_way_out():
    inside = service(
        "db", 5, image="postgres", networks=(NetworkUse(name="back"),), ports=(Port(published=5432, target=5432),)
    )
    shop = application(inside, networks={"back": Network(name="shop_back", internal=True)})
    assert trees(shop)["ContainerNetwork/back"]["spec"]["steersman"] == {"internal": True}
    (warning,) = object_warnings(shop, project="shop")
    assert "all networks of the service are internal" in warning.text


def test_a_build():
    found = trees(everything())
    spec = found["Container/mail"]["spec"]
    # The first one has the service's name itself, at every scale.
    assert spec["networks"] == [{"name": "default"}]
    second = {"containerName": "shop-mail-2", "networks": [{"name": "default", "aliases": ["mail"]}]}
    assert {**spec, **second} == found["Container/mail-2"]["spec"]
    assert spec["image"] == "localhost/shop-mail:latest"
    build = spec["build"]
    assert (build["context"], build["dockerfile"]) == ("/srv/shop/mail", "/srv/shop/mail/Dockerfile.dev")
    assert build["stage"] == "dev"
    assert [(each["id"], each["type"]) for each in build["secrets"]] == [("password", "file"), ("token", "env")]


def test_a_process_has_every_field_of_its_service():
    found = trees(everything())
    web = found["ExecutableReplicaSet/web"]["spec"]
    spec = web["template"]["spec"]
    assert (spec["executablePath"], spec["args"]) == ("python3", ["-m", "web"])
    assert spec["workingDirectory"] == "/srv/shop"
    assert spec["steersman"]["stopSignal"] == "SIGINT"
    assert spec["steersman"]["stopTimeout"] == "2.5s"
    assert spec["steersman"]["user"] == "www:www"
    assert web["steersman"]["restart"]["policy"] == "OnFailure"
    assert web["steersman"]["restart"]["maximumRestarts"] == 3
    assert web["steersman"]["watch"]["paths"] == ["src/**/*.py", "web.toml"]
    assert web["steersman"]["watch"]["debounce"] == "1.5s"
    assert found["ExecutableReplicaSet/web"]["metadata"]["annotations"]["team"] == "front"
    assert found["ExecutableReplicaSet/api"]["spec"]["replicas"] == 2
    assert program(everything(), "api")["executablePath"] == "python3"


def test_health_checks_are_probes():
    web = program(everything(), "web")["steersman"]["healthProbes"][0]
    assert web["http"]["url"] == "http://localhost:3000/health"
    assert (web["schedule"]["interval"], web["schedule"]["timeout"]) == ("1s", "500ms")
    assert (web["schedule"]["failureThreshold"], web["schedule"]["startPeriod"]) == (4, "5s")
    database = trees(everything())["Container/order-db"]["spec"]["steersman"]["healthProbes"][0]
    assert database["exec"]["command"] == ["/bin/sh", "-c", "pg_isready"]
    app = application(
        service("db", ports=(Port(published=1, target=5432),), healthcheck=HealthCheck(action=TcpProbe(port=1)))
    )
    assert program(app, "db")["steersman"]["healthProbes"][0]["tcp"]["port"] == 5432, "the proxy accepts in any case"


def test_a_restart_of_a_dependency_restarts_its_dependents():
    app = application(
        service("lib", watch=(WatchRule(paths=("*.c",)),)),
        service("app", depends_on=(DependsOn(service="lib", restart=True),)),
    )
    assert trees(app)["ExecutableReplicaSet/lib"]["spec"]["steersman"]["watch"]["cascade"]


ERRORS = {
    "a process needs a command": (service("a", command=None), "is a process and needs a command"),
    "process: volumes": (service("a", volumes=(Mount(type="tmpfs", target="/x"),)), "volumes needs a container"),
    "process: networks": (service("a", networks=(NetworkUse(name="n"),)), "networks needs a container"),
    "process: hostname": (service("a", hostname="h"), "hostname needs a container: add an image or remove the key"),
    "process: rebuild": (service("a", watch=(WatchRule(paths=("x",), action="rebuild"),)), "the action rebuild needs"),
    "process: UDP": (service("a", ports=(Port(published=1, target=2, protocol="udp"),)), "does not forward UDP"),
    "tcp without a known port": (
        service("a", ports=(Port(published=80),), healthcheck=HealthCheck(action=TcpProbe(port=80))),
        "tcp 80 is the port of the proxy",
    ),
    "tcp of a container": (
        service("a", image="a", healthcheck=HealthCheck(action=TcpProbe(port=80))),
        "tcp works only for processes",
    ),
    "port of a container": (service("a", image="a", ports=(Port(published=80),)), "needs a target"),
    "missing dependency": (service("a", depends_on=(DependsOn(service="b"),)), "service b is not declared"),
    "missing volume": (
        service("a", image="a", volumes=(Mount(type="volume", source="v", target="/v"),)),
        "volume v is not declared",
    ),
    "missing secret": (
        service("a", image="a", secrets=(FileGrant(source="s", target="/s"),)),
        "secrets: secret s is not declared",
    ),
    "container_name": (
        service("a", image="a", container_name="x", scale=2),
        "container_name allows only one container",
    ),
    "dockerfile_inline": (
        service("a", build=Build(context=".", dockerfile_inline="FROM x")),
        "dockerfile_inline is not supported",
    ),
    "nameless port": (service("a", ports=(Port(), Port())), "a name"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_mistakes_are_errors_with_their_place(case):
    definition, message = ERRORS[case]
    with pytest.raises(ApplicationError) as caught:
        application_objects(application(definition), project="shop")
    (problem,) = caught.value.problems
    assert message in problem.text
    assert problem.place == definition.place


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ApplicationError) as caught:
        application_objects(application(service("a", 1, command=None), service("b", 2, hostname="h")), project="p")
    assert [str(each).split(": ")[1] for each in caught.value.problems] == ["service a", "service b"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (service("my_db", 1), service("my-db", 9), "ExecutableReplicaSet my-db"),
        (service("web", 1, image="w", scale=2), service("web-2", 9, image="x"), "Container web-2"),
        (
            service("a", 1, ports=(Port(target=1), Port(target=80))),
            service("a-80", 9, image="x", ports=(Port(target=5),)),
            "Service a-80",
        ),
        (service("a", 1, ports=(Port(target=80),)), service("b", 9, ports=(Port(target=80),)), "also needs port 80"),
        (
            service("a", 1, ports=(Port(published=1, target=80),)),
            service("b", 9, ports=(Port(published=2, target=80),)),
            "also needs port 80",
        ),
    ],
)
def test_collisions_are_errors_with_both_places(first, second, message):
    with pytest.raises(ApplicationError) as caught:
        application_objects(application(first, second), project="shop")
    text = str(caught.value)
    assert message in text
    assert str(first.place) in text
    assert str(second.place) in text


def test_containers_may_listen_at_the_same_port_inside():
    ports = [Port(published=number, target=80) for number in (1, 2)]
    app = application(*(service(f"s{each.published}", image="s", ports=(each,)) for each in ports))
    assert len([key for key in trees(app) if key.startswith("Service/")]) == 2


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (service("a", ports=(Port(target=80, host_address="0.0.0.0"),)), "the process itself listens on port 80"),
        (
            service("a", healthcheck=HealthCheck(action=ExecProbe(command=["true"]), start_interval=1)),
            "start_interval has no effect",
        ),
        (service("a", image="a", pull_policy="daily"), "pull_policy: daily is not supported"),
        (service("a", image="a", networks=(), network_mode="host", ports=(Port(target=1),)), "ports have no effect"),
        (service("a", image="a", command=()), "an empty command has no effect"),
        (
            service("a", depends_on=(DependsOn(service="b", required=False),)),
            "service b is not declared; ignored, because it is not required",
        ),
    ],
)
def test_declarations_without_an_effect_are_warnings(definition, message):
    (warning,) = object_warnings(application(definition), project="shop")
    assert message in warning.text
    assert warning.place == definition.place


class TestCollector:
    def test_every_program_of_the_application_sends_its_telemetry_there(self):
        app = application(
            service(
                "otel",
                image="otel/opentelemetry-collector",
                ports=(Port(target=4317), Port(published=4318, target=4318)),
            ),
            service("web", environment={"OTEL_SERVICE_NAME": "shop-web"}),
            service("mail", build=Build(context="mail")),
            service("db", image="postgres"),
        )
        assert environment(program(app, "web")) == {
            "OTEL_SERVICE_NAME": "shop-web",
            "OTEL_EXPORTER_OTLP_ENDPOINT": 'http://localhost:{{portFor "otel-4318"}}',
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
        mail = environment(trees(app)["Container/mail"]["spec"])
        assert mail["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://otel:4318"
        assert mail["OTEL_SERVICE_NAME"] == "mail"
        assert not environment(trees(app)["Container/db"]["spec"]), (
            "an image that is not built here has its own settings"
        )
        assert not environment(trees(app)["Container/otel"]["spec"])

    def test_it_can_be_named(self):
        services = (
            service("a", ports=(Port(target=4317),)),
            service("b", image="b", ports=(Port(published=1, target=4317),)),
        )
        assert "OTEL_SERVICE_NAME" not in environment(program(application(*services, service("c")), "c"))
        named = application(*services, service("c"), collector="b")
        env = environment(program(named, "c"))
        assert env["OTEL_EXPORTER_OTLP_ENDPOINT"] == 'http://localhost:{{portFor "b"}}'
        assert env["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc"
        assert not environment(program(application(*services, service("c"), collector="d"), "c")), "it is not selected"

    def test_a_file_names_it(self, tmp_path):
        text = "collector: b\nservices: {a: {command: a, ports: [4317]}, b: {command: b, ports: [4318]}}\n"
        (tmp_path / "steersman.yaml").write_text(text, encoding="utf-8")
        found = load_application(tmp_path, environment={})
        assert environment(program(found, "a"))["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:4318"
        (tmp_path / "steersman.yaml").write_text(text.replace("collector: b", "collector: bb"), encoding="utf-8")
        with pytest.raises(ApplicationError, match=r"steersman.yaml:1:\d+: collector: no service 'bb'"):
            load_application(tmp_path, environment={})


def test_a_service_publishes_a_port_once():
    """The second one would be in use by the session itself."""
    ports = (Port(published=8000, target=90), Port(published=8001, target=91), Port(published=8001, target=1))
    with pytest.raises(ApplicationError, match="service a: ports: it publishes port 8001 of this machine twice"):
        application_objects(application(service("a", 1, ports=ports)), project="shop")
    apart = (
        Port(published=8001, target=90, host_address="127.0.0.1"),
        Port(published=8001, target=1, host_address="127.0.0.2"),
    )
    application_objects(application(service("a", 1, ports=apart)), project="shop")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("own", "own", r":6:1: Service own is already declared at .*:4:1"),
        ("own", "a", r":6:1: a service has Service a already: rename this object"),
    ],
)
def test_no_object_of_a_file_is_overwritten(tmp_path: Path, first: str, second: str, message: str):
    """Both would be applied, and the last one would win without a word."""
    version = Container.gvk().api_version
    head = "services: {a: {command: x, ports: ['80:80']}}\n"
    text = "".join(
        f"---\n{{apiVersion: {version}, kind: Service, metadata: {{name: {name}}}, spec: {{}}}}\n"
        for name in (first, second)
    )
    (tmp_path / "steersman.yaml").write_text(f"name: shop\n{head}{text}")
    found = load_application(tmp_path, environment={})
    with pytest.raises(ApplicationError, match=message):
        application_objects(found, project="shop")
