import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { runInlet } from "../support/command.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const FIGURES = {
  channels: 1,
  channelsNotActive: 0,
  subscriptions: 2,
  subscriptionsFailing: 0,
  lag: null,
  deadLetters: null,
  quarantined: 0,
};

/** A gateway with this many apps, whose rate limit is used up after a number of API requests. */
async function startGateway(apps: number, allowed = Number.POSITIVE_INFINITY) {
  const calls: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    if (url.startsWith("/readyz")) return void response.end(JSON.stringify({ status: "ready", checks: {} }));
    calls.push(url);
    if (calls.length > allowed) {
      response.writeHead(429, { "retry-after": "35" });
      const message = "This API key has sent too many requests. Try again later.";
      return void response.end(JSON.stringify({ code: "rate_limited", message }));
    }
    const { pathname, searchParams } = new URL(url, "http://gateway");
    if (pathname.endsWith("/sources")) {
      const at = Number(searchParams.get("cursor") ?? 0);
      response.setHeader("x-next-cursor", at + 1);
      return void response.end(JSON.stringify([{ appId: "app_0", channelUid: `u${at}`, state: "open" }]));
    }
    const [limit, offset] = [Number(searchParams.get("limit")), Number(searchParams.get("offset"))];
    response.setHeader("x-total-count", apps);
    const all = Array.from({ length: apps }, (_, n) => ({
      id: `app_${n}`,
      uid: `u${n}`,
      title: "",
      kind: "sse",
      ...FIGURES,
    }));
    response.end(JSON.stringify(all.slice(offset, offset + limit)));
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { calls, env: { INLET_URL: url, INLET_API_KEY: "a-key", NO_COLOR: "1" } };
}

it("inlet status reads the figures of 210 apps with two requests", async () => {
  const { env, calls } = await startGateway(210);
  const { code, stdout } = await runInlet(["status", "-o", "json"], { env });
  expect([code, calls.length]).toEqual([0, 2]);
  expect(JSON.parse(stdout)).toMatchObject({ status: "ready", error: null });
  expect(JSON.parse(stdout).apps).toHaveLength(210);
});

it("inlet status shows the apps that it has read when the rate limit is used up, and when to retry", async () => {
  const { env } = await startGateway(210, 1);
  const { code, stdout, stderr } = await runInlet(["status"], { env, columns: 200 });
  expect(code).toBe(4);
  expect(stdout).toContain("is ready.");
  expect(stdout.split("\n").filter((line) => line.startsWith("app_"))).toHaveLength(200);
  expect(stderr).toBe(
    "The list of apps is incomplete: This API key has sent too many requests. Retry in 35 s.\n",
  );
});

it("inlet sources shows the sources that it has read when the rate limit is used up", async () => {
  const { env } = await startGateway(3, 3);
  const sources = await runInlet(["sources", "--app", "app_0"], { env, columns: 200 });
  expect([sources.code, sources.stdout]).toEqual([
    4,
    expect.stringMatching(/^APP +CHANNEL .*\napp_0 +u0 .*\napp_0 +u1 /),
  ]);
  expect(sources.stderr).toContain("The list of sources is incomplete: ");
});

it("inlet status shows whether the gateway is ready, even if no app can be read", async () => {
  const { env } = await startGateway(3, 0);
  const { code, stdout, stderr } = await runInlet(["status"], { env, columns: 200 });
  expect([code, stdout]).toEqual([4, expect.stringMatching(/ is ready\.\n\n$/)]);
  expect(stderr).toContain(
    "The list of apps cannot be read: This API key has sent too many requests. Retry in 35 s.",
  );
  const json = await runInlet(["status", "-o", "json"], { env });
  expect(JSON.parse(json.stdout)).toMatchObject({
    apps: [],
    error: expect.stringContaining("Retry in 35 s."),
  });
});
