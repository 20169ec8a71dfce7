import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

interface Locked {
  readonly dev?: boolean;
  readonly version?: string;
}

it("`npm run sbom` prints a CycloneDX document that lists every runtime package with its version and license", async () => {
  const { stdout } = await promisify(execFile)("npm", ["run", "--silent", "sbom"], {
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  });
  const { bomFormat, components } = JSON.parse(stdout);
  expect(bomFormat).toBe("CycloneDX");
  const named = new Map<string, object[]>(
    components.map(({ name, version, licenses }: never) => [`${name}@${version}`, licenses]),
  );
  const lock = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8"));
  const needed = Object.entries<Locked>(lock.packages)
    .filter(([path, { dev }]) => path !== "" && !dev)
    .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")}@${version}`);
  expect(needed.filter((one) => !named.get(one)?.length)).toEqual([]);
  expect([...named.keys()].filter((one) => !needed.includes(one))).toEqual([]);
  expect(needed.length).toBeGreaterThan(50);
});
