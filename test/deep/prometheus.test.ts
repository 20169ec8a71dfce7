import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const CONFIG = join(import.meta.dirname, "../../config");

/** Undefined where it is not on the PATH: `.ci/tools` brings it. */
const find = (program: string): string | undefined =>
  (process.env.PATH ?? "")
    .split(":")
    .map((dir) => join(dir, program))
    .find((path) => existsSync(path));
const promtool = find("promtool");

describe("the alert rules", () => {
  it("are accepted by promtool, and each fires on its series and clears", async (context) => {
    if (promtool === undefined) return context.skip("promtool is not on the PATH");
    const rules = await run(promtool, ["check", "rules", join(CONFIG, "prometheus/alerts.yaml")]);
    expect(rules.stdout).toMatch(/SUCCESS: \d+ rules found/);
    const tests = await run(promtool, ["test", "rules", join(CONFIG, "prometheus/alerts.test.yaml")]);
    expect(tests.stdout).toContain("SUCCESS");
  });
});
