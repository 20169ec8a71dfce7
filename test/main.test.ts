import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, expect, it } from "vitest";
import { processIncarnation } from "../src/lib/servers/process-info.ts";
import { PROGRAM_ENV } from "./support/gateway-process.ts";
import { until } from "./support/until.ts";

const ROOT = join(import.meta.dirname, "..");
/** Preload script that prints the names of the loaded modules of Node.js itself when the process exits. */
const PRINT_INTERNALS = `data:text/javascript,${encodeURIComponent(
  'process.on("exit", () => console.error(process.moduleLoadList.join("\\n")))',
)}`;
const TYPESCRIPT_COMPILER = "NativeModule internal/deps/amaro/dist/index";
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

it("caches compiled modules in the folder of the installation, and then needs no TypeScript compiler", async () => {
  dir = mkdtempSync(join(tmpdir(), "inlet-main-"));
  cpSync(join(ROOT, "src"), join(dir, "src"), { recursive: true });
  cpSync(join(ROOT, "package.json"), join(dir, "package.json"));
  mkdirSync(join(dir, "node_modules"));
  for (const name of readdirSync(join(ROOT, "node_modules")))
    if (!name.startsWith(".")) symlinkSync(join(ROOT, "node_modules", name), join(dir, "node_modules", name));
  const { NODE_COMPILE_CACHE: _, ...env } = PROGRAM_ENV;
  const start = async (program: string): Promise<readonly string[]> => {
    const args = ["--import", PRINT_INTERNALS, join(dir ?? "", program), "--version"];
    const { stderr } = await promisify(execFile)(process.execPath, args, { env });
    return stderr.split("\n");
  };
  expect(await start("src/main.ts")).toContain(TYPESCRIPT_COMPILER);
  const [compiledBy] = readdirSync(join(dir, "node_modules/.cache/inlet"));
  expect(compiledBy).toContain(process.version);
  await start("src/inlet.js");
  expect(await start("src/inlet.js")).not.toContain(TYPESCRIPT_COMPILER);
});
