"""The front end of the shop: a form and the orders, from the API."""

import html
import json
import os
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

API = f"http://{os.environ['API_SERVICE_HOST']}:{os.environ['API_SERVICE_PORT']}/orders"
PAGE = """<!doctype html><title>Shop</title><link rel="stylesheet" href="http://localhost:18090/shop.css"><h1>Shop</h1>
<form method="post"><input name="item" placeholder="tea" required><button>order</button></form><ul>{orders}</ul>"""


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Show the orders."""
        with urllib.request.urlopen(API) as answer:
            orders = json.load(answer)
        shown = "".join(f"<li>{html.escape(each['item'])}: {each['state']}</li>" for each in orders)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE.format(orders=shown).encode())

    def do_POST(self) -> None:
        """Order."""
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        with urllib.request.urlopen(API, data=form["item"][0].encode()):
            self.send_response(303)
        self.send_header("Location", "/")
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing for each request."""


print("the front end begins")
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
