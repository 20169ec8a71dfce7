/**
 * A server of event streams. `/flood/<name>` sends as many events as the parent process requests. `/quiet/<n>` sends one event and then
 * stays silent.
 *
 * Sends the messages `{port}` and, at intervals, `{open}` to its parent. On the message `{to: name, send: count}`, it sends that many
 * events to the floods of that name.
 *
 * usage: forked by sse.bench.ts, with the data of an event as its argument.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const data = process.argv[2] ?? "{}";
const FRAMES_A_WRITE = 64;
const FLOOD = "/flood/";

const floods = new Map<ServerResponse, string>();
let open = 0;
let id = 0;

const server = createServer((request, response) => {
  open += 1;
  response.on("close", () => {
    open -= 1;
    floods.delete(response);
  });
  response.writeHead(200, { "content-type": "text/event-stream" });
  const { url = "" } = request;
  if (url.startsWith(FLOOD)) floods.set(response, url);
  response.write(url.startsWith(FLOOD) ? ":\n\n" : `id: 1\ndata: ${data}\n\n`);
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

process.on("message", ({ to, send }: { readonly to: string; readonly send: number }) => {
  for (const [response, path] of floods) if (path.startsWith(FLOOD + to)) void flood(response, id, send);
  id += send;
});
setInterval(() => process.send?.({ open }), 100);
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
