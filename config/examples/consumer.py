# Reads the events of a subscription, and takes over events that another reader left unacknowledged. Needs redis-py: pip install redis
import os, signal, socket, sys, time

import redis

GROUP = sys.argv[1]  # the subscription's id
ME = f"{socket.gethostname()}-{os.getpid()}"
CLAIM_AFTER_MS = 60_000  # longer than the slowest `handle`
r = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def handle(event):
    print(event["type"], event["id"], event.get("data"), flush=True)


def take(topic, entries):
    for entry_id, event in entries:
        try:
            handle(event)
        except Exception as error:  # stays pending until it is claimed again
            print(f"{event['id']} failed: {error}", file=sys.stderr)
        else:
            r.xack(topic, GROUP, entry_id)
    return len(entries)


stopping = False


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
while not stopping:
    taken = 0
    if not r.exists(f"inlet:sub:{GROUP}:paused"):
        for topic in r.smembers(f"inlet:sub:{GROUP}"):
            left = r.xautoclaim(topic, GROUP, ME, CLAIM_AFTER_MS, count=10)[1]
            taken += take(topic, left)
            for _, new in r.xreadgroup(GROUP, ME, {topic: ">"}, count=10):
                taken += take(topic, new)
    if taken == 0:
        time.sleep(1)
