import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { PROGRAM_ENV } from "../support/gateway-process.ts";

const MODULE = join(import.meta.dirname, "../../src/lib/pretenuring.ts");
const run = promisify(execFile);

/** Decides at each collection, and only code that is interpreted counts what it makes: how fast V8 compiles is no matter. */
const AT_ONCE = ["--max-semi-space-size=1", "--min-semi-space-size=1", "--no-opt", "--no-maglev"];

/** What V8 says of its decisions while a program keeps all that it makes. */
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

it("V8 pretenures nothing once that has ended, and does before", async () => {
  expect(await decisionsOf("")).toContain("=> tenure");
  const ending = `import { endPretenuring } from ${JSON.stringify(MODULE)}; endPretenuring();`;
  expect(await decisionsOf(ending)).not.toContain("=> tenure");
});
