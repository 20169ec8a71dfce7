import { execFile } from "node:child_process";
import { copyFile, mkdtempDisposable, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { generate } from "openapi-typescript-codegen";
import { build } from "rolldown";
import { expect, it } from "vitest";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { API_KEY } from "../support/gateway-process.ts";

const run = promisify(execFile);
const MODULES = join(import.meta.dirname, "../../node_modules");

/** The strictest settings a user with a bundler may have, except for the unused code that the generator emits. */
const TSCONFIG = {
  compilerOptions: {
    target: "ES2024",
    lib: ["ES2024", "DOM"],
    module: "ESNext",
    moduleResolution: "Bundler",
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    noEmit: true,
  },
  files: ["walk.ts"],
};

it("a client generated from the OpenAPI document compiles, creates an organization with an app, and reads its events", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), "inlet-client-"));
  const dir = folder.path;
  await using stores = await createTestStores();
  await using gateway = await startTestGateway(stores.env);
  const response = await fetch(`${gateway.origin}/v1/openapi.json`);
  const spec = (await response.json()) as Record<string, unknown>;
  const output = join(dir, "client");
  await generate({ input: spec, output, httpClient: "fetch", clientName: "Api", useUnionTypes: true });
  await copyFile(join(import.meta.dirname, "client-walk.ts.txt"), join(dir, "walk.ts"));
  await writeFile(join(dir, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(dir, "tsconfig.json"), JSON.stringify(TSCONFIG));
  await symlink(MODULES, join(dir, "node_modules"));
  const compiled = await run(join(MODULES, ".bin/tsc"), ["-p", dir]).catch((error) => error);
  expect(compiled.stdout).toBe("");

  const file = join(dir, "built.js");
  await build({ input: join(dir, "walk.ts"), platform: "node", external: ["ioredis"], output: { file } });
  const { stdout } = await run(process.execPath, [file], {
    env: {
      PATH: process.env.PATH ?? "",
      BASE_URL: `${gateway.origin}/v1`,
      REDIS_URL: stores.env.REDIS_URL ?? "",
      API_KEY,
    },
  });
  const { addresses, refused, outcome, read, listed } = JSON.parse(stdout);
  expect(addresses).toEqual(["none", "https://example.com/events"]);
  expect(refused).toBe(403);
  expect(outcome).toMatchObject({
    received: 1,
    published: 1,
    events: [{ type: "tick", status: "published" }],
  });
  const [event] = outcome.events;
  const [[topic, [[entryId, fields]]]] = read;
  expect([topic, entryId]).toEqual([event.topic, event.entryId]);
  expect(JSON.parse(fields[fields.indexOf("data") + 1])).toEqual({ id: "1", n: 7 });
  expect(listed).toMatchObject([{ type: "tick", data: { id: "1", n: 7 } }]);
});
