import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { processIncarnation } from "../src/lib/servers/process-info.ts";
import { PROGRAM_ENV } from "./support/gateway-process.ts";
import { until } from "./support/until.ts";

const ROOT = join(import.meta.dirname, "..");
let dir: string | undefined;
afterEach(() => dir && rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));

it("npm start drains the gateway and leaves no server running if all processes receive the same signal", async () => {
  dir = mkdtempSync(join(tmpdir(), "inlet-main-"));
  const npm = spawn("npm", ["start"], {
    cwd: ROOT,
    detached: true,
    env: { ...PROGRAM_ENV, HOME: dir, INLET_PORT: "0", INLET_DATA_DIR: join(dir, "data") },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const { pid } = npm;
  if (pid === undefined) throw new Error("npm did not start");
  let output = "";
  npm.stdout.on("data", (chunk: Buffer) => {
    output += chunk;
  });
  const exited = once(npm, "exit");
  await until(() => npm.exitCode !== null || output.includes('"gateway.ready"'));
  process.kill(-pid, "SIGINT");
  await exited;
  await until(() => output.includes('"stopped"'));
  const servers = [...output.matchAll(/"pid":(\d+).*"server ready"/g)].map((match) => Number(match[1]));
  expect(servers).toHaveLength(2);
  for (const server of servers) expect(await processIncarnation(server)).toBeUndefined();
});
