import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const CONSUMER = join(ROOT, "src/consumer");

// `test/deep/consumer-package.test.ts` packs it, installs it, and runs and compiles programs with it.

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const readManifest = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;

/** Returns the directories of a package and of all its dependencies. */
async function withDependencies(folder: string, found = new Set<string>()): Promise<ReadonlySet<string>> {
  found.add(folder);
  for (const name of Object.keys((await readManifest(folder)).dependencies ?? {})) {
    const dependency = join(ROOT, "node_modules", name);
    if (!found.has(dependency)) await withDependencies(dependency, found);
  }
  return found;
}

it("the consumer package installs at most 12 packages and 5 MB, in the same major versions as the gateway", async () => {
  const folders = await withDependencies(CONSUMER);
  expect(folders.size).toBeLessThanOrEqual(12);
  let bytes = 0;
  for (const folder of folders) {
    for (const file of await readdir(folder, { recursive: true, withFileTypes: true }))
      if (file.isFile()) bytes += (await stat(join(file.parentPath, file.name))).size;
  }
  expect(bytes).toBeLessThan(5_000_000);
  const [gateway, consumer] = [await readManifest(ROOT), await readManifest(CONSUMER)];
  expect(consumer.version).toBe(gateway.version);
  expect(Object.keys(consumer.dependencies ?? {})).toContain("ioredis");
  const major = (range = "") => /\d+/.exec(range)?.[0];
  for (const [name, range] of Object.entries(consumer.dependencies ?? {}))
    expect([name, major(range)]).toEqual([name, major(gateway.dependencies?.[name])]);
});

it("the consumer package compiles for the oldest supported version of Node.js", async () => {
  const tsc = [
    join(ROOT, "node_modules/typescript/bin/tsc"),
    "-p",
    join(ROOT, "config/package/tsconfig.consumer.json"),
  ];
  const out = await mkdtemp(join(tmpdir(), "inlet-consumer-"));
  const compiled = await promisify(execFile)(process.execPath, [...tsc, "--outDir", out]).then(
    () => "",
    ({ stdout }: { readonly stdout: string }) => stdout,
  );
  await rm(out, { recursive: true });
  expect(compiled).toBe("");
});

it("the example in the consumer package's README is the same as in the documentation guide", async () => {
  const readme = await readFile(join(CONSUMER, "README.md"), "utf8");
  const documented = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  expect(documented).toContain("createConsumer");
  expect(await readFile(join(ROOT, "src/docs/reading.md"), "utf8")).toContain(documented);
});
