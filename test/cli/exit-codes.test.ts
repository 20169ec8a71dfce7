import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
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
  const [short, long] = [await run(`${line} --json`, { columns: 80 }), await run(`${line} -o json`)];
  // Values such as the used memory of Redis can change between the two calls.
  const readFields = (text: string) =>
    text
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((one) => Object.keys(JSON.parse(one)));
  expect(readFields(short.stdout)).toEqual(readFields(long.stdout));
  expect(short.code).toBe(long.code);
});
