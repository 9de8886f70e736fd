"""One replica of an operator with webhooks, as a process. Arguments: its name, its port, and the URL of all replicas.

It ends when its standard input does.
"""

import asyncio
import os
import sys
import threading

from samples.shops import Shop
from steersman import Manager
from steersman.webhooks import WebhookEndpoint, mutates


@mutates(Shop)
def shop_defaults(shop: Shop) -> Shop:
    shop.spec.image = shop.spec.image or "nginx"
    return shop


def _end_with_the_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(3)


def main(name: str, port: str, url: str) -> None:
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    manager = Manager(name=name, webhook_endpoint=WebhookEndpoint(port=int(port), url=url, install=True))
    manager.add(shop_defaults)
    asyncio.run(manager.run())


if __name__ == "__main__":
    main(*sys.argv[1:])
