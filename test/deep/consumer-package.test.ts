import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeSubscription, startTestRedis } from "../consumer/support.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Needed by the compiler, but not at run time. */
const TYPES = ["@types/node", "undici-types"];
/** The optional peer dependency. */
const PEER = "cloudevents";

let dir: string;
let modules: string;
let installed: ReadonlySet<string>;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "inlet-package-"));
  modules = join(dir, "node_modules");
  const { stdout } = await run(process.execPath, ["config/package/pack-consumer.ts", dir], { cwd: ROOT });
  const unpacked = join(modules, "inlet-consumer");
  await mkdir(unpacked, { recursive: true });
  await run("tar", ["-xf", stdout.trim(), "--strip-components=1", "-C", unpacked]);
  installed = await copyDependencies(unpacked);
  await writeFile(join(dir, "package.json"), "{}");
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const readManifest = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;

/** Installs the package's dependencies from this repository instead of a registry. Returns the names of all installed packages. */
async function copyDependencies(folder: string, done = new Set<string>()): Promise<ReadonlySet<string>> {
  const { name, dependencies = {} } = await readManifest(folder);
  done.add(name);
  for (const each of Object.keys(dependencies)) {
    if (done.has(each)) continue;
    await cp(join(ROOT, "node_modules", each), join(modules, each), { recursive: true });
    await copyDependencies(join(modules, each), done);
  }
  return done;
}

async function link(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const target = join(modules, name);
    await mkdir(dirname(target), { recursive: true });
    await symlink(join(ROOT, "node_modules", name), target);
  }
}

const SUM = `
const [redis = "", subscription = ""] = process.argv.slice(2);
const sum = async () => {
  let sum = 0;
  for await (const { event } of createConsumer({ redis, subscription, ordered: true }).events()) {
    sum += event.data;
    if (event.data === 9) return sum;
  }
};
sum().then(console.log);
`;

it("the npm package for consumers installs at most 12 packages and 5 MB, in the same versions as the gateway", async () => {
  expect([...installed]).toContain("ioredis");
  expect(installed.size).toBeLessThanOrEqual(12);
  expect(installed).not.toContain(PEER);
  let bytes = 0;
  for (const file of await readdir(modules, { recursive: true, withFileTypes: true })) {
    if (file.isFile()) bytes += (await stat(join(file.parentPath, file.name))).size;
  }
  expect(bytes).toBeLessThan(5_000_000);
  const [gateway, consumer] = [await readManifest(ROOT), await readManifest(join(modules, "inlet-consumer"))];
  expect(consumer.version).toBe(gateway.version);
  const majors = (dependencies: Manifest["dependencies"], names: readonly string[]) =>
    names.map((name) => /\d+/.exec(dependencies?.[name] ?? "")?.[0]);
  const names = Object.keys(consumer.dependencies ?? {});
  expect(majors(consumer.dependencies, names)).toEqual(majors(gateway.dependencies, names));
});

it.each([
  ["ESM", "sum.mjs", `import { createConsumer } from "inlet-consumer";`],
  ["CommonJS", "sum.cjs", `const { createConsumer } = require("inlet-consumer");`],
])("the npm package for consumers lets a program in %s read a subscription directly from Redis", async (_, file, load) => {
  await using server = await startTestRedis();
  const subscription = await makeSubscription(server);
  await subscription.send(subscription.topics[0] ?? "", 0, 10);
  await writeFile(join(dir, file), load + SUM);
  const { stdout } = await run(process.execPath, [file, server.url, subscription.id], { cwd: dir });
  expect(stdout.trim()).toBe("45");
});

it("the npm package for consumers has types for ESM, CommonJS and bundlers, and converts events to the `CloudEvent` class of `cloudevents`", async () => {
  await link([...TYPES, PEER]);
  const program = `
import { type ConsumedEvent, createConsumer } from "inlet-consumer";
import { toCloudEvent } from "inlet-consumer/cloudevents";
import { CloudEvent, type CloudEventV1 } from "cloudevents";

const plain: ConsumedEvent<{ n: number }> = { specversion: "1.0", id: "1", source: "/s", type: "t", data: { n: 1 } };
const partial: Partial<CloudEventV1<{ n: number }>> = plain;
const made: CloudEvent<{ n: number }> = toCloudEvent(plain);
console.log(made instanceof CloudEvent, new CloudEvent(plain).data?.n === made.data?.n, partial.id);
// @ts-expect-error an option that does not exist
export const refused = () => createConsumer({ redis: "", subscription: "", concurency: 1 });
// @ts-expect-error events are read-only
export const changed = () => { plain.id = "2"; };
`;
  const files = ["typed.mts", "typed.cts"];
  for (const file of files) await writeFile(join(dir, file), program);
  const tsc = join(ROOT, "node_modules/.bin/tsc");
  const flags = ["--strict", "--target", "es2024", "--types", "node"];
  await run(tsc, [...flags, "--module", "nodenext", "--outDir", join(dir, "out"), ...files], { cwd: dir });
  await run(tsc, [...flags, "--noEmit", "--module", "preserve", "typed.mts"], { cwd: dir });
  for (const file of ["out/typed.mjs", "out/typed.cjs"]) {
    const { stdout } = await run(process.execPath, [file], { cwd: dir });
    expect(stdout.trim()).toBe("true true 1");
  }
});

it("the example program of the npm package for consumers reads a subscription, and stops at SIGTERM", async () => {
  await using server = await startTestRedis();
  const { id, topics, send } = await makeSubscription(server);
  await send(topics[0] ?? "", 0, 3);
  const readme = await readFile(join(modules, "inlet-consumer/README.md"), "utf8");
  const documented = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const page = await readFile(join(ROOT, "src/docs/reading.md"), "utf8");
  expect(page).toContain(documented);
  const program = documented.replace("redis://127.0.0.1:6379", server.url).replace("sub_…", id);
  await writeFile(join(dir, "readme.mts"), program);
  const child = spawn(process.execPath, ["readme.mts"], { cwd: dir, stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  await until(() => lines.length === 3);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(lines[0]).toBe(`t undefined ${topics[0]} 1`);
});
