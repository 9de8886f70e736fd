"""The worker of the shop: packs each order that the API has queued."""

from stores import query, redis

print("the worker begins")
while True:
    # The name of the queue and an order, or nothing after a minute without one.
    queued = redis("BRPOP", "orders", "60", timeout=90)
    for number in map(bytes.decode, queued[1:]):
        query("update orders set state = 'packed' where id = :'number'::int", number=number)
        print(f"order {number} is packed")
