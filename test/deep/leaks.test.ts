import { beforeAll, describe, expect, it } from "vitest";
import {
  compareForeignIds,
  expectForeignIdsRejected,
  fillBoth,
  openLeakMatrix,
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

describe("every operation, tried with every id position and kind of request,", () => {
  it("responds with the same 401 or 403 to all callers without access, for all ids", async () => {
    const { findings, send } = await expectForeignIdsRejected(matrix, "all");
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    await send();
    expect(findings).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });

  it("responds to another organization's ids exactly as to random ones, and changes none of its data", async () => {
    const { accepted, findings } = await tryOwnIds(matrix, { plain: true });
    expect(findings).toEqual([]);
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    expect(await compareForeignIds(matrix, { accepted, ourIds, twists: "all" })).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });

  it("treats an Idempotency-Key of one organization as unknown in another", async () => {
    expect(await shareIdempotencyKeys(matrix)).toEqual([]);
  });
});
