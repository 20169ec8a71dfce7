import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { givenChannel } from "../support/channels.ts";
import { createTestStores } from "../support/gateway.ts";
import { PROGRAM_ENV, readMetrics, startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const stores = opened(createTestStores);
const receiver = opened(startOtlpReceiver);
const gateway = opened(() =>
  startGatewayProcess({
    ...stores.env,
    INLET_PROCESSES: "2",
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin,
  }),
);

/** Runs a command on the machine of the gateway. */
const run = (...args: readonly string[]) =>
  spawnSync(process.execPath, [MAIN, ...args], {
    encoding: "utf8",
    env: { ...PROGRAM_ENV, ...stores.env, INLET_PORT: "0", INLET_PROCESSES: "2" },
  });

const readLog = (): readonly Readonly<Record<string, unknown>>[] =>
  gateway
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));

async function readProcesses(): Promise<unknown> {
  const response = await fetch(`${gateway.origin}/readyz`, { headers: { connection: "close" } });
  const { checks } = (await response.json()) as { checks: { processes: { facts: unknown } } };
  return checks.processes.facts;
}

describe("a gateway with two processes", () => {
  it("serves as one gateway, restarts without closing the port, and replaces a process that is killed", async () => {
    const { hookPath } = await givenChannel(gateway, { events: [{ type: "made" }] });
    const deliver = async () => {
      const response = await fetch(`${gateway.origin}${hookPath}`, {
        method: "POST",
        headers: { "content-type": "application/json", connection: "close" },
        body: JSON.stringify({ made: true }),
      });
      expect(response.status).toBe(200);
    };
    const countDeliveries = async (): Promise<readonly number[]> => {
      const text = await readMetrics(gateway.origin);
      return [1, 2].map((number) => {
        const series = `inlet_hook_duration_seconds_count{outcome="ok",process="${number}"} `;
        return Number(text.split(series)[1]?.split("\n")[0] ?? 0);
      });
    };
    expect(await readProcesses()).toEqual({ processes: 2, ready: 2, recentlyEnded: 0 });
    for (let n = 0; n < 10; n++) await deliver();
    expect(await countDeliveries()).toEqual([5, 5]);
    const openMetrics = await readMetrics(gateway.origin, "application/openmetrics-text");
    for (const number of [1, 2])
      expect(openMetrics).toMatch(
        new RegExp(
          `^inlet_hook_duration_seconds_bucket.*process="${number}".* # \\{trace_id="[0-9a-f]{32}"\\}`,
          "m",
        ),
      );
    expect(statSync(join(stores.env.INLET_DATA_DIR ?? "", "run/supervisor.sock")).mode & 0o777).toBe(0o600);

    expect(run("start")).toMatchObject({
      status: 3,
      stderr: expect.stringContaining("is in use by process"),
    });

    const restarted = run("restart");
    expect(restarted).toMatchObject({ status: 0, stderr: "" });
    expect(restarted.stdout).toMatch(/^process 1 replaced \(pid \d+\)\nprocess 2 replaced \(pid \d+\)\n$/);
    await deliver();
    expect((await countDeliveries()).reduce((a, b) => a + b)).toBe(11);

    const [, victim] = /process 2 replaced \(pid (\d+)\)/.exec(restarted.stdout) ?? [];
    process.kill(Number(victim), "SIGKILL");
    await until(() => readLog().some(({ event }) => event === "process.ended"));
    await deliver();
    await until(
      async () => JSON.stringify(await readProcesses()) === '{"processes":2,"ready":2,"recentlyEnded":1}',
    );
    const { stdout } = run("doctor", "--gateway-only", "--url", `${gateway.origin}/v1`);
    expect(stdout).toContain('"state":"ok","message":"2 of 2 processes are ready."');
    expect(stdout).toContain("Processes ended unexpectedly in the last 10 minutes: 1");

    gateway.kill("SIGHUP");
    expect(await gateway.exited).toBe(0);
    expect(new Set(readLog().map((line) => line.process))).toEqual(new Set([0, 1, 2]));
    expect(run("restart")).toMatchObject({
      status: 4,
      stderr: expect.stringContaining("no gateway with INLET_PROCESSES"),
    });
  });
});
