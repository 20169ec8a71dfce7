/**
 * The management API on loopback, on servers of its own (PostgreSQL with fsync), with 10,000 roles of three permissions each:
 * p50 and p99 of create, get and list, for one client and for sixteen at once. The clients run in the same process as each other,
 * not in the gateway's. A create ends when the change is in force on the gateway that answers.
 *
 * usage: node test/bench/api.bench.ts
 */
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { API_KEY, startGatewayProcess } from "../support/gateway-process.ts";

const ROLES = 10_000;
const REQUESTS = 2_000;
const PERMISSIONS = ["apps.read", "blueprints.read", "iam.read"];

const dir = await mkdtemp(join(tmpdir(), "inlet-bench-"));
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
try {
  await using gateway = await startGatewayProcess({ INLET_DATA_DIR: dir, INLET_LOG_LEVEL: "warn" });
  const { origin } = gateway;
  const ids: string[] = [];
  const create = async (): Promise<void> => {
    const name = `role ${ids.push("")}`;
    const role = await send(origin, "POST", "/iam/roles", { name, permissions: PERMISSIONS });
    ids[Number(name.slice(5)) - 1] = (JSON.parse(role) as { readonly id: string }).id;
  };
  const any = (): string => ids[Math.floor(Math.random() * ids.length)] ?? "";
  const page = (limit: number) => () =>
    send(origin, "POST", "/iam/roles/list", {
      pagination: { limit, offset: Math.floor(Math.random() * (ROLES - limit)) },
    });

  await measure("create", 1, REQUESTS / 4, create);
  await measure("create", 16, ROLES - ids.length, create);
  for (const clients of [1, 16]) {
    await measure("get", clients, REQUESTS, () => send(origin, "GET", `/iam/roles/${any()}`));
    await measure("list of 50", clients, REQUESTS, page(50));
    await measure("list of 200", clients, REQUESTS / 2, page(200));
  }
} finally {
  agent.destroy();
  await rm(dir, { recursive: true, force: true });
}

async function measure(
  what: string,
  clients: number,
  requests: number,
  one: () => Promise<unknown>,
): Promise<void> {
  const latenciesMs: number[] = [];
  let left = requests;
  const startedAtMs = performance.now();
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const sentAtMs = performance.now();
      await one();
      latenciesMs.push(performance.now() - sentAtMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - startedAtMs) / 1_000;
  latenciesMs.sort((a, b) => a - b);
  const at = (share: number): string => (latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0).toFixed(2);
  const rate = Math.round(requests / seconds);
  console.log(
    `${what.padEnd(11)} ${String(clients).padStart(2)} clients  p50 ${at(0.5)} ms  p99 ${at(0.99)} ms  ${rate}/s`,
  );
}

/** The body of a success. */
function send(origin: string, method: string, path: string, body?: object): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" };
  const outgoing = request(`${origin}/v1${path}`, { method, agent, headers }, (incoming) => {
    incoming.setEncoding("utf8");
    let text = "";
    incoming.on("data", (chunk: string) => {
      text += chunk;
    });
    incoming.on("error", reject);
    incoming.on("end", () => {
      if (incoming.statusCode === 200) resolve(text);
      else reject(new Error(`${method} ${path} answered ${incoming.statusCode}: ${text}`));
    });
  });
  outgoing.on("error", reject);
  outgoing.end(body && JSON.stringify(body));
  return promise;
}
