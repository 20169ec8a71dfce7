import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, it } from "vitest";
import {
  channelOf,
  createTestStores,
  type InstalledApp,
  installApp,
  startTestGateway,
} from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const stores = opened(createTestStores);
let app: InstalledApp;
beforeAll(async () => {
  await using gateway = await startTestGateway(stores.env);
  app = await installApp(gateway, [
    { uid: "in", kind: "webhook", events: [{ type: "made", idPath: "$.id" }] },
  ]);
});

const hookPath = (): string => new URL(channelOf(app).url ?? "").pathname;

/** Asks, or posts, over a connection of its own that it would keep: `fetch` waits at times without end where servers close theirs. */
async function ask(url: string, body?: string) {
  const agent = new Agent({ keepAlive: true });
  try {
    const headers = { "content-type": "application/json" };
    const asked = request(url, { agent, headers, method: body === undefined ? "GET" : "POST" });
    const answered = once(asked, "response") as Promise<[IncomingMessage]>;
    asked.end(body);
    const [answer] = await answered;
    return { status: answer.statusCode, connection: answer.headers.connection, text: await text(answer) };
  } finally {
    agent.destroy();
  }
}

/** A delivery that is under way until `end` is written. */
async function startDelivery(origin: string, end: string): Promise<Socket & Disposable> {
  const socket = connect(Number(new URL(origin).port), "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const head = [`POST ${hookPath()} HTTP/1.1`, "Host: x", "Content-Type: application/json"];
  const begun = '{"id":';
  socket.write([...head, `Content-Length: ${begun.length + end.length}`, "", begun].join("\r\n"));
  // Connections are taken in their order: when this one is answered, the other is inside.
  await ask(`${origin}/readyz`);
  return Object.assign(socket, { [Symbol.dispose]: () => void socket.destroy() });
}

/** No new connection is taken any more; those that are under way are still there. */
const untilClosed = (origin: string): Promise<void> =>
  until(() =>
    ask(`${origin}/readyz`).then(
      () => false,
      () => true,
    ),
  );

/** By the second signal, which is sent until the process has ended: one that follows at once counts as the first. */
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

describe("a gateway that is told to stop", () => {
  it("is not ready first, and serves on, each answer the last of its connection, until a second signal, which waits for no request", async () => {
    await using gateway = await startGatewayProcess({ ...stores.env, INLET_DRAIN_DELAY_SECONDS: "3600" });
    // A test that fails meanwhile would wait for the end of the delay: a second signal that comes at once counts as the first.
    using _ = { [Symbol.dispose]: () => gateway.kill("SIGKILL") };
    const { origin } = gateway;
    expect(await ask(`${origin}/readyz`)).toMatchObject({ status: 200, connection: "keep-alive" });
    using _delivery = await startDelivery(origin, '"cut"}');
    gateway.kill("SIGTERM");
    // One that has just greeted says so a moment before it closes connections.
    await until(async () => (await ask(`${origin}/readyz`)).connection === "close");
    expect(await ask(`${origin}/readyz`)).toMatchObject({
      status: 503,
      text: expect.stringContaining("is stopping"),
    });
    const answer = await ask(`${origin}${hookPath()}`, '{"id":"late"}');
    expect(answer).toMatchObject({ status: 200, connection: "close" });
    expect(await cutOff(gateway)).toBe(143);
  });

  it("is cut off by a second signal also where only a request under way holds it", async () => {
    await using gateway = await startGatewayProcess({ ...stores.env, INLET_DRAIN_DELAY_SECONDS: "0" });
    using _delivery = await startDelivery(gateway.origin, '"cut"}');
    gateway.kill("SIGTERM");
    await untilClosed(gateway.origin);
    expect(await cutOff(gateway)).toBe(143);
  });

  it("closes by itself once the delay is over and the requests under way are answered", async () => {
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
