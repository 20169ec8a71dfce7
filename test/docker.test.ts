import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { SETTING_LIST } from "../src/config/schema.ts";
import { readDockerfile } from "./support/dockerfile.ts";

const ROOT = join(import.meta.dirname, "..");

describe("the compose file", () => {
  it("sets only known settings, and requires a master key", async () => {
    const text = await readFile(join(ROOT, "config", "compose.yaml"), "utf8");
    const names = [...text.matchAll(/^ {6}((?:INLET_|OTEL_|DATABASE_|REDIS_)\w+):/gm)].map(
      (match) => match[1],
    );
    const known = SETTING_LIST.map(({ name }) => name);
    expect(names.length).toBeGreaterThan(4);
    for (const name of names) expect(known).toContain(name);
    // The image sets these two.
    const passed = [...names, "INLET_PORT", "INLET_HOST"];
    expect(known.filter((name) => !passed.includes(name))).toEqual([]);
    expect(text).toContain("INLET_MASTER_KEY: ${INLET_MASTER_KEY:?");
    // Keys must be unique, and the grace period must be longer than the drain.
    const { services } = parse(text, { uniqueKeys: true });
    expect(Number.parseInt(services.inlet.stop_grace_period, 10)).toBeGreaterThan(5 + 20);
    expect(text).toMatch(/"127\.0\.0\.1:\$\{REDIS_PORT:-6379\}:6379"/);
  });
});

// `test/deep/image.test.ts` builds the image.
describe("the Dockerfile", async () => {
  const stages = await readDockerfile(join(ROOT, "Dockerfile"));

  it("uses the Node version of package-lock.json, and runs as an unprivileged user", async () => {
    const lock = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8")) as {
      packages: Record<string, { version: string }>;
    };
    const [major, minor] = lock.packages["node_modules/node"]?.version.split(".") ?? [];
    for (const { base } of stages) expect(base).toBe(`node:${major}.${minor}-slim`);
    const instructions = stages
      .at(-1)
      ?.instructions.map(({ keyword, rest }) => `${keyword} ${rest}`)
      .join("\n");
    expect(instructions).toMatch(/^USER 65534:65534$/m);
    expect(instructions).toMatch(/^ENV .*\bNODE_ENV=production\b/m);
  });

  it("copies exactly the files that .dockerignore lets into the build context", async () => {
    const sent = (await readFile(join(ROOT, ".dockerignore"), "utf8"))
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    const copied = stages
      .flatMap(({ instructions }) => instructions)
      .filter(({ keyword, rest }) => keyword === "COPY" && !rest.startsWith("--from"))
      .flatMap(({ rest }) => rest.split(/\s+/).slice(0, -1));
    expect(sent.toSorted()).toEqual([...new Set(copied)].toSorted());
  });
});
