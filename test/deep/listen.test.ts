import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { channelOf, installApp } from "../support/channels.ts";
import { startCuttableLink } from "../support/cuttable-link.ts";
import { freePort } from "../support/free-port.ts";
import { createTestStores } from "../support/gateway.ts";
import { API_KEY, PROGRAM_ENV, startGatewayProcess } from "../support/gateway-process.ts";
import { listenLocally } from "../support/local-server.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const EVENTS = 10_000;
const dir = mkdtempSync(join(tmpdir(), "inlet-laptop-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** A developer's local server, which records received events in order. */
async function startLocalServer() {
  const taken: number[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    taken.push(JSON.parse(body).n);
    response.end();
  });
  const local = await listenLocally(server);
  return {
    ...local,
    taken,
    url: `${local.origin}/x`,
  };
}

it("`inlet listen` delivers every event in order despite sleep, a lost connection and a gateway restart, repeating only events in flight", async () => {
  await using stores = await createTestStores();
  const port = await freePort();
  const startGateway = () => startGatewayProcess({ ...stores.env, INLET_PORT: String(port) });
  let gateway = await startGateway();
  await using link = await startCuttableLink(port);
  await using local = await startLocalServer();
  const app = await installApp(gateway, [{ uid: "c", kind: "webhook", config: {}, events: [{ type: "t" }] }]);
  const path = new URL(channelOf(app).url ?? "").pathname;
  let next = 0;

  /** Repeats each delivery until the gateway responds 200. */
  async function post(count: number): Promise<void> {
    for (const end = next + count; next < end; next++) {
      const body = JSON.stringify({ n: next });
      await until(async () => {
        const answer = await fetch(`${gateway.origin}${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body,
        }).catch(() => undefined);
        await answer?.arrayBuffer();
        return answer?.status === 200;
      });
    }
  }

  const env = {
    ...PROGRAM_ENV,
    INLET_URL: `http://127.0.0.1:${link.port}`,
    INLET_API_KEY: API_KEY,
    INLET_APP: app.id,
    XDG_CONFIG_HOME: dir,
  };
  const startListener = (...more: string[]): ChildProcess =>
    spawn(process.execPath, [MAIN, "listen", "--to", local.url, ...more], { env, stdio: "ignore" });
  const stop = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  };
  /** Fails only when no event arrives for the maximum time that a test may wait. */
  async function waitForEvents(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) {
      const before = local.taken.length;
      await until(() => local.taken.length > before, { everyMs: 50 });
    }
  }
  const waitForCount = (count: number) => waitForEvents(() => local.taken.length >= count);

  // Starts from the beginning, because some of the first events may be published before the listener runs.
  let listener = startListener("--since", "1h");
  await post(1_000);
  await waitForCount(500);

  listener.kill("SIGSTOP");
  await post(3_000);
  listener.kill("SIGCONT");
  await waitForCount(1_500);

  link.cut();
  await post(1_000);
  link.restore();
  await waitForCount(2_000);

  await stop(listener, "SIGKILL");
  await post(1_000);
  const before = local.taken.length;
  listener = startListener();
  // The running listener survives the restart below. A listener that starts without a gateway would exit with an error.
  await waitForCount(before + 500);

  await gateway[Symbol.asyncDispose]();
  gateway = await startGateway();
  await post(EVENTS - next);
  await waitForEvents(() => new Set(local.taken).size === EVENTS);
  await stop(listener, "SIGTERM");
  await gateway[Symbol.asyncDispose]();

  const firsts = [...new Set(local.taken)];
  expect(firsts).toEqual(Array.from({ length: EVENTS }, (_, n) => n));
  // At most one repeat for each interruption in the middle of a delivery: the cut link and the kill.
  expect(local.taken.length - EVENTS).toBeLessThanOrEqual(2);
});
