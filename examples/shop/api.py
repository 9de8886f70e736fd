"""The API of the shop: ``GET /orders`` lists orders, ``POST /orders`` takes one and queues it for the worker."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stores import query, redis


class Orders(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """List orders."""
        rows = query("select id, item, state from orders order by id desc limit 20")
        self._answer([{"id": number, "item": item, "state": state} for number, item, state in rows])

    def do_POST(self) -> None:
        """Take an order."""
        item = self.rfile.read(int(self.headers["Content-Length"])).decode()
        [[number]] = query("insert into orders (item) values (:'item') returning id", item=item)
        redis("LPUSH", "orders", number)
        print(f"order {number}: {item}")
        self._answer({"id": number})

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print orders alone."""

    def _answer(self, value: object) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())


print("the API begins")
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Orders).serve_forever()
