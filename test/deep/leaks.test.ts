import { beforeAll, describe, expect, it } from "vitest";
import {
  compareForeignIds,
  fillBoth,
  openLeakMatrix,
  refuseStrangers,
  shareIdempotencyKeys,
  tryOwnIds,
} from "../conformance/leaks.ts";
import { keptOf } from "../conformance/victim.ts";
import { opened } from "../support/opened.ts";

const matrix = opened(openLeakMatrix);
let ourIds: ReadonlySet<string>;
beforeAll(async () => {
  ourIds = await fillBoth(matrix);
});

describe("every operation, with every kind of request at every place of an id,", () => {
  it("answers 401 or 403 alike to all strangers, for all ids", async () => {
    const { findings, send } = await refuseStrangers(matrix, "all");
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    await send();
    expect(findings).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });

  it("answers another organization's ids exactly as random ones, and changes nothing of it", async () => {
    const { accepted, findings } = await tryOwnIds(matrix, { plain: true });
    expect(findings).toEqual([]);
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    expect(await compareForeignIds(matrix, { accepted, ourIds, twists: "all" })).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });

  it("that creates takes an Idempotency-Key of one organization for unknown in another", async () => {
    expect(await shareIdempotencyKeys(matrix)).toEqual([]);
  });
});
