import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let callerId: string;
const api = opened(createTestApi);
const { call } = api;
beforeAll(async () => {
  callerId = (await call.get("/iam/accounts"))[0].id;
});

const task = (body: object = {}) => call.post("/tasks", { title: "Task", ...body });
const put = (id: string, patch: object) => call.put(`/tasks/${id}`, patch);
const act = (id: string, action: string, body: object = {}) => call("POST", `/tasks/${id}/${action}`, body);

interface Tree {
  readonly title: string;
  readonly children: readonly Tree[];
}
/** Formats a tree as its titles, with children in parentheses: `a(b(c) d)`. */
const shape = ({ title, children }: Tree): string =>
  children.length === 0 ? title : `${title}(${children.map(shape).join(" ")})`;
const shapeOf = async (id: string): Promise<string> => shape(await call.get(`/tasks/${id}`));

it("a client can build a tree of tasks, and start, end, fail, cancel, move and delete its tasks", async () => {
  const root = await task({ title: "release" });
  const build = await task({ title: "build", parentId: root.id });
  const test = await task({ title: "test", parentId: root.id });
  const unit = await task({ title: "unit", parentId: test.id });
  const browser = await task({ title: "browser", parentId: test.id });
  expect(await shapeOf(root.id)).toBe("release(build test(unit browser))");

  for (const { id } of [root, build, unit, browser]) await act(id, "start");
  await act(build.id, "end", { output: { image: "sha256:1" } });
  await act(unit.id, "end", { errors: [{ code: "assertion", message: "1 is not 2" }] });
  await act(browser.id, "cancel");
  const [built, tested] = (await call.get(`/tasks/${root.id}`)).children;
  expect(built).toMatchObject({ status: "completed", output: { image: "sha256:1" }, errors: [] });
  expect(tested).toMatchObject({
    status: "created",
    children: [
      { status: "failed", output: null, errors: [{ code: "assertion", message: "1 is not 2" }] },
      { status: "canceled", output: null, errors: [] },
    ],
  });

  const moved = await put(test.id, { parentId: build.id });
  expect(moved).toEqual(await call.get(`/tasks/${test.id}`));
  expect(await shapeOf(root.id)).toBe("release(build(test(unit browser)))");
  await put(test.id, { parentId: null });
  expect([await shapeOf(root.id), await shapeOf(test.id)]).toEqual(["release(build)", "test(unit browser)"]);

  expect(await call.expectRejection("DELETE", `/tasks/${test.id}`)).toMatchObject({ status: 409 });
  for (const { id } of [unit, browser, test]) await call.delete(`/tasks/${id}`);
  expect((await call("GET", `/tasks/${test.id}`)).status).toBe(404);
});

describe("a task", () => {
  it("is returned with every field, and with null for missing values", async () => {
    const made = await task();
    expect(made).toEqual({
      id: expect.stringMatching(/^task_/),
      title: "Task",
      description: null,
      kind: "default",
      organizationId: expect.stringMatching(/^org_/),
      authorId: callerId,
      executorId: null,
      appId: null,
      parentId: null,
      stateId: null,
      targetId: null,
      status: "created",
      input: null,
      output: null,
      params: {},
      errors: [],
      children: [],
      startedAt: null,
      endedAt: null,
      createdAt: expect.any(String),
      updatedAt: made.createdAt,
    });
    expect(await call.get(`/tasks/${made.id}`)).toEqual(made);
  });

  it("refers to an executor, an app, a state and any target, and loses its reference to an app or state that is deleted", async () => {
    const blueprint = await call.post("/blueprints", { title: "b" });
    const app = await call.post("/apps/install", { blueprintId: blueprint.id });
    const state = await call.post("/states", { name: "s" });
    const named = { executorId: callerId, appId: app.id, stateId: state.id, targetId: "anything" };
    const made = await task({ ...named, kind: "report", input: [1, { a: null }], params: { a: { b: 1 } } });
    expect(made).toMatchObject({ ...named, kind: "report", input: [1, { a: null }] });
    const patch = { params: { a: { c: null }, d: 0 }, input: { e: false }, kind: "default" };
    const changed = await put(made.id, patch);
    expect(changed).toMatchObject({ ...named, kind: "default", input: { e: false } });
    expect(changed.params).toEqual(patch.params);
    expect((await call.expectRejection("PUT", `/tasks/${made.id}`, { kind: null })).paths).toEqual(["kind"]);
    await call.delete(`/apps/${app.id}`);
    await call.delete(`/states/${state.id}`);
    expect(await call.get(`/tasks/${made.id}`)).toMatchObject({
      appId: null,
      stateId: null,
      executorId: callerId,
    });
  });

  it("changes only from created to running to one final status, and records the time of each change", async () => {
    const actions = { start: {}, end: {}, cancel: {}, fail: { errors: [{ code: "c", message: "m" }] } };
    const ends = { end: "completed", cancel: "canceled", fail: "failed" };
    const does = async (id: string, name: keyof typeof actions) =>
      (await act(id, name === "fail" ? "end" : name, actions[name])).status;
    for (const [end, status] of Object.entries(ends) as [keyof typeof ends, string][]) {
      const { id, createdAt } = await task();
      for (const early of ["end", "cancel", "fail"] as const) expect(await does(id, early)).toBe(409);
      const running = (await act(id, "start")).body;
      expect(running).toMatchObject({ status: "running", endedAt: null });
      expect(running.startedAt >= createdAt).toBe(true);
      expect(await does(id, "start")).toBe(409);
      expect(await does(id, end)).toBe(200);
      const ended = await call.get(`/tasks/${id}`);
      expect(ended).toMatchObject({ status, startedAt: running.startedAt });
      expect(ended.endedAt >= ended.startedAt).toBe(true);
      for (const late of ["start", "end", "cancel", "fail"] as const) expect(await does(id, late)).toBe(409);
      expect(await call.get(`/tasks/${id}`)).toEqual(ended);
    }
  });

  it("ends only once if several requests end or cancel the task concurrently", async () => {
    const { id } = await task();
    await act(id, "start");
    const ends = Array.from({ length: 6 }, (_, n) =>
      act(id, n % 2 ? "cancel" : "end", n % 2 ? {} : { output: n }),
    );
    const statuses = (await Promise.all(ends)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  it.each([
    ["a status", { title: "a", status: "running" }, "status"],
    ["a start time", { title: "a", startedAt: "2026-01-01T00:00:00.000Z" }, "startedAt"],
    ["too much input", { title: "a", input: "x".repeat(70_000) }, "input"],
  ])("is rejected with %s in the request", async (_, body, path) => {
    expect(await call.expectRejection("POST", "/tasks", body)).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: [path],
    });
  });

  it("cannot end with both an output and errors", async () => {
    const { id } = await task();
    const body = { output: 1, errors: [{ code: "c", message: "m" }] };
    expect(await call.expectRejection("POST", `/tasks/${id}/end`, body)).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["output"],
    });
  });

  it("can be listed by parent task and status", async () => {
    const root = await task({ title: "root" });
    const [a, b] = [await task({ parentId: root.id }), await task({ parentId: root.id })];
    await task({ parentId: a.id });
    const ids = async (query: string) =>
      (await call.get(`/tasks?${query}`)).map(({ id }: { id: string }) => id);
    expect(await ids(`parentId=${root.id}`)).toEqual([a.id, b.id]);
    await act(b.id, "start");
    expect(await ids(`parentId=${root.id}&status=running`)).toEqual([b.id]);
    expect(await ids("parentId=task_x")).toEqual([]);
    const shown = (await call.get(`/tasks/${root.id}`)).children.map(({ children: _, ...one }: Tree) => one);
    expect(await call.get(`/tasks?parentId=${root.id}`)).toEqual(shown);
    expect(await call.expectRejection("GET", "/tasks?status=gone")).toMatchObject({ status: 400 });
  });
});
