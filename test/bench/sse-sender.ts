/**
 * Sends event streams: `/flood` sends one event a tick, as many as its parent asks for, `/quiet/<n>` one event and then silence.
 * Speaks with its parent: `{port}`, `{open}` now and then; hears `{send: count}`, upon which all floods get so many events.
 *
 * usage: forked by sse.bench.ts, the data of an event as its argument.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const data = process.argv[2] ?? "{}";
const FRAMES_A_WRITE = 64;

const floods = new Set<ServerResponse>();
let open = 0;
let id = 0;

const server = createServer((request, response) => {
  open += 1;
  response.on("close", () => {
    open -= 1;
    floods.delete(response);
  });
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (request.url?.startsWith("/flood")) floods.add(response);
  response.write(request.url?.startsWith("/flood") ? ":\n\n" : `id: 1\ndata: ${data}\n\n`);
});

async function flood(response: ServerResponse, first: number, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += FRAMES_A_WRITE) {
    let text = "";
    for (let i = sent; i < Math.min(count, sent + FRAMES_A_WRITE); i++) {
      text += `id: ${first + i}\nevent: order\ndata: ${data}\n\n`;
    }
    if (!response.write(text)) await new Promise((resolve) => response.once("drain", resolve));
  }
}

process.on("message", ({ send }: { readonly send: number }) => {
  for (const response of floods) void flood(response, id, send);
  id += send;
});
setInterval(() => process.send?.({ open }), 100);
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
