/** The installed peers. Each runs in a separate process against one Redis. `install.sh` installs them. */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startProgram, startServer, type Target } from "../rounds.ts";

const CACHE = join(import.meta.dirname, "../../../node_modules/.cache/bench-peers");
const NGINX_MODULE = "/usr/lib/nginx/modules/ngx_http_lua_module.so";
const NGINX_REDIS = "/usr/share/lua/5.1/nginx/redis.lua";
/** Go uses one thread like Node, because more would not make it cheaper. It collects garbage less often than by default. */
const GO_SETTINGS = ["GOMAXPROCS=1", "GOGC=400"];
const LISTENS_WITHIN_MS = 60_000;

export interface Peer {
  readonly target: Target;
  /** Goal for the ratio of the peer's CPU time to Inlet's. */
  readonly goal?: number;
}

export interface PeersSettings {
  readonly stack: AsyncDisposableStack;
  readonly redisSocket: string;
  readonly dir: string;
}

/** Prints the names of peers that are not installed to standard output. */
export async function startPeers(settings: PeersSettings): Promise<readonly Peer[]> {
  const { stack, redisSocket } = settings;
  const peers: Peer[] = [];
  const receiver = join(CACHE, "receiver");
  if (existsSync(receiver)) {
    const go = ["/usr/bin/env", ...GO_SETTINGS, receiver];
    peers.push({ target: await startServer(stack, "Go", [...go, redisSocket]), goal: 1 });
    peers.push({ target: await startServer(stack, "Go, json.Valid", [...go, "-check", redisSocket]) });
  } else tellMissing("Go");
  if (existsSync(NGINX_MODULE) && existsSync(NGINX_REDIS)) {
    peers.push({ target: await startNginx(settings), goal: 1.3 });
  } else tellMissing("nginx + Lua");
  if (existsSync(join(CACHE, "node_modules/fastify"))) {
    const command = [process.execPath, join(import.meta.dirname, "fastify/receiver.cjs"), CACHE, redisSocket];
    peers.push({ target: await startServer(stack, "Fastify", command) });
  } else tellMissing("Fastify");
  if (existsSync(join(CACHE, "node_modules/node-red"))) {
    peers.push({ target: await startNodeRed(settings) });
  } else tellMissing("Node-RED");
  return peers;
}

function tellMissing(name: string): void {
  process.stdout.write(`${name} is not installed: test/bench/peers/install.sh\n`);
}

async function startNginx({ stack, redisSocket, dir }: PeersSettings): Promise<Target> {
  const port = await freePort();
  const values: Readonly<Record<string, string>> = { dir, port: String(port), redis: redisSocket };
  const template = await readFile(join(import.meta.dirname, "nginx/nginx.conf"), "utf8");
  const file = join(dir, "nginx.conf");
  await writeFile(
    file,
    template.replace(/@(\w+)@/g, (_, name: string) => values[name] ?? ""),
  );
  const { pid } = startProgram(stack, ["nginx", "-p", dir, "-c", file]);
  await untilListening("nginx", port);
  return { name: "nginx + Lua", pid, port, path: "/" };
}

async function startNodeRed({ stack, redisSocket, dir }: PeersSettings): Promise<Target> {
  const port = await freePort();
  const userDir = join(dir, "node-red");
  await mkdir(userDir);
  const program = createRequire(join(CACHE, "package.json")).resolve("node-red/red.js");
  const { pid } = startProgram(stack, [
    ...["/usr/bin/env", `PEER_PORT=${port}`, `PEER_REDIS=${redisSocket}`, "NODE_ENV=production"],
    ...[process.execPath, program, "--userDir", userDir],
    ...["--settings", join(import.meta.dirname, "node-red/settings.cjs")],
  ]);
  await untilListening("Node-RED", port);
  await untilStored(port);
  return { name: "Node-RED", pid, port, path: "/" };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Waits until the port accepts connections. @throws Error if it does not within a minute */
async function untilListening(name: string, port: number): Promise<void> {
  const endsAtMs = Date.now() + LISTENS_WITHIN_MS;
  while (Date.now() < endsAtMs) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await delay(50);
  }
  throw new Error(`${name} does not listen`);
}

/** Waits for the flows of Node-RED, which listens before they have started. */
async function untilStored(port: number): Promise<void> {
  const endsAtMs = Date.now() + LISTENS_WITHIN_MS;
  while (Date.now() < endsAtMs) {
    const headers = { "content-type": "application/json" };
    const { status } = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: "{}" });
    if (status === 200) return;
    await delay(50);
  }
  throw new Error("the flow of Node-RED does not respond");
}
