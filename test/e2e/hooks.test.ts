import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installApp } from "../support/channels.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { readMetrics } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { type MovedClock, moveWallClock } from "../support/moved-clock.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

let channels: ReadonlyMap<string, string>;

const events = [{ type: "e", idPath: "$.id" }];
const signed = { scheme: "hmac", name: "x-signature", prefix: "sha256=" };

const stores = opened(createTestStores);
/** Also moves the gateway's clock, because the gateway starts later in this process. */
let clock: MovedClock;
beforeAll(() => {
  clock = moveWallClock();
});
afterAll(() => clock[Symbol.dispose]());
const gateway = givenGateway({}, { stores });
beforeAll(async () => {
  const app = await installApp(gateway, [
    { uid: "plain", kind: "webhook", config: { limits: { maxBodyBytes: 100_000 } }, events },
    { uid: "signed", kind: "webhook", config: { verification: signed }, events },
    { uid: "shadow", kind: "webhook", config: { verification: signed, shadow: true }, events },
    { uid: "strict", kind: "webhook", config: { onInvalid: "reject", itemsPath: "$.items" }, events },
  ]);
  channels = new Map(app.channels.map(({ id, uid }) => [uid, id]));
  const secrets = [{ value: "old", notAfter: "2020-01-01T00:00:00Z" }, { value: "new" }];
  await gateway.api("PUT", `/apps/${app.id}/channels/${channels.get("signed")}`, { config: { secrets } });
});

const refusals = (): number => gateway.lines.filter(({ msg }) => msg === "delivery rejected").length;

const pathOf = (uid: string): string => `/hooks/${channels.get(uid)}`;

async function send(
  uid: string,
  body: string | Buffer,
  others: Record<string, string> = {},
  method = "POST",
) {
  const headers = { "content-type": "application/json", ...others };
  const response = await fetch(`${gateway.origin}${pathOf(uid)}`, {
    method,
    headers,
    body: Buffer.from(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: an answer of the gateway
  return { status: response.status, headers: response.headers, body: (await response.json()) as any };
}

/** Sends bytes unchanged and reads until the gateway closes the connection. */
async function sendRaw(request: string): Promise<string> {
  const socket = connect(Number(new URL(gateway.origin).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write(request);
  return text(socket);
}

const rawPost = (target: string, body: string, headers = "Connection: close\r\n"): string =>
  `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`;

describe("a gateway that receives webhooks", () => {
  it("accepts only POST at a webhook address, and names POST in the Allow header of its 405 response", async () => {
    const { status, headers, body } = await send("plain", "{}", {}, "PUT");
    expect([status, headers.get("allow"), body.code]).toEqual([405, "POST", "method_not_allowed"]);
    expect(headers.get("x-request-id")).toMatch(/^req_/);
  });

  it("responds 503 with Retry-After if the database does not answer in time, and accepts the delivery later", async () => {
    await using hurried = await startTestGateway(stores.env, { timeoutMs: 1_000 });
    const post = () =>
      fetch(hurried.origin + pathOf("plain"), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"id":"looked up late"}',
      });
    await stores.db.transaction().execute(async (trx) => {
      await sql`LOCK TABLE channels`.execute(trx);
      const { status, headers } = await post();
      expect([status, headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    });
    await until(async () => (await post()).status === 200);
  });

  it("forbids caching and content sniffing in the responses of its API, health checks and metrics", async () => {
    for (const path of ["/v1/apps", "/v1/openapi.json", "/healthz", "/readyz", "/metrics", "/nowhere"]) {
      const { headers } = await fetch(gateway.origin + path);
      expect([path, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
        path,
        "no-store",
        "nosniff",
      ]);
    }
  });

  it("forbids caching and content sniffing in its responses to accepted, rejected and unknown deliveries", async () => {
    const statuses = [];
    for (const [name, method] of [
      ["plain", "POST"],
      ["plain", "PUT"],
      ["nowhere", "POST"],
    ] as const) {
      const { status, headers } = await send(name, "{}", {}, method);
      statuses.push(status);
      expect([headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
        "no-store",
        "nosniff",
      ]);
    }
    expect(statuses).toEqual([200, 405, 404]);
  });

  it("responds 400 to a request with two Host headers, at webhook addresses and all other paths", async () => {
    const twice = (target: string) => sendRaw(rawPost(target, "{}").replace("Host: x", "Host: x\r\nhost: y"));
    for (const target of [`/hooks/${channels.get("plain")}`, "/v1/apps", "/healthz"]) {
      const answer = await twice(target);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('"path":"Host"');
    }
  });

  it.each([
    "",
    "x",
    "__proto__",
    "%zz",
    `ch_${"0".repeat(36)}`,
    "a/b",
  ])("responds 404 at the unknown webhook address %j", async (id) => {
    const response = await fetch(`${gateway.origin}/hooks/${id}`, { method: "POST", body: "{}" });
    expect([response.status, await response.json()]).toEqual([
      404,
      { code: "not_found", message: expect.any(String) },
    ]);
  });

  it.each<[string, string | Buffer, Record<string, string>, number]>([
    ["multipart that is no form", "x", { "content-type": "multipart/mixed; boundary=x" }, 415],
    ["an unknown encoding", "{}", { "content-encoding": "compress" }, 415],
    ["an encoding named like an inherited property", "{}", { "content-encoding": "constructor" }, 415],
    ["an encoding twice", gzipSync(gzipSync("{}")), { "content-encoding": "gzip, gzip" }, 415],
    ["a body that is not in its encoding", "{}", { "content-encoding": "gzip" }, 400],
    ["a body that is too large", "x".repeat(100_001), {}, 413],
    [
      "a body that is too large once it is decoded",
      gzipSync("x".repeat(100_001)),
      { "content-encoding": "gzip" },
      413,
    ],
  ])("rejects a delivery with %s", async (_, body, headers, status) => {
    expect((await send("plain", body, headers)).status).toBe(status);
  });

  it("accepts a compressed body, and reads a body without a content type as JSON", async () => {
    const zipped = await send("plain", gzipSync('{"id":"z"}'), { "content-encoding": "gzip" });
    expect(zipped.body.events).toMatchObject([{ id: "z", status: "published" }]);
    expect(await sendRaw(rawPost(pathOf("plain"), '{"id":"u"}'))).toContain('"id":"u"');
  });

  it("responds to pipelined requests in order, including requests with an absolute URL in the request line", async () => {
    const target = pathOf("plain");
    const answers = await sendRaw(
      rawPost(target, '{"id":"p1"}', "") +
        rawPost(target, "[1]", "") +
        rawPost(`http://x${target}`, '{"id":"p2"}'),
    );
    expect(
      [...answers.matchAll(/HTTP\/1.1 (\d+)|"id":"(p\d|qr)/g)].map(([, status, id]) => status ?? id),
    ).toEqual([...["200", "p1"], ...["200", "qr"], ...["200", "p2"]]);
  });

  it("publishes no event from a body that is cut off", async () => {
    const socket = connect(Number(new URL(gateway.origin).port), "127.0.0.1");
    await once(socket, "connect");
    const refused = refusals();
    socket.write(rawPost(pathOf("plain"), '{"id":"half"}').slice(0, -1));
    socket.end();
    await once(socket.resume(), "close");
    await until(() => refusals() > refused);
    expect((await send("plain", '{"id":"half"}')).body).toMatchObject({ published: 1 });
  });

  it("responds 401 to a wrong, missing or expired signature, even if the body is invalid too", async () => {
    const sign = (secret: string, body: string) => ({
      "x-signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    });
    expect((await send("signed", '{"id":1}', sign("new", '{"id":1}'))).status).toBe(200);
    for (const headers of [sign("old", "{"), sign("wrong", "{"), {}]) {
      const { status, body } = await send("signed", "{", headers);
      expect([status, body]).toEqual([
        401,
        { code: "unauthenticated", message: "The request could not be verified." },
      ]);
    }
    await until(() => JSON.stringify(gateway.lines).includes("the header x-signature is missing"));
  });

  it("accepts deliveries that fail verification in shadow mode, and counts them by reason in a metric", async () => {
    expect((await send("shadow", '{"id":"s"}')).body).toMatchObject({ published: 1 });
    expect((await send("shadow", '{"id":"t"}', { "x-signature": "sha256=zz" })).body).toMatchObject({
      published: 1,
    });
    const metrics = await readMetrics(gateway.origin);
    expect(metrics).toContain('inlet_shadowed_total{kind="webhook",reason="no_secret"} 2');
  });

  it("responds 400 and names each invalid item if the channel rejects invalid deliveries, and then publishes no item", async () => {
    const refused = await send("strict", '{"items":[{"id":"s1"},{},{"id":"s3"}]}');
    expect([refused.status, refused.body.details]).toEqual([
      400,
      [{ path: "items[1]: idPath", message: expect.stringContaining("id_missing") }],
    ]);
    const broken = await send("strict", "{");
    expect([broken.status, broken.body.details[0].path]).toEqual([400, "body"]);
    expect((await send("strict", '{"items":[{"id":"s1"}]}')).body).toMatchObject({ published: 1 });
  });

  it("returns a request id in every response, which is the sender's id if the request contains one", async () => {
    const accepted = await send("plain", '{"id":"named"}');
    expect([accepted.status, accepted.headers.get("x-request-id")]).toEqual([
      200,
      expect.stringMatching(/^req_/),
    ]);
    const own = { "x-request-id": "mine-1" };
    const again = await send("plain", '{"id":"named"}', own);
    expect([again.status, again.headers.get("x-request-id")]).toEqual([200, "mine-1"]);
    const refused = await send("signed", "{}", own);
    expect([refused.status, refused.headers.get("x-request-id")]).toEqual([401, "mine-1"]);
    expect(gateway.lines).toContainEqual(
      expect.objectContaining({ event: "hook.refused", requestId: "mine-1" }),
    );
  });

  it("counts each accepted or rejected delivery exactly once", async () => {
    const count = async (): Promise<number> => {
      const metrics = await readMetrics(gateway.origin);
      const lines = [...metrics.matchAll(/^inlet_deliveries_total\{.*\} (\d+)$/gm)];
      return lines.reduce((sum, [, value]) => sum + Number(value), 0);
    };
    const before = await count();
    await send("plain", '{"id":"c"}');
    await send("plain", "x", { "content-type": "multipart/mixed" });
    await send("signed", "{}");
    await send("strict", "{");
    expect((await count()) - before).toBe(4);
  });

  it("measures response times by outcome, and counts deliveries by app and channel", async () => {
    await send("plain", '{"id":"timed"}');
    await send("signed", "{}");
    const metrics = await readMetrics(gateway.origin);
    for (const outcome of ["ok", "unverified", "refused"])
      expect(metrics).toMatch(
        new RegExp(`^inlet_hook_duration_seconds_count\\{outcome="${outcome}"\\} [1-9]`, "m"),
      );
    const counted = (metric: string, labels: string): number => {
      const line = metrics.match(new RegExp(`^${metric}\\{app="app_\\w+",${labels}\\} (\\d+)$`, "m"));
      return Number(line?.[1]);
    };
    const deliveries = (uid: string, result: string) =>
      counted("inlet_channel_deliveries_total", `channel="${uid}",result="${result}"`);
    expect(deliveries("plain", "accepted")).toBeGreaterThan(0);
    expect(deliveries("signed", "unverified")).toBeGreaterThan(0);
    expect(deliveries("strict", "refused")).toBeGreaterThan(0);
    expect(counted("inlet_channel_events_total", 'channel="plain",outcome="published"')).toBeGreaterThan(0);
  });

  it("exports exactly the metrics that its documentation lists", async () => {
    const page = await readFile(join(import.meta.dirname, "../../src/docs/metrics.md"), "utf8");
    const rows = page.split("\n").filter((line) => line.startsWith("| `inlet_"));
    const listed = rows.flatMap((row) =>
      [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name),
    );
    const metrics = await readMetrics(gateway.origin);
    const live = [...metrics.matchAll(/^# TYPE (inlet_\w+) /gm)].map(([, name]) => name);
    // The stores of this gateway are external, so it has no disk to measure.
    const expected = listed.filter((name) => name !== "inlet_data_dir_free_ratio");
    expect(live.toSorted()).toEqual(expected.toSorted());
  });

  it("exports a metric of how many seconds the machine's clock is ahead of Redis's clock", async () => {
    const aheadSeconds = async () =>
      Number(/^inlet_clock_ahead_seconds (\S+)$/m.exec(await readMetrics(gateway.origin))?.[1]);
    expect(await aheadSeconds()).toBeCloseTo(0, -1);
    clock.ahead(7_200_000);
    try {
      const ahead = await aheadSeconds();
      expect(ahead).toBeGreaterThan(7_100);
      expect(ahead).toBeLessThan(7_300);
    } finally {
      clock.ahead(-7_200_000);
    }
  });

  it("logs one warning about an X-Forwarded-For header from an untrusted proxy, and names the setting to change", async () => {
    for (const id of ["a", "b"])
      await send("plain", JSON.stringify({ id }), { "x-forwarded-for": "192.0.2.1" });
    expect(gateway.lines.filter(({ event }) => event === "proxy.untrusted")).toMatchObject([
      { peer: "127.0.0.1", msg: expect.stringContaining("INLET_TRUST_PROXY") },
    ]);
  });

  it("writes neither webhook addresses nor signatures to its log", () => {
    const log = JSON.stringify(gateway.lines);
    for (const id of channels.values()) expect(log).not.toContain(id);
    expect(log).not.toMatch(/sha256=/);
  });
});
