import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { makeSubscription, startTestRedis } from "./support.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
/** All that the library needs of others; whoever installs the package gets them with it. */
const NEEDS = ["ioredis", "cluster-key-slot", "@types/node", "undici-types"];

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "inlet-package-"));
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", dir], { cwd: ROOT });
  const installed = join(dir, "node_modules/inlet");
  await mkdir(installed, { recursive: true });
  await run("tar", [
    "-xf",
    join(dir, stdout.trim().split("\n").at(-1) ?? ""),
    "--strip-components=1",
    "-C",
    installed,
  ]);
  await mkdir(join(dir, "node_modules/@types"));
  for (const name of NEEDS) await symlink(join(ROOT, "node_modules", name), join(dir, "node_modules", name));
  await writeFile(join(dir, "package.json"), '{"type":"module"}');
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const FLOW = `
import { createConsumer } from "inlet/consumer";

const [redis = "", subscription = ""] = process.argv.slice(2);
const consumer = createConsumer<number>({ redis, subscription });
let sum = 0;
for await (const { event } of consumer.events()) {
  sum += event.data ?? 0;
  if (event.data === 9) break;
}
console.log(sum);
`;

it("lets another program read a subscription, with the package and a Redis address alone", async () => {
  await using server = await startTestRedis();
  const subscription = await makeSubscription(server);
  await subscription.send(subscription.topics[0] ?? "", 0, 10);
  await writeFile(join(dir, "flow.ts"), FLOW);
  const { stdout } = await run(process.execPath, ["flow.ts", server.url, subscription.id], { cwd: dir });
  expect(stdout.trim()).toBe("45");
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", "--types", "node"];
  await run(join(ROOT, "node_modules/.bin/tsc"), [...flags, "flow.ts"], { cwd: dir });
});

it("lets the program of the documentation read a subscription, and end when it is told to", async () => {
  await using server = await startTestRedis();
  const { id, topics, send } = await makeSubscription(server);
  await send(topics[0] ?? "", 0, 3);
  const page = await readFile(join(ROOT, "src/docs/reading.md"), "utf8");
  const flow = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  await writeFile(
    join(dir, "documented.ts"),
    flow.replace("redis://127.0.0.1:6379", server.url).replace("sub_…", id),
  );
  const child = spawn(process.execPath, ["documented.ts"], {
    cwd: dir,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  await until(() => lines.length === 3);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(lines[0]).toBe(`t undefined ${topics[0]} 1`);
});
