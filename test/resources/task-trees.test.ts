import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createId } from "../../src/lib/ids.ts";
import type { Task } from "../../src/resources/tasks/schema.ts";
import { answerTree } from "../../src/resources/tasks/tree.ts";
import { createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
let organizationId: string;
beforeAll(async () => {
  api = await createTestApi();
  organizationId = (await api.call("GET", "/organizations")).body[0].id;
});
afterAll(() => api[Symbol.asyncDispose]());

const task = async (body: object = {}) => (await api.call("POST", "/tasks", { title: "t", ...body })).body;
const move = (id: string, parentId: string | null) => api.call("PUT", `/tasks/${id}`, { parentId });

/** Tasks as the API would have made them, the n-th with what `more` gives it; answers their ids. */
async function insert(count: number, more: (n: number, ids: readonly string[]) => object): Promise<string[]> {
  const ids = Array.from({ length: count }, () => createId("task", Date.now()));
  const rows = ids.map((id, n) => ({
    ...{ id, organizationId, parentId: null, appId: null, authorId: null, executorId: null, stateId: null },
    ...{ targetId: null, title: String(n), description: null, kind: "default", status: "created" as const },
    ...{ input: null, output: null, params: "{}", errors: "[]", contentBytes: 4 },
    ...{ startedAt: null, endedAt: null, createdAt: new Date(n), updatedAt: new Date(n) },
    ...more(n, ids),
  }));
  for (let from = 0; from < count; from += 2_000)
    await api.database.db
      .insertInto("tasks")
      .values(rows.slice(from, from + 2_000))
      .execute();
  return ids;
}

describe("a tree of tasks", () => {
  it("is answered whole, be it ten thousand levels deep or a thousand wide", async () => {
    const [star = ""] = await insert(1_001, (n, ids) => ({ parentId: n === 0 ? null : ids[0] }));
    const { children } = (await api.call("GET", `/tasks/${star}`)).body;
    const titles = children.map(({ title }: { title: string }) => title);
    expect(titles).toEqual(Array.from({ length: 1_000 }, (_, n) => String(n + 1)));

    const [chain = ""] = await insert(10_000, (n, ids) => ({ parentId: ids[n - 1] ?? null }));
    // Deeper than the check of all answers goes.
    const answer = await answerTree(api.database.db, { organizationId }, chain);
    let at = (await answer.json()) as Task;
    let depth = 1;
    for (let [child] = at.children; child !== undefined; [child] = at.children) {
      at = child;
      depth++;
    }
    expect([depth, at.title]).toEqual([10_000, "9999"]);
  });

  it("is answered by one query", async () => {
    const { id } = await task();
    for (let n = 0; n < 3; n++) await task({ parentId: id });
    const { db } = api.database;
    await api.call("GET", `/tasks/${id}`);
    const queries: string[] = [];
    const executor = db.getExecutor();
    const original = executor.executeQuery.bind(executor);
    executor.executeQuery = (compiled, ...rest) => {
      queries.push(compiled.sql);
      return original(compiled, ...rest);
    };
    expect((await api.call("GET", `/tasks/${id}`)).body.children).toHaveLength(3);
    executor.executeQuery = original;
    expect(queries.filter((sql) => sql.includes("tasks"))).toHaveLength(1);
  });

  it("has no circle, however the move is asked for", async () => {
    const root = await task();
    const child = await task({ parentId: root.id });
    const grandchild = await task({ parentId: child.id });
    for (const [id, parentId] of [
      [root.id, root.id],
      [root.id, child.id],
      [root.id, grandchild.id],
      [child.id, grandchild.id],
    ]) {
      expect(await move(id, parentId)).toMatchObject({
        status: 400,
        body: { details: [{ path: "parentId" }] },
      });
    }
    expect((await move(grandchild.id, root.id)).status).toBe(200);
    expect((await move(child.id, grandchild.id)).status).toBe(200);
  });

  it("has no circle when moves that would close one together are made at once", async () => {
    for (let round = 0; round < 8; round++) {
      const [a, b, c] = [await task(), await task(), await task()];
      const moves = await Promise.all([move(a.id, b.id), move(b.id, c.id), move(c.id, a.id)]);
      expect(moves.map(({ status }) => status).sort()).toEqual([200, 200, 400]);
    }
    const { rows } = await findCircles();
    expect(rows).toEqual([]);
  });

  it("moves and is built at the same time, and nobody waits for good", async () => {
    const [a, b] = [await task(), await task()];
    const all = Array.from({ length: 12 }, (_, n) =>
      n % 3 === 0 ? move(a.id, n % 2 ? null : b.id) : task({ parentId: n % 3 === 1 ? a.id : b.id }),
    );
    await Promise.all(all);
    const trees = [a, b].map(async ({ id }) => (await api.call("GET", `/tasks/${id}`)).status);
    expect(await Promise.all(trees)).toEqual([200, 200]);
  });

  it("takes ten thousand tasks, and no more, be they made or moved there", async () => {
    const ids = await insert(9_999, (n, all) => ({
      parentId: n === 0 ? null : all[Math.floor((n - 1) / 10)],
    }));
    const [root = "", leaf = ""] = [ids[0], ids.at(-1)];
    const pair = await task();
    await task({ parentId: pair.id });
    expect((await move(pair.id, leaf)).status).toBe(409);
    expect(await task({ parentId: leaf })).toMatchObject({ parentId: leaf });
    expect(await task({ parentId: root })).toMatchObject({ code: "conflict" });
    expect((await api.call("PUT", `/tasks/${leaf}`, { description: "x" })).status).toBe(200);
    expect((await move(leaf, null)).status).toBe(200);
    expect(await task({ parentId: root })).toMatchObject({ parentId: root });
  });

  it("takes so many bytes of content, and no more, whichever task they are in", async () => {
    const size = 16 * 1024 * 1024;
    const [root = "", running = ""] = await insert(2, (n, ids) =>
      n === 0
        ? { contentBytes: size - 100 }
        : { parentId: ids[0], status: "running" as const, startedAt: new Date() },
    );
    const large = "x".repeat(100);
    expect(await task({ parentId: root, input: large })).toMatchObject({ code: "conflict" });
    expect((await api.call("PUT", `/tasks/${running}`, { input: large })).status).toBe(409);
    expect((await api.call("POST", `/tasks/${running}/end`, { output: large })).status).toBe(409);
    expect((await api.call("POST", `/tasks/${running}/end`, { output: "small" })).status).toBe(200);
    expect(await task({ parentId: root, input: "small" })).toMatchObject({ input: "small" });
  });
});

/** Tasks that are above themselves. */
function findCircles() {
  return sql`
    WITH RECURSIVE above AS (
      SELECT id AS below, parent_id AS id, 1 AS steps FROM tasks WHERE parent_id IS NOT NULL
      UNION ALL
      SELECT below, tasks.parent_id, steps + 1 FROM above JOIN tasks ON tasks.id = above.id
      WHERE tasks.parent_id IS NOT NULL AND steps < 20
    )
    SELECT below FROM above WHERE below = id LIMIT 1`.execute(api.database.db);
}
