import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A Redis on a socket in a temporary directory, which is removed with it. */
export interface BenchRedis extends AsyncDisposable {
  readonly dir: string;
  readonly socket: string;
  readonly process: ChildProcess;
}

/** Starts a Redis that syncs each write before its reply. Returns before the server listens. */
export async function startBenchRedis(): Promise<BenchRedis> {
  const dir = await mkdtemp(join(tmpdir(), "inlet-bench-"));
  const socket = join(dir, "redis.sock");
  const args = ["--port", "0", "--unixsocket", socket, "--dir", dir, "--save", ""];
  args.push("--appendonly", "yes", "--appendfsync", "always");
  // The embedded Redis uses the same values, and the docs recommend them.
  args.push("--hash-max-listpack-entries", "128", "--stream-node-max-bytes", "8192");
  // A rewrite of the append-only file would occupy a core for seconds, in some rounds but not in others.
  args.push("--auto-aof-rewrite-percentage", "0");
  const server = spawn("redis-server", args, { stdio: "ignore" });
  return {
    dir,
    socket,
    process: server,
    async [Symbol.asyncDispose]() {
      server.kill();
      await once(server, "exit");
      await rm(dir, { recursive: true, force: true });
    },
  };
}
