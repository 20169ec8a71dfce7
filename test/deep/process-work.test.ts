import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { freePort } from "../support/free-port.ts";
import { createTestStores } from "../support/gateway.ts";
import { PROGRAM_ENV, startGatewayProcess } from "../support/gateway-process.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { opened } from "../support/opened.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { CEILING_MS, until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const PROCESSES = 8;
/** The last process runs sources and handlers. */
const BACKGROUND = 8;
const NUMBERS = Array.from({ length: PROCESSES }, (_, i) => i + 1);

interface Health {
  readonly status: string;
  readonly checks: Readonly<Record<string, { readonly reason?: string; readonly facts?: unknown }>>;
}

const stores = opened(createTestStores);
const receiver = opened(startOtlpReceiver);
const handler = opened(startHandlerServer);
/** Statuses and reasons of `/readyz` before the gateway was ready. */
const starts: { readonly status: number; readonly reason: string | undefined }[] = [];
let metricsOrigin = "";

async function readHealth(origin: string): Promise<{ readonly status: number; readonly body: Health }> {
  const response = await fetch(`${origin}/readyz`, { headers: { connection: "close" } });
  return { status: response.status, body: (await response.json()) as Health };
}

async function watchStart(origin: string, isStarted: () => boolean): Promise<void> {
  const isDone = async (): Promise<boolean> => {
    const health = await readHealth(origin).catch(() => undefined);
    if (health !== undefined && health.status !== 200)
      starts.push({ status: health.status, reason: health.body.checks.running?.reason });
    return isStarted();
  };
  await until(isDone, { ceilingMs: PROCESSES * CEILING_MS });
}

const gateway = opened(async () => {
  const [port, metricsPort] = [await freePort(), await freePort()];
  metricsOrigin = `http://127.0.0.1:${metricsPort}`;
  let isStarted = false;
  const starting = startGatewayProcess({
    ...stores.env,
    INLET_PORT: String(port),
    INLET_PROCESSES: String(PROCESSES),
    INLET_BACKGROUND_PROCESSES: "1",
    INLET_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
    INLET_ALLOW_NETWORKS: "127.0.0.0/8",
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin,
  }).finally(() => {
    isStarted = true;
  });
  await watchStart(`http://127.0.0.1:${port}`, () => isStarted);
  return starting;
});

/** Returns the value of a metric in each process that exports it. */
async function readByProcess(name: string): Promise<ReadonlyMap<number, number>> {
  const text = await (await fetch(`${metricsOrigin}/metrics`)).text();
  const values = new Map<number, number>();
  for (const line of text.split("\n")) {
    const found = /^(\w+)\{.*process="(\d+)".*\} (.+)$/.exec(line);
    if (found?.[1] === name)
      values.set(Number(found[2]), (values.get(Number(found[2])) ?? 0) + Number(found[3]));
  }
  return values;
}

describe("a gateway with eight processes, of which one works in the background", () => {
  it("has responded to `/readyz` with 503 and a reason since it holds the port", () => {
    expect(starts.length).toBeGreaterThan(0);
    expect(new Set(starts.map(({ status }) => status))).toEqual(new Set([503]));
    expect(starts[0]?.reason).toMatch(/^is starting/);
  });

  it("exports the metrics of all processes at INLET_METRICS_LISTEN", async () => {
    const memory = await readByProcess("process_resident_memory_bytes");
    expect([...memory.keys()].sort()).toEqual(NUMBERS);
    console.info([...memory.values()].map((bytes) => `${Math.round(bytes / 1024 / 1024)} MiB`).join(", "));
  });

  it("shares forty connections to PostgreSQL", async () => {
    let isDone = false;
    const calls = Promise.all(Array.from({ length: 200 }, () => gateway.api("GET", "/apps"))).finally(() => {
      isDone = true;
    });
    let most = 0;
    const counting = until(async () => {
      const { rows } = await sql<{ count: number }>`
        SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`.execute(stores.db);
      most = Math.max(most, rows[0]?.count ?? 0);
      return isDone;
    });
    await Promise.all([calls, counting]);
    console.info(`${most} connections to PostgreSQL`);
    expect(most).toBeGreaterThan(PROCESSES);
    // The test itself has up to ten.
    expect(most).toBeLessThanOrEqual(40 + 10);
  });

  it("runs sources and handlers only in the background process, which serves no hooks", async () => {
    const { appPath, hookPath } = await givenChannel(gateway, { events: [{ type: "e", idPath: "$.id" }] });
    await gateway.api("POST", `${appPath}/events/subscribe`, {
      eventUid: "*",
      handler: { url: handler.urlOf("/taken") },
    });
    const ids = Array.from({ length: 2 * PROCESSES }, (_, i) => `delivery-${i}`);
    for (const id of ids) {
      const response = await fetch(`${gateway.origin}${hookPath}`, {
        method: "POST",
        headers: { "content-type": "application/json", connection: "close", "x-request-id": id },
        body: JSON.stringify({ id }),
      });
      expect(response.status).toBe(200);
    }
    await until(() => handler.taken("/taken").length === ids.length);
    expect([...(await readByProcess("inlet_handler_attempts_total")).keys()]).toEqual([BACKGROUND]);
    expect([...(await readByProcess("inlet_source_shards")).keys()]).toEqual([BACKGROUND]);
    const hooks = await readByProcess("inlet_hook_duration_seconds_count");
    const serving = [...hooks].filter(([, count]) => count > 0).map(([number]) => number);
    expect(serving.sort()).toEqual(NUMBERS.filter((number) => number !== BACKGROUND));
    // The spans of all processes arrive.
    const received = () => new Set(receiver.spans.map(({ attributes }) => attributes["inlet.request.id"]));
    await until(() => ids.every((id) => received().has(id)));
  });

  it("continues with the old processes if a replacement does not become ready", async () => {
    await sql`INSERT INTO schema_migrations (number, name, checksum, served_from)
      VALUES (9999, '9999_future.sql', 'x', 9999)`.execute(stores.db);
    const env = { ...PROGRAM_ENV, ...stores.env };
    const restarting = promisify(execFile)(process.execPath, [MAIN, "restart"], { env });
    await expect(restarting).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        "the new process 1 did not become ready (see the log), so the old processes continue",
      ),
    });
    await until(() => gateway.output().includes("9999_future.sql"));
    await sql`DELETE FROM schema_migrations WHERE number = 9999`.execute(stores.db);
    const { status, body } = await readHealth(gateway.origin);
    expect([status, body.checks.processes?.facts]).toEqual([
      200,
      { processes: PROCESSES, ready: PROCESSES, recentlyEnded: 0 },
    ]);
  });
});
