import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const stores = opened(createTestStores);
const channel = opened(async () => {
  await using gateway = await startTestGateway(stores.env);
  return await givenChannel(gateway, { events: [{ type: "made", idPath: "$.id" }] });
});

/** Sends a GET, or a POST when there is a body, over its own keep-alive connection. `fetch` can hang forever when the server closes. */
async function sendRequest(url: string, body?: string) {
  const agent = new Agent({ keepAlive: true });
  try {
    const headers = { "content-type": "application/json" };
    const sent = request(url, { agent, headers, method: body === undefined ? "GET" : "POST" });
    const responded = once(sent, "response") as Promise<[IncomingMessage]>;
    sent.end(body);
    const [answer] = await responded;
    return { status: answer.statusCode, connection: answer.headers.connection, text: await text(answer) };
  } finally {
    agent.destroy();
  }
}

/** Starts a delivery that stays in flight until `end` is written. */
async function startDelivery(origin: string, end: string): Promise<Socket & Disposable> {
  const socket = connect(Number(new URL(origin).port), "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const head = [`POST ${channel.hookPath} HTTP/1.1`, "Host: x", "Content-Type: application/json"];
  const bodyStart = '{"id":';
  socket.write([...head, `Content-Length: ${bodyStart.length + end.length}`, "", bodyStart].join("\r\n"));
  // The gateway accepts connections in order: once this request has its response, the other connection is accepted too.
  await sendRequest(`${origin}/readyz`);
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() });
}

/** Waits until the gateway accepts no new connection. Requests in flight continue. */
const untilClosed = (origin: string): Promise<void> =>
  until(() =>
    sendRequest(`${origin}/readyz`).then(
      () => false,
      () => true,
    ),
  );

/** Repeats the signal until the process has ended: a signal right after the first one counts as the same one. */
async function cutOff(gateway: GatewayProcess): Promise<unknown> {
  let exit: unknown;
  void gateway.exited.then((code) => {
    exit = code;
  });
  await until(() => {
    gateway.kill("SIGTERM");
    return exit !== undefined;
  });
  return exit;
}

describe("a gateway that received SIGTERM", () => {
  it("is not ready but still serves one last response per connection, until a second signal ends it immediately", async () => {
    await using gateway = await startGatewayProcess({ ...stores.env, INLET_DRAIN_DELAY_SECONDS: "3600" });
    // Without the kill, a failing test would wait for the whole delay, because a quick second signal counts as the first.
    using _ = { [Symbol.dispose]: () => gateway.kill("SIGKILL") };
    const { origin } = gateway;
    expect(await sendRequest(`${origin}/readyz`)).toMatchObject({ status: 200, connection: "keep-alive" });
    using _delivery = await startDelivery(origin, '"cut"}');
    gateway.kill("SIGTERM");
    // Right after its greeting, the gateway may report that it is stopping a moment before it closes connections.
    await until(async () => (await sendRequest(`${origin}/readyz`)).connection === "close");
    expect(await sendRequest(`${origin}/readyz`)).toMatchObject({
      status: 503,
      text: expect.stringContaining("is stopping"),
    });
    const answer = await sendRequest(`${origin}${channel.hookPath}`, '{"id":"late"}');
    expect(answer).toMatchObject({ status: 200, connection: "close" });
    expect(await cutOff(gateway)).toBe(143);
  });

  it("is ended by a second signal, even while a request is in flight", async () => {
    await using gateway = await startGatewayProcess({ ...stores.env, INLET_DRAIN_DELAY_SECONDS: "0" });
    using _delivery = await startDelivery(gateway.origin, '"cut"}');
    gateway.kill("SIGTERM");
    await untilClosed(gateway.origin);
    expect(await cutOff(gateway)).toBe(143);
  });

  it("exits after its drain delay, once every request in flight has its response", async () => {
    await using gateway = await startGatewayProcess({ ...stores.env, INLET_DRAIN_DELAY_SECONDS: "1" });
    const end = '"slow"}';
    using delivery = await startDelivery(gateway.origin, end);
    gateway.kill("SIGTERM");
    await untilClosed(gateway.origin);
    delivery.write(end);
    expect(await text(delivery)).toMatch(/^HTTP\/1\.1 200 [\s\S]*"published":1/);
    expect(await gateway.exited).toBe(0);
  });
});
