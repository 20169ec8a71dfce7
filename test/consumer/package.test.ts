import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
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

it("is read by a program of somebody else's, which has the package and a Redis address", async () => {
  await using server = await startTestRedis();
  const subscription = await makeSubscription(server);
  await subscription.send(subscription.topics[0] ?? "", 0, 10);
  await writeFile(join(dir, "flow.ts"), FLOW);
  const { stdout } = await run(process.execPath, ["flow.ts", server.url, subscription.id], { cwd: dir });
  expect(stdout.trim()).toBe("45");
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", "--types", "node"];
  await run(join(ROOT, "node_modules/.bin/tsc"), [...flags, "flow.ts"], { cwd: dir });
});
