import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { PROGRAM_ENV } from "../support/gateway-process.ts";

const MODULE = join(import.meta.dirname, "../../src/lib/pretenuring.ts");
const run = promisify(execFile);

/** Flags that make V8 decide at each collection and only interpret, so that the speed of its compiler does not matter. */
const AT_ONCE = ["--max-semi-space-size=1", "--min-semi-space-size=1", "--no-opt", "--no-maglev"];

/** Returns V8's trace of pretenuring decisions for a program that retains all its objects. */
async function decisionsOf(before: string): Promise<string> {
  const program = `
    ${before}
    const kept = [];
    const make = (n) => ({ list: [n] });
    for (let n = 0; n < 300_000; n++) kept.push(make(n));`;
  const args = ["--trace-pretenuring-statistics", ...AT_ONCE, "--input-type=module", "--eval", program];
  const { stdout, stderr } = await run(process.execPath, args, { env: PROGRAM_ENV });
  return stdout + stderr;
}

it("V8 pretenures objects by default, and none after endPretenuring", async () => {
  expect(await decisionsOf("")).toContain("=> tenure");
  const ending = `import { endPretenuring } from ${JSON.stringify(MODULE)}; endPretenuring();`;
  expect(await decisionsOf(ending)).not.toContain("=> tenure");
});
