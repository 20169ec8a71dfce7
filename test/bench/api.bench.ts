/**
 * Measures the management API on loopback with a separate PostgreSQL (with fsync) and Redis.
 *
 * The data are 10,000 roles with three permissions each, and two trees of tasks with 1,000 descendants. In one tree each task has
 * ten children; the other is a single chain. Prints p50 and p99 of create, get and list for one client and for sixteen. All clients
 * share one process, separate from the gateway. A create ends when the change is active on the gateway that responds.
 *
 * Reads are also printed as a ratio to the baseline `get role` (one row by its id) with the same number of clients.
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
const DESCENDANTS = 1_000;
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
    ids[Number(name.slice(5)) - 1] = parseId(role);
  };
  /** Creates a tree whose n-th task is a child of the task `parentOf(n)`, and returns its root. */
  const plant = async (parentOf: (n: number) => number): Promise<string> => {
    const tree: string[] = [];
    for (let n = 0; n <= DESCENDANTS; n++) {
      const parentId = n === 0 ? null : tree[parentOf(n)];
      const task = { title: `task ${n}`, parentId, input: { n }, params: { retries: 3 } };
      tree.push(parseId(await send(origin, "POST", "/tasks", task)));
    }
    return tree[0] ?? "";
  };
  const any = (): string => ids[Math.floor(Math.random() * ids.length)] ?? "";
  const page = (limit: number) => () =>
    send(origin, "POST", "/iam/roles/list", {
      pagination: { limit, offset: Math.floor(Math.random() * (ROLES - limit)) },
    });

  await measure("create role", 1, REQUESTS / 4, create);
  await measure("create role", 16, ROLES - ids.length, create);
  const broad = await plant((n) => Math.floor((n - 1) / 10));
  const deep = await plant((n) => n - 1);
  const { length } = await send(origin, "GET", `/tasks/${broad}`);
  console.log(`a tree of ${DESCENDANTS} descendants is ${Math.round(length / 1024)} KiB`);
  for (const clients of [1, 16]) {
    const baseline = await measure("get role", clients, REQUESTS, () =>
      send(origin, "GET", `/iam/roles/${any()}`),
    );
    await measure("list of 50", clients, REQUESTS, page(50), baseline);
    await measure("list of 200", clients, REQUESTS / 2, page(200), baseline);
    for (const [what, root] of Object.entries({ "broad tree": broad, "deep tree": deep }))
      await measure(what, clients, REQUESTS / 4, () => send(origin, "GET", `/tasks/${root}`), baseline);
  }
} finally {
  agent.destroy();
  await rm(dir, { recursive: true, force: true });
}

interface Latencies {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

async function measure(
  what: string,
  clients: number,
  requests: number,
  one: () => Promise<unknown>,
  baseline?: Latencies,
): Promise<Latencies> {
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
  const at = (share: number): number => latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0;
  const measured = { p50Ms: at(0.5), p99Ms: at(0.99) };
  const format = (name: keyof Latencies): string => {
    const ratio = baseline && ` (${(measured[name] / baseline[name]).toFixed(1)} × get role)`;
    return `${name.slice(0, 3)} ${measured[name].toFixed(2)} ms${ratio ?? ""}`;
  };
  const rate = Math.round(requests / seconds);
  console.log(
    `${what.padEnd(11)} ${String(clients).padStart(2)} clients  ${format("p50Ms")}  ${format("p99Ms")}  ${rate}/s`,
  );
  return measured;
}

function parseId(body: string): string {
  return (JSON.parse(body) as { readonly id: string }).id;
}

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
      else reject(new Error(`${method} ${path} responded with ${incoming.statusCode}: ${text}`));
    });
  });
  outgoing.on("error", reject);
  outgoing.end(body && JSON.stringify(body));
  return promise;
}
