import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { PROGRAM_ENV } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");

let dir: string;
let command: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "inlet-gateway-package-"));
  const { stdout } = await run(process.execPath, ["config/package/pack-gateway.ts", dir], { cwd: ROOT });
  await writeFile(join(dir, "package.json"), '{"private":true}\n');
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  const { stderr } = await run("npm", ["install", ...flags, stdout.trim()], { cwd: dir });
  expect(stderr).not.toContain("EBADENGINE");
  command = join(dir, "node_modules/.bin/inlet-gateway");
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const env = { ...PROGRAM_ENV, INLET_DATA_DIR: "data" };
const inlet = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  run(process.execPath, [command, ...args], { cwd: dir, env: { ...env, ...more } });

it("the npm package of the gateway starts two processes in an empty folder, receives and reads an event, and serves the console and the docs", async () => {
  const port = await freePort();
  const gateway = spawn(process.execPath, [command], {
    cwd: dir,
    env: { ...env, INLET_PORT: String(port), INLET_PROCESSES: "2" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [gateway.stdout, gateway.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk;
    });
  }
  const exited = once(gateway, "exit");
  const origin = `http://127.0.0.1:${port}`;
  try {
    await until(
      () => gateway.exitCode !== null || (output.includes("/hooks/") && /ik_[0-9a-z]+/.test(output)),
    );
    expect(gateway.exitCode, output).toBe(null);
    const key = /ik_[0-9a-z]+/.exec(output)?.[0] ?? "";
    const hook = /\/hooks\/ch_\w+/.exec(output)?.[0];
    const sent = await fetch(`${origin}${hook}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"hello":"world"}',
    });
    expect(sent.status, output).toBe(200);
    const { stdout: events } = await inlet(["events", "-o", "json"], {
      INLET_URL: origin,
      INLET_API_KEY: key,
    });
    expect(events).toContain('{"hello":"world"}');
    for (const path of ["/console/", "/docs", "/docs/reference", "/docs/images/path.svg", "/llms.txt"])
      expect((await fetch(`${origin}${path}`)).status).toBe(200);
  } finally {
    gateway.kill("SIGTERM");
  }
  expect(await exited, output).toEqual([0, null]);
});

it("prints commands with the name of the npm package when npx runs it", async () => {
  const { stdout } = await run("npx", ["inlet-gateway", "logout", "--help"], {
    cwd: dir,
    env: { ...env, HOME: dir },
  });
  expect(stdout).toContain("  $ npx inlet-gateway logout ");
  expect((await inlet(["logout", "--help"])).stdout).toContain("  $ inlet logout ");
});

it("the npm package of the gateway explains an older Node.js instead of failing with a syntax error", async () => {
  const launcher = await readFile(command, "utf8");
  const older = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.11.0" } });`;
  await writeFile(join(dir, "older.mjs"), `${older}\n${launcher.replace(/^#!.*\n/, "")}`);
  await expect(run(process.execPath, ["older.mjs"], { cwd: dir })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Inlet needs Node.js 24.12 or later, but this is Node.js 22.11.0."),
  });
});
