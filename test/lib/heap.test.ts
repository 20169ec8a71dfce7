import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { PROGRAM_ENV } from "../support/gateway-process.ts";

const MODULE = join(import.meta.dirname, "../../src/lib/heap.ts");
const run = promisify(execFile);

/** Make V8 decide at each garbage collection. Optimization is off, so that the result does not depend on compile times. */
const EAGER_FLAGS = ["--max-semi-space-size=1", "--min-semi-space-size=1", "--no-opt", "--no-maglev"];

/** Returns V8's trace of pretenuring decisions for a program that retains all its objects. */
async function traceDecisions(prelude: string): Promise<string> {
  const program = `
    ${prelude}
    const retained = [];
    const createObject = (n) => ({ list: [n] });
    for (let n = 0; n < 300_000; n++) retained.push(createObject(n));`;
  const args = ["--trace-pretenuring-statistics", ...EAGER_FLAGS, "--input-type=module", "--eval", program];
  const { stdout, stderr } = await run(process.execPath, args, { env: PROGRAM_ENV });
  return stdout + stderr;
}

it("endPretenuring stops V8 from allocating objects directly in the old generation", async () => {
  expect(await traceDecisions("")).toContain("=> tenure");
  const prelude = `import { endPretenuring } from ${JSON.stringify(MODULE)}; endPretenuring();`;
  expect(await traceDecisions(prelude)).not.toContain("=> tenure");
});

it("releaseStartupMemory returns the memory of the young generation, which then grows in large steps", async () => {
  const program = `
    import { releaseStartupMemory } from ${JSON.stringify(MODULE)};
    import { getHeapSpaceStatistics } from "node:v8";
    const young = () => getHeapSpaceStatistics().find((one) => one.space_name === "new_space");
    const youngBytes = () => young().physical_space_size;
    let retained = [];
    for (let n = 0; n < 1_000_000; n++) retained.push({ list: [n] });
    retained = [];
    const before = youngBytes();
    releaseStartupMemory();
    const after = youngBytes();
    const { space_size: small } = young();
    // V8 adds the second half of the young generation at the first collection.
    for (let n = 0; young().space_size <= 2 * small && n < 10_000_000; n++) retained[n % 20_000] = { list: [n] };
    console.log(JSON.stringify({ before, after, small, grown: young().space_size, gc: typeof gc }));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], {
    env: PROGRAM_ENV,
  });
  const { before, after, small, grown, gc } = JSON.parse(stdout);
  expect(after).toBeLessThan(before / 4);
  expect(grown).toBeGreaterThanOrEqual(8 * small);
  expect(gc).toBe("undefined");
});
