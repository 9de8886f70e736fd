#!/usr/bin/env bash
# Starts the shop of examples/shop with the programs, the order and the probes of its steersman.yaml, polled every 50 ms.
# Prints "ready", waits for a signal, and stops everything. Variables: DATA, DB_USER, ASSETS_IMAGE (may be empty).
set -euo pipefail

export PGHOST=127.0.0.1 PGPORT=15432 PGUSER=shop PGDATABASE=shop PYTHONUNBUFFERED=1
export REDIS_SERVICE_HOST=127.0.0.1 REDIS_SERVICE_PORT=16379 API_SERVICE_HOST=127.0.0.1 API_SERVICE_PORT=18000
CONTAINER=steersman-bench-shop-$$
PIDS=()

poll() { until "$@" >/dev/null 2>&1; do sleep 0.05; done; }
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1"); }
answers() { curl --fail --silent "$1"; }
stop() {
  kill "${PIDS[@]:1}" || true
  kill -INT "${PIDS[0]}" || true
  [[ -z $ASSETS_IMAGE ]] || podman rm --force --time 0 "$CONTAINER" >/dev/null
  wait
}

as_user=()
[[ -z $DB_USER ]] || as_user=(setpriv --reuid "$DB_USER" --regid "$DB_USER" --init-groups)
test -e "$DATA/PG_VERSION"
"${as_user[@]}" "$(ls -d /usr/lib/postgresql/*/bin | tail -1)/postgres" \
  -D "$DATA" -p 15432 -k /tmp -c listen_addresses=127.0.0.1 &
PIDS+=($!)
redis-server --port 16379 --bind 127.0.0.1 --save "" --appendonly no &
PIDS+=($!)
if [[ -n $ASSETS_IMAGE ]]; then
  podman run --detach --rm --name "$CONTAINER" --publish 127.0.0.1:18090:8080 --volume "$PWD/assets:/www:ro" \
    "$ASSETS_IMAGE" httpd -f -p 8080 -h /www &
fi
trap 'exit 0' TERM
trap stop EXIT

poll pg_isready -h 127.0.0.1 -p 15432 -U shop -d postgres -q
psql -q -d postgres -v ON_ERROR_STOP=1 -f schema.sql
poll listens 16379
PORT=18000 python3 api.py &
PIDS+=($!)
python3 worker.py &
PIDS+=($!)
poll answers http://127.0.0.1:18000/orders
PORT=18080 python3 web.py &
PIDS+=($!)
poll answers http://127.0.0.1:18080/
[[ -z $ASSETS_IMAGE ]] || poll answers http://127.0.0.1:18090/shop.css
echo ready
wait
