import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { createTestStores } from "../support/gateway.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { readProcessIds } from "../support/supervised.ts";
import { until } from "../support/until.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const BODY_BYTES = 512 * KIB;
/** The memory limit of the organization. It has room for eight bodies, or for nine because 64 KiB of each are free. */
const LIMIT_BYTES = 4 * MIB;
const UPLOADS = 24;
const RATE = 50;
/** Status of a delivery that was read whole, and has no signature. Its memory is the same, but parsing it would take seconds. */
const READ = 401;

interface Upload {
  /** Sends the last byte. */
  readonly finish: () => void;
  /** Resolves with the status, or 0 if the connection was lost. */
  readonly ended: Promise<number>;
  /** `undefined` before the end. */
  readonly status: () => number | undefined;
}

/** Sends all but the last byte of a body, on its own connection. */
function startUpload({ origin }: GatewayProcess, path: string, bytes: number): Upload {
  const body = Buffer.from(JSON.stringify({ id: "x", text: "a".repeat(bytes - 20) }));
  const headers = { "content-type": "application/json", "content-length": body.length, connection: "close" };
  const sending = request(`${origin}${path}`, { method: "POST", headers, agent: false });
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  let status: number | undefined;
  const end = (result: number): void => {
    status ??= result;
    resolve(status);
  };
  sending.on("response", (response) => {
    response.resume();
    end(response.statusCode ?? 0);
  });
  sending.on("error", () => end(0));
  sending.write(body.subarray(0, -1));
  return { ended, status: () => status, finish: () => void sending.end(body.subarray(-1)) };
}

async function upload(gateway: GatewayProcess, path: string, bytes: number): Promise<number> {
  const { finish, ended } = startUpload(gateway, path, bytes);
  finish();
  return ended;
}

const setBodyBytes = ({ api }: GatewayProcess, { organizationId }: GivenChannel, bodyBytes: number | null) =>
  api("PUT", `/organizations/${organizationId}/limits`, { bodyBytes });

const givenLargeChannel = (gateway: GatewayProcess) =>
  givenChannel(gateway, {
    config: {
      limits: { maxBodyBytes: 25 * MIB },
      verification: { scheme: "hmac", name: "x-signature" },
    },
    events: [{ type: "made" }],
  });

/** Waits until each process rejects a body above the new limit. A change is active in all processes within two seconds. */
const untilActive = (gateway: GatewayProcess, path: string, processes: number): Promise<void> =>
  until(async () => {
    const uploads = Array.from({ length: 2 * processes }, () => upload(gateway, path, 2 * LIMIT_BYTES));
    return (await Promise.all(uploads)).every((status) => status === 503);
  });

/** Starts uploads until the budget is full, and waits until the excess is rejected. Returns the others. */
async function fillBudget(gateway: GatewayProcess, path: string): Promise<readonly Upload[]> {
  const uploads = Array.from({ length: UPLOADS }, () => startUpload(gateway, path, BODY_BYTES));
  const rejected = () => uploads.filter(({ status }) => status() !== undefined);
  await until(() => rejected().length >= UPLOADS - LIMIT_BYTES / BODY_BYTES - 1);
  for (const { status } of rejected()) expect(status()).toBe(503);
  return uploads.filter(({ status }) => status() === undefined);
}

describe.each([1, 4])("a gateway with %i processes", (processes) => {
  const stores = opened(createTestStores);
  const gateway = opened(() => startGatewayProcess({ ...stores.env, INLET_PROCESSES: String(processes) }));

  it("accepts the same bytes of bodies at once", async () => {
    const channel = await givenLargeChannel(gateway);
    await setBodyBytes(gateway, channel, LIMIT_BYTES);
    await untilActive(gateway, channel.hookPath, processes);
    // A process whose event loop is blocked for 150 ms keeps its unused slices, so that fewer bodies fit. Then the test tries again.
    await until(async () => {
      const accepted = await fillBudget(gateway, channel.hookPath);
      // Small bodies are free.
      expect(await upload(gateway, channel.hookPath, KIB)).toBe(READ);
      for (const { finish } of accepted) finish();
      const statuses = await Promise.all(accepted.map(({ ended }) => ended));
      const completed = statuses.filter((status) => status === READ).length;
      console.info(`${processes} processes: ${completed} bodies of ${BODY_BYTES} bytes in ${LIMIT_BYTES}`);
      expect(completed).toBeLessThanOrEqual(9);
      return completed >= 8;
    });
  });

  it("accepts the largest body at any process while others hold theirs", async () => {
    const channel = await givenLargeChannel(gateway);
    await setBodyBytes(gateway, channel, 110 * MIB);
    await until(async () => (await upload(gateway, channel.hookPath, 24 * MIB)) === READ);
    // A process with a blocked event loop keeps the memory of an earlier body for a moment. Then the test tries again.
    await until(async () => {
      const held = Array.from({ length: 3 }, () => startUpload(gateway, channel.hookPath, 25 * MIB));
      const statuses: number[] = [];
      for (let n = 0; n < processes; n++) statuses.push(await upload(gateway, channel.hookPath, 25 * MIB));
      for (const { finish, ended } of held) {
        finish();
        statuses.push(await ended);
      }
      return statuses.every((status) => status === READ);
    });
  });

  it("accepts the same rate", async () => {
    const { hookPath } = await givenChannel(gateway, {
      config: { limits: { requestsPerSecond: RATE } },
      events: [{ type: "made" }],
    });
    const began = performance.now();
    let [sent, accepted] = [0, 0];
    const senders = Array.from({ length: 16 }, async () => {
      while (performance.now() - began < 5_000) {
        sent++;
        if ((await upload(gateway, hookPath, 100)) === 200) accepted++;
      }
    });
    await Promise.all(senders);
    const seconds = (performance.now() - began) / 1_000;
    console.info(`${processes} processes: ${accepted} deliveries in ${seconds.toFixed(1)} s`);
    expect(accepted).toBeLessThanOrEqual(RATE * (seconds + 1) + processes);
    // On a slow machine, the senders may be slower than the rate, or pause for longer than the burst covers.
    expect(accepted).toBeGreaterThanOrEqual(Math.min(RATE * 5, sent) / 2);
  });

  if (processes > 1)
    it("has the memory of a killed process again at once", async () => {
      const channel = await givenLargeChannel(gateway);
      await setBodyBytes(gateway, channel, LIMIT_BYTES);
      await untilActive(gateway, channel.hookPath, processes);
      let held: readonly Upload[] = [];
      // No body fits while processes with a blocked event loop keep their unused slices.
      await until(async () => {
        held = await fillBudget(gateway, channel.hookPath);
        return held.length > 0;
      });
      const lost = () => held.filter(({ status }) => status() === 0).length;
      const countEnds = () => gateway.output().split('"process.ended"').length - 1;
      for (const [index, victim] of (await readProcessIds(gateway.pid)).entries()) {
        process.kill(victim, "SIGKILL");
        await until(() => countEnds() > index);
        if (lost() > 0) break;
      }
      await until(() => lost() > 0);
      // All of them are in flight at once. Blocked event loops can delay the return of unused slices.
      await until(async () => {
        const again = Array.from({ length: lost() }, () =>
          startUpload(gateway, channel.hookPath, BODY_BYTES),
        );
        for (const { finish } of again) finish();
        const statuses = await Promise.all(again.map(({ ended }) => ended));
        return statuses.every((status) => status === READ);
      });
      for (const { finish } of held) finish();
      const statuses = await Promise.all(held.map(({ ended }) => ended));
      expect(statuses.filter((status) => status === READ)).toHaveLength(held.length - lost());
    });
});
