/**
 * The baseline receiver of event streams: the `eventsource` package, `JSON.parse`, and one XADD of the data through ioredis. It has
 * no cursor, matching, dedupe, batching, backpressure or limits.
 *
 * usage: node sse-baseline.ts <redis socket> <url> <streams>
 */
import { EventSource } from "eventsource";
import { Redis } from "ioredis";

const [socket = "", url = "", streams = "1"] = process.argv.slice(2);
const redis = new Redis({ path: socket });

const opened = Array.from({ length: Number(streams) }, (_, n) => {
  const source = new EventSource(`${url}${n}`);
  const append = ({ data }: MessageEvent): void => {
    JSON.parse(data);
    void redis.xadd("baseline", "MAXLEN", "~", 100_000, "*", "data", data);
  };
  source.addEventListener("message", append);
  source.addEventListener("order", append);
  return source;
});
process.on("SIGTERM", () => {
  for (const source of opened) source.close();
  process.exit(0);
});
