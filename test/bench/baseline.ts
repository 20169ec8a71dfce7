/**
 * The baseline receiver: bare `node:http`, the body as one string, `JSON.parse`, one XADD of that string through ioredis, then 200. It
 * has no verification, matching, dedupe, batching or limits.
 *
 * usage: node baseline.ts <redis socket>; prints its port.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";

const redis = new Redis({ path: process.argv[2] ?? "" });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", async () => {
    const text = Buffer.concat(chunks).toString();
    JSON.parse(text);
    const entryId = await redis.xadd("baseline", "MAXLEN", "~", 100_000, "*", "data", text);
    const body = JSON.stringify({ entryId });
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.on("SIGTERM", () => process.exit(0));
