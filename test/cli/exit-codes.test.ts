import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { EXIT } from "../../src/cli/exit.ts";
import { NOBODY, openedCommands } from "./opened-commands.ts";

const { run } = openedCommands();

it.each([
  ["done", "apps", 0],
  ["a rejected request", "apps install bp_unknown", 1],
  ["an unknown option", "apps --unknown", 2],
  ["an unknown app", "channels --app unknown", 2],
  ["a gateway that cannot be reached", `apps --url ${NOBODY}`, 4],
])("exits with the documented code for %s: inlet %s", async (_, line, code) => {
  expect((await run(line)).code).toBe(code);
});

it("exits with 5 without permission", async () => {
  expect((await run("apps", { env: { INLET_API_KEY: "ik_wrong" } })).code).toBe(5);
});

it("exits with 130 when it is interrupted", async () => {
  const interrupted = AbortSignal.abort(new Error("interrupted"));
  expect((await run("apps", { signal: interrupted })).code).toBe(130);
});

it("the documentation lists each exit code", () => {
  const page = readFileSync(join(import.meta.dirname, "../../src/docs/command-line.md"), "utf8");
  const documented = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(documented).toEqual([...new Set(Object.values(EXIT))].sort((a, b) => a - b));
});

it.each([
  "apps",
  "channels",
  "problems",
  "presets get github",
  "status",
  "doctor --gateway-only",
])("inlet %s --json prints the same JSON lines as --output json", async (line) => {
  const readFields = async (command: string) => {
    const { stdout, code } = await run(command, { columns: 80 });
    const lines = stdout.split("\n").filter(Boolean);
    return { code, fields: lines.map((one) => Object.keys(JSON.parse(one))) };
  };
  // Between two calls, values such as the used memory of Redis can change, and a first problem can occur.
  await vi.waitFor(
    async () => expect(await readFields(`${line} --json`)).toEqual(await readFields(`${line} -o json`)),
    { timeout: 60_000 },
  );
});
