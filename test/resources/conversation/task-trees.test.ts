import { type RawBuilder, sql } from "kysely";
import { beforeAll, describe, expect, it } from "vitest";
import { answerTree } from "../../../src/resources/conversation/tasks/tree.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let organizationId: string;
const api = opened(createTestApi);
beforeAll(async () => {
  organizationId = (await api.call.get("/organizations"))[0].id;
});

const task = async (body: object = {}) => (await api.call("POST", "/tasks", { title: "t", ...body })).body;
const move = (id: string, parentId: string | null) => api.call("PUT", `/tasks/${id}`, { parentId });

let trees = 0;
/** Inserts tasks 0 to `count` - 1 like the API does. `parent` computes the parent of task n. Returns a function from n to the task's id. */
async function insert(count: number, parent: RawBuilder<unknown>): Promise<(n: number) => string> {
  const prefix = `task_${String(++trees).padStart(10, "0")}`;
  await sql`
    INSERT INTO tasks (id, organization_id, parent_id, title, kind, status, params, errors, content_bytes, created_at, updated_at)
    SELECT ${prefix} || lpad(n::text, 13, '0'), ${organizationId},
      CASE WHEN n > 0 THEN ${prefix} || lpad((${parent})::text, 13, '0') END,
      n::text, 'default', 'created', '{}', '[]', 4, to_timestamp(n / 1000.0), to_timestamp(n / 1000.0)
    FROM generate_series(0, ${sql.lit(count - 1)}) AS n`.execute(api.database.db);
  return (n) => prefix + String(n).padStart(13, "0");
}

interface Tree {
  readonly title: string;
  readonly children: readonly Tree[];
}

describe("a tree of tasks", () => {
  it("is returned completely, with 10,000 levels or with 1,000 children of one task", async () => {
    const idOf = await insert(1_001, sql`0`);
    const { children } = await api.call.get(`/tasks/${idOf(0)}`);
    const titles = children.map(({ title }: { title: string }) => title);
    expect(titles).toEqual(Array.from({ length: 1_000 }, (_, n) => String(n + 1)));

    const idOfChain = await insert(10_000, sql`n - 1`);
    // Bypasses the test API, because its check of each response cannot handle 10,000 levels.
    const answer = await answerTree(api.database.db, { organizationId }, idOfChain(0));
    let at = (await answer.json()) as Tree;
    let depth = 1;
    for (let [child] = at.children; child !== undefined; [child] = at.children) {
      at = child;
      depth++;
    }
    expect([depth, at.title]).toEqual([10_000, "9999"]);
  });

  it("is read with a single database query", async () => {
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
    try {
      expect((await api.call.get(`/tasks/${id}`)).children).toHaveLength(3);
    } finally {
      executor.executeQuery = original;
    }
    expect(queries.filter((sql) => sql.includes("tasks"))).toHaveLength(1);
  });

  it("rejects moving a task below itself, its child or its grandchild", async () => {
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

  it("contains no cycle after concurrent moves that would form a cycle together", async () => {
    for (let round = 0; round < 4; round++) {
      const [a, b, c] = [await task(), await task(), await task()];
      const moves = await Promise.all([move(a.id, b.id), move(b.id, c.id), move(c.id, a.id)]);
      expect(moves.map(({ status }) => status).sort()).toEqual([200, 200, 400]);
    }
    const { rows } = await findCircles();
    expect(rows).toEqual([]);
  });

  it("accepts concurrent moves and new tasks without a deadlock", async () => {
    const [a, b] = [await task(), await task()];
    const all = Array.from({ length: 12 }, (_, n) =>
      n % 3 === 0 ? move(a.id, n % 2 ? null : b.id) : task({ parentId: n % 3 === 1 ? a.id : b.id }),
    );
    await Promise.all(all);
    const trees = [a, b].map(async ({ id }) => (await api.call("GET", `/tasks/${id}`)).status);
    expect(await Promise.all(trees)).toEqual([200, 200]);
  });

  it("is limited to 10,000 tasks, whether they are created in the tree or moved into it", async () => {
    const idOf = await insert(9_999, sql`(n - 1) / 10`);
    const [root, leaf] = [idOf(0), idOf(9_998)];
    const pair = await task();
    await task({ parentId: pair.id });
    expect((await move(pair.id, leaf)).status).toBe(409);
    expect(await task({ parentId: leaf })).toMatchObject({ parentId: leaf });
    expect(await task({ parentId: root })).toMatchObject({ code: "conflict" });
    expect((await api.call("PUT", `/tasks/${leaf}`, { description: "x" })).status).toBe(200);
    expect((await move(leaf, null)).status).toBe(200);
    expect(await task({ parentId: root })).toMatchObject({ parentId: root });
  });

  it("is limited to 16 MiB of content in all its tasks together", async () => {
    const size = 16 * 1024 * 1024;
    const { id: root } = await task();
    const { id: running } = await task({ parentId: root });
    await api.call.post(`/tasks/${running}/start`);
    const full = { contentBytes: size - 100 };
    await api.database.db.updateTable("tasks").set(full).where("id", "=", root).execute();
    const large = "x".repeat(100);
    expect(await task({ parentId: root, input: large })).toMatchObject({ code: "conflict" });
    expect((await api.call("PUT", `/tasks/${running}`, { input: large })).status).toBe(409);
    expect((await api.call("POST", `/tasks/${running}/end`, { output: large })).status).toBe(409);
    expect((await api.call("POST", `/tasks/${running}/end`, { output: "small" })).status).toBe(200);
    expect(await task({ parentId: root, input: "small" })).toMatchObject({ input: "small" });
  });
});

/** Finds a task that is its own ancestor. */
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
