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

describe("every API operation with an id of another organization in any position", () => {
  it("rejects a caller without permission with the same 401 or 403 for existing and random ids", async () => {
    const { findings, send } = await expectForeignIdsRejected(matrix, "all");
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    await send();
    expect(findings).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });

  it("responds to an id of another organization exactly as to a random id, and changes no data of that organization", async () => {
    const { accepted, findings } = await tryOwnIds(matrix, "all");
    expect(findings).toEqual([]);
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    expect(await compareForeignIds(matrix, { accepted, ourIds, twists: "all" })).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });

  it("treats an Idempotency-Key that another organization has used as a new one", async () => {
    expect(await shareIdempotencyKeys(matrix)).toEqual([]);
  });
});
