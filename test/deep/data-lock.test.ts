import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { raceForLock } from "../lib/servers/lock-starters.ts";

it("only one of 20 concurrent processes gets the lock on a data directory", async () => {
  const dir = mkdtempSync(join(tmpdir(), "inlet-lock-"));
  try {
    const { winners, refusals, holderPid } = await raceForLock(join(dir, "data"), 20);
    expect(winners).toHaveLength(1);
    expect(refusals).toHaveLength(19);
    expect(holderPid).toBe(winners[0]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
