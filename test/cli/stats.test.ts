import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { runInlet } from "../support/command.ts";
import { opened } from "../support/opened.ts";

const TOTALS = {
  received: 1_200,
  published: 1_100,
  duplicate: 20,
  quarantined: 30,
  ignored: 50,
  rejected: 0,
  recovered: 0,
  handlerSucceeded: 1_000,
  handlerFailed: 4,
  latencyP50Ms: 2.1,
  latencyP99Ms: null,
  trend: Array.from({ length: 30 }, (_, part) => part),
};

const gateway = opened(async () => {
  const asked: URLSearchParams[] = [];
  const server = createServer(({ url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://gateway");
    if (pathname === "/v1/apps")
      return void response.end(JSON.stringify([{ id: "app_1", uid: "shop", spaceId: "s" }]));
    asked.push(searchParams);
    const channels = [
      { appId: "app_1", channel: "orders", ...TOTALS },
      { appId: "app_1", channel: "a-channel-with-a-very-long-name-that-needs-cutting", ...TOTALS },
    ];
    response.setHeader("x-total-count", channels.length);
    response.end(JSON.stringify(channels));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    asked,
    env: { INLET_URL: url, INLET_API_KEY: "a-key", NO_COLOR: "1" },
    [Symbol.asyncDispose]: async () => void server.close(),
  };
});

it("inlet stats shows the counts of each channel with a trend, and fits 60 columns", async () => {
  const args = ["stats", "--app", "shop", "--since", "2h", "-o", "table"];
  const { code, stdout } = await runInlet(args, { env: gateway.env });
  expect(code).toBe(0);
  const [title, row] = stdout.split("\n");
  expect(title).toMatch(/CHANNEL +RECEIVED +TREND +REJECTED +PUBLISHED .* FAILED +P50 MS +P99 MS/);
  expect(row).toMatch(/^orders +1200 +[▁-█]{15} +0 +1100 +20 +30 +50 +0 +1000 +4 +2.1$/);
  expect(gateway.asked.at(-1)?.get("appId")).toBe("app_1");
  const narrow = await runInlet(args, { env: gateway.env, columns: 60 });
  const lines = narrow.stdout.split("\n");
  expect(lines.filter((line) => /p50 ms/i.test(line))).toHaveLength(2);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
});

it("inlet stats prints one JSON object per channel for a program", async () => {
  const { stdout } = await runInlet(["stats", "orders", "-o", "json"], { env: gateway.env });
  expect(
    stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toHaveLength(2);
  expect(gateway.asked.at(-1)?.get("channel")).toBe("orders");
});
