import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Accepted,
  compareForeignIds,
  expectForeignIdsRejected,
  fillBoth,
  kindsOf,
  type LeakMatrix,
  liveConversation,
  openLeakMatrix,
  show,
  tryOwnIds,
  where,
  withEveryId,
} from "./leaks.ts";
import { pathNames } from "./operations.ts";
import { OPAQUE } from "./recipes.ts";
import { visible } from "./requests.ts";
import { idsIn, keptOf } from "./victim.ts";

// The tests run in order and build on each other. The tests of the operations use a quarter of them; `test/deep/leaks.test.ts` covers
// every operation and combination, and idempotency keys.
let matrix: LeakMatrix;
/** The victim's ids, which no response to another caller may contain. */
let ourIds: ReadonlySet<string>;
let accepted: Accepted;

beforeAll(async () => {
  matrix = await openLeakMatrix();
});
afterAll(async () => {
  const { all, operations, counts } = matrix;
  console.log(
    `leaks: ${operations.length} operations and ${all.length - operations.length} public ones, ` +
      `${counts.requests} requests, ${counts.comparisons} comparisons`,
  );
  await matrix[Symbol.asyncDispose]();
});

describe("the test data of two organizations", () => {
  it("contains entities of every kind, with the same names in both organizations", async () => {
    // Names are unique within an organization, so the same names in a second organization cause no conflict.
    ourIds = await fillBoth(matrix);
    expect(ourIds.size).toBeGreaterThan(kindsOf(matrix).length / 2);
    expect(matrix.all.filter(({ isPublic, places }) => isPublic && places.length > 0)).toEqual([]);
    const documented = new Set(matrix.all.flatMap(({ path }) => pathNames(path)));
    expect([...OPAQUE].filter((kind) => documented.has(kind))).toEqual([]);
  });
});

describe("an API operation", () => {
  it("accepts every id of the caller's own organization in a body or query", async () => {
    const own = await tryOwnIds(matrix, "few");
    expect(own.findings).toEqual([]);
    accepted = own.accepted;
  });

  it("rejects a caller without permission with the same 401 or 403 for existing and random ids, and changes no data", async () => {
    const { findings, send } = await expectForeignIdsRejected(matrix, "few");
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    await send();
    expect(findings).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });

  it("responds to an id of another organization exactly as to a random id, and changes no data of that organization", async () => {
    const before = await keptOf(matrix.spine, matrix.ours.organizationId);
    expect(await compareForeignIds(matrix, { accepted, ourIds, twists: "some" })).toEqual([]);
    expect(await keptOf(matrix.spine, matrix.ours.organizationId)).toEqual(before);
  });
});

describe("a conversation's live token", () => {
  it("gives access only to its own conversation, not to other conversations of the organization", async () => {
    const { operations, ours, as, counts } = matrix;
    const live = await liveConversation(matrix);
    const guest = as(live.token);
    const open = operations.filter(({ confined }) => confined === "conversationId");
    const findings: string[] = [];
    for (const operation of open) {
      const { own, ...others } = await withEveryId(matrix, operation);
      const seen = visible(await guest(own));
      if (seen.status !== 404) findings.push(`${where(operation)}: ${seen.status}`);
      for (const [ids, request] of Object.entries(others)) {
        const answer = await guest(request);
        counts.comparisons++;
        if (JSON.stringify(visible(answer)) !== JSON.stringify(seen))
          findings.push(`${where(operation)} with ${ids} ids: ${show(answer)}`);
      }
      const path = own.path
        .replace(await ours.idOf("conversationId"), live.id)
        .replace(await ours.idOf("conversationMessageId"), live.messageId);
      const answer = await guest({ ...own, path });
      if (answer.status !== 200) findings.push(`${where(operation)}: ${show(answer)}`);
    }
    expect(findings).toEqual([]);
    expect(open.length).toBeGreaterThan(0);
  });
});

describe("every list", () => {
  it("neither contains nor counts entities of another organization", async () => {
    const { operations, fixtures, theirs, counts } = matrix;
    const findings: string[] = [];
    for (const operation of operations.filter(({ isList }) => isList)) {
      const request = await fixtures.request(theirs, operation);
      const paged =
        operation.method === "GET"
          ? { ...request, path: `${request.path}?limit=200` }
          : { ...request, body: { pagination: { limit: 200 } } };
      const answer = await theirs.send(paged);
      const leaked = idsIn(answer.text).filter((id) => ourIds.has(id));
      const count = answer.status === 200 ? JSON.parse(answer.text).length : -1;
      counts.comparisons++;
      if (leaked.length > 0 || String(count) !== answer.headers.get("x-total-count"))
        findings.push(`${where(operation)}: ${leaked} ${show(answer)}`);
    }
    expect(findings).toEqual([]);
  });
});
