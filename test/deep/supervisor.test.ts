import { execFile } from "node:child_process";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { processIncarnation } from "../../src/lib/servers/process-info.ts";
import { givenChannel } from "../support/channels.ts";
import { listEntries } from "../support/entries.ts";
import { freePort } from "../support/free-port.ts";
import { createTestStores } from "../support/gateway.ts";
import { type GatewayProcess, PROGRAM_ENV, startGatewayProcess } from "../support/gateway-process.ts";
import { opened } from "../support/opened.ts";
import { readProcessIds } from "../support/supervised.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const CONNECTIONS = 64;
/** Pause of a sender between two deliveries, so that the senders leave CPU time to the gateway. */
const PAUSE_MS = 200;
const TIMEOUT_MS = 60_000;

const stores = opened(createTestStores);
const port = opened(async () => ({ number: await freePort(), async [Symbol.asyncDispose]() {} }));

const start = (): Promise<GatewayProcess> =>
  startGatewayProcess({ ...stores.env, INLET_PORT: String(port.number), INLET_PROCESSES: "2" });

interface Senders extends AsyncDisposable {
  /** Ids of deliveries with a response 2xx. */
  readonly accepted: Set<string>;
  /** Statuses and errors of all other deliveries. */
  readonly failed: string[];
}

/** Sends deliveries on 64 keep-alive connections, each with one delivery at a time. Never repeats a delivery. */
function startSenders(path: string): Senders {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const stopping = new AbortController();
  const accepted = new Set<string>();
  const failed: string[] = [];
  let sent = 0;
  const send = (id: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const options = { agent, host: "127.0.0.1", port: port.number, path, method: "POST", headers };
      const outgoing = request({ ...options, timeout: TIMEOUT_MS }, (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
        response.on("error", reject);
      });
      outgoing.on("timeout", () => outgoing.destroy(new Error("timeout")));
      outgoing.on("error", reject);
      outgoing.end(JSON.stringify({ id }));
    });
  const senders = Array.from({ length: CONNECTIONS }, async () => {
    while (!stopping.signal.aborted) {
      const id = `d${sent++}`;
      await send(id).then(
        (status) => (status >= 200 && status < 300 ? accepted.add(id) : failed.push(`status ${status}`)),
        (error: NodeJS.ErrnoException) => failed.push(error.code ?? error.message),
      );
      await delay(PAUSE_MS);
    }
  });
  return {
    accepted,
    failed,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(senders);
      agent.destroy();
    },
  };
}

/** Returns the ids of the accepted deliveries that are not in the topic. */
async function findLost(accepted: ReadonlySet<string>, topic: string): Promise<readonly string[]> {
  const entries = await listEntries(stores.client, topic);
  const stored = new Set(entries.map((entry) => /"id\\?":\\?"(d\d+)/.exec(JSON.stringify(entry))?.[1]));
  return [...accepted].filter((id) => !stored.has(id));
}

const givenEvents = async (gateway: GatewayProcess) => {
  const { hookPath, topicOf } = await givenChannel(gateway, { events: [{ type: "made" }] });
  return { hookPath, topic: topicOf("made") };
};

describe("two processes under the load of 64 keep-alive connections", () => {
  it("restart without a refused connection or a failed delivery", async () => {
    await using gateway = await start();
    const { hookPath, topic } = await givenEvents(gateway);
    const senders = startSenders(hookPath);
    await until(() => senders.accepted.size > 500);
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, "restart"], {
      env: { ...PROGRAM_ENV, ...stores.env },
    });
    expect(stdout).toMatch(/process 1 replaced.*\nprocess 2 replaced/);
    const before = senders.accepted.size;
    await until(() => senders.accepted.size > before + 500);
    await senders[Symbol.asyncDispose]();
    console.info(`restart: ${senders.accepted.size} accepted, ${senders.failed.length} failed`);
    expect(senders.failed).toEqual([]);
    expect(await findLost(senders.accepted, topic)).toEqual([]);
  });

  it("lose only the connections of a killed process, and nothing that was acknowledged", async () => {
    await using gateway = await start();
    const { hookPath, topic } = await givenEvents(gateway);
    const senders = startSenders(hookPath);
    await until(() => senders.accepted.size > 500);
    const [victim] = await readProcessIds(gateway.pid);
    if (victim === undefined) throw new Error("there is no process");
    process.kill(victim, "SIGKILL");
    const before = senders.accepted.size;
    await until(() => senders.accepted.size > before + 500);
    await until(() => gateway.output().split("gateway.ready").length > 3);
    await senders[Symbol.asyncDispose]();
    console.info(`kill: ${senders.accepted.size} accepted, ${senders.failed.length} failed`);
    expect(senders.failed.filter((error) => error.startsWith("status"))).toEqual([]);
    expect(senders.failed.length).toBeLessThanOrEqual(CONNECTIONS / 2 + 1);
    expect(await findLost(senders.accepted, topic)).toEqual([]);
  });

  it("leave the port to a second supervisor at once when the first one is killed, and lose nothing that was acknowledged", async () => {
    const first = await start();
    const { hookPath, topic } = await givenEvents(first);
    const senders = startSenders(hookPath);
    await until(() => senders.accepted.size > 500);
    const old = await readProcessIds(first.pid);
    first.kill("SIGKILL");
    await first.exited;
    await using second = await start();
    expect(old).toHaveLength(2);
    for (const pid of old) expect(await processIncarnation(pid)).toBeUndefined();
    const before = senders.accepted.size;
    await until(() => senders.accepted.size > before + 500);
    await senders[Symbol.asyncDispose]();
    console.info(`supervisor: ${senders.accepted.size} accepted, ${senders.failed.length} failed`);
    expect(await findLost(senders.accepted, topic)).toEqual([]);
    await second[Symbol.asyncDispose]();
  });
});
