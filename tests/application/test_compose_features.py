"""Compose files with the features that published examples use are read without an error, and with their meaning."""

from __future__ import annotations

from pathlib import Path

from application.samples import load

from steersman.application import Application

PROXY_AND_DATABASE = """
services:
  proxy:
    image: nginx
    volumes:
      - type: bind
        source: ./proxy/nginx.conf
        target: /etc/nginx/conf.d/default.conf
        read_only: true
    ports:
      - 80:80
    depends_on:
      - backend
    networks: [front]
  backend:
    build:
      context: backend
      target: builder
    secrets:
      - db-password
    environment:
      - DATABASE_DB=example
      - DATABASE_HOST=db
    depends_on:
      db:
        condition: service_healthy
    expose:
      - 3000
    networks: [front, back]
    stop_signal: SIGINT
  db:
    image: mariadb:10-focal
    command: '--default-authentication-plugin=mysql_native_password'
    restart: always
    healthcheck:
      test: ['CMD-SHELL', 'mysqladmin ping -h 127.0.0.1 --password="$$(cat /run/secrets/db-password)" --silent']
      interval: 3s
      retries: 5
      start_period: 30s
    secrets:
      - db-password
    volumes:
      - db-data:/var/lib/mysql
    environment:
      MYSQL_DATABASE: example
      MYSQL_ROOT_PASSWORD_FILE: /run/secrets/db-password
    expose: [3306, 33060]
    networks: [back]
volumes:
  db-data:
secrets:
  db-password:
    file: db/password.txt
networks:
  front:
    driver: bridge
  back:
"""

HOME_SERVER = """
version: "3"
services:
  vpn:
    image: vpn
    container_name: vpn
    cap_add: [NET_ADMIN, SYS_MODULE]
    environment:
      - PUID=1000
      - TZ=${TIMEZONE}
    volumes:
      - /usr/share/appdata/vpn/config:/config
      - /lib/modules:/lib/modules
      - /project/node_modules
    ports:
      - 51820:51820/udp
    sysctls:
      - net.ipv4.conf.all.src_valid_mark=1
    restart: always
    networks:
      home:
        ipv4_address: 172.16.0.2
  media:
    image: media
    network_mode: host
    hostname: media
    user: "1000"
    stdin_open: true
    platform: linux/amd64
    runtime: io.containerd.wasmedge.v1
    labels: ["traefik.enable=true"]
    deploy:
      resources:
        limits:
          memory: 2gb
networks:
  home:
    ipam:
      config: [{subnet: 172.16.0.0/24}]
"""


def compose(folder: Path, text: str) -> Application:
    return load(folder, {"compose.yaml": text}, environment={"TIMEZONE": "Europe/Berlin"}, name="p")


def test_a_proxy_with_a_database(tmp_path: Path) -> None:
    """Dependencies with conditions, secrets, networks, a build stage and a health check with a shell."""
    application = compose(tmp_path, PROXY_AND_DATABASE)
    proxy, backend, database = application.services.values()
    assert proxy.volumes[0].source == f"{tmp_path}/proxy/nginx.conf"
    assert proxy.volumes[0].read_only
    assert [(depends.service, depends.condition) for depends in backend.depends_on] == [("db", "service_healthy")]
    assert (backend.expose, backend.stop_signal) == ((3000,), "SIGINT")
    assert [use.name for use in backend.networks or ()] == ["front", "back"]
    assert database.command == ("--default-authentication-plugin=mysql_native_password",)
    assert database.healthcheck is not None
    assert database.healthcheck.action.command[2].endswith('--password="$(cat /run/secrets/db-password)" --silent')
    assert application.secrets["db-password"].file == tmp_path / "db/password.txt"
    assert "default" not in application.networks
    assert application.warnings == ()


def test_a_home_server(tmp_path: Path) -> None:
    """Variables, capabilities, addresses, the network of the host, limits, and an anonymous volume."""
    application = compose(tmp_path, HOME_SERVER)
    vpn, media = application.services.values()
    assert vpn.environment == {"PUID": "1000", "TZ": "Europe/Berlin"}
    assert (vpn.ports[0].published, vpn.ports[0].protocol) == (51820, "udp")
    assert [mount.type for mount in vpn.volumes] == ["bind", "bind", "volume"]
    assert vpn.run_arguments == (
        *("--cap-add", "NET_ADMIN", "--cap-add", "SYS_MODULE"),
        *("--sysctl", "net.ipv4.conf.all.src_valid_mark=1"),
    )
    assert (media.network_mode, media.user, media.labels) == ("host", "1000", {"traefik.enable": "true"})
    assert media.run_arguments == ("--runtime", "io.containerd.wasmedge.v1", "--memory", "2147483648b")
    [warning] = application.warnings
    assert [name in warning.text for name in ("version", "ipv4_address", "ipam")] == [True] * 3
