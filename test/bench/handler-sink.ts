/**
 * A handler that accepts every delivery, in a separate process. `GET /` returns the number of deliveries and `DELETE /` resets it.
 *
 * usage: node handler-sink.ts; prints its port.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

let count = 0;
const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.end(String(count));
    return;
  }
  if (request.method === "DELETE") count = 0;
  request.resume().on("end", () => {
    if (request.method === "POST") count++;
    response.writeHead(204).end();
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.on("SIGTERM", () => process.exit(0));
