import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
let callerId: string;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
  callerId = (await api.call("GET", "/iam/accounts")).body[0].id;
});
afterAll(() => api[Symbol.asyncDispose]());

const post = async (path: string, body: object = {}) => (await api.call("POST", path, body)).body;
const get = async (path: string) => (await api.call("GET", path)).body;
const task = (body: object = {}) => post("/tasks", { title: "Task", ...body });
const put = (id: string, patch: object) => api.call("PUT", `/tasks/${id}`, patch);
const act = (id: string, action: string, body: object = {}) =>
  api.call("POST", `/tasks/${id}/${action}`, body);

interface Tree {
  readonly title: string;
  readonly children: readonly Tree[];
}
/** `a(b(c) d)` */
const shape = ({ title, children }: Tree): string =>
  children.length === 0 ? title : `${title}(${children.map(shape).join(" ")})`;
const shapeOf = async (id: string): Promise<string> => shape(await get(`/tasks/${id}`));

it("is built as a tree, started, ended, failed, canceled and moved, by the API alone", async () => {
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
  const [built, tested] = (await get(`/tasks/${root.id}`)).children;
  expect(built).toMatchObject({ status: "completed", output: { image: "sha256:1" }, errors: [] });
  expect(tested).toMatchObject({
    status: "created",
    children: [
      { status: "failed", output: null, errors: [{ code: "assertion", message: "1 is not 2" }] },
      { status: "canceled", output: null, errors: [] },
    ],
  });

  const moved = (await put(test.id, { parentId: build.id })).body;
  expect(moved).toEqual(await get(`/tasks/${test.id}`));
  expect(await shapeOf(root.id)).toBe("release(build(test(unit browser)))");
  await put(test.id, { parentId: null });
  expect([await shapeOf(root.id), await shapeOf(test.id)]).toEqual(["release(build)", "test(unit browser)"]);

  expect((await api.call("DELETE", `/tasks/${test.id}`)).body).toMatchObject({ code: "conflict" });
  for (const { id } of [unit, browser, test])
    expect((await api.call("DELETE", `/tasks/${id}`)).status).toBe(200);
  expect((await api.call("GET", `/tasks/${test.id}`)).status).toBe(404);
});

describe("a task", () => {
  it("has every field, null where there is no value", async () => {
    const made = await task();
    expect(made).toEqual({
      ...{ id: expect.stringMatching(/^task_/), title: "Task", description: null, kind: "default" },
      ...{
        organizationId: expect.stringMatching(/^org_/),
        authorId: callerId,
        executorId: null,
        appId: null,
      },
      ...{ parentId: null, stateId: null, targetId: null, status: "created", input: null, output: null },
      ...{ params: {}, errors: [], children: [], startedAt: null, endedAt: null },
      ...{ createdAt: expect.any(String), updatedAt: made.createdAt },
    });
    expect(await get(`/tasks/${made.id}`)).toEqual(made);
  });

  it("names an executor, an app, a state and any target, and loses what is deleted", async () => {
    const blueprint = await post("/blueprints", { title: "b" });
    const app = await post("/apps/install", { blueprintId: blueprint.id });
    const state = await post("/states", { name: "s" });
    const named = { executorId: callerId, appId: app.id, stateId: state.id, targetId: "anything" };
    const made = await task({ ...named, kind: "report", input: [1, { a: null }], params: { a: { b: 1 } } });
    expect(made).toMatchObject({ ...named, kind: "report", input: [1, { a: null }] });
    const changed = (await put(made.id, { params: { a: { c: 2 }, d: 0 }, input: { e: false }, kind: null }))
      .body;
    expect(changed).toMatchObject({ ...named, kind: "default", input: { e: false } });
    expect(changed.params).toEqual({ a: { b: 1, c: 2 }, d: 0 });
    await api.call("DELETE", `/apps/${app.id}`);
    expect((await api.call("DELETE", `/states/${state.id}`)).status).toBe(200);
    expect(await get(`/tasks/${made.id}`)).toMatchObject({
      appId: null,
      stateId: null,
      executorId: callerId,
    });
  });

  it("goes from created to running to one end, its times set by that, and no other way", async () => {
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
      const ended = await get(`/tasks/${id}`);
      expect(ended).toMatchObject({ status, startedAt: running.startedAt });
      expect(ended.endedAt >= ended.startedAt).toBe(true);
      for (const late of ["start", "end", "cancel", "fail"] as const) expect(await does(id, late)).toBe(409);
      expect(await get(`/tasks/${id}`)).toEqual(ended);
    }
  });

  it("ends once, whoever comes first", async () => {
    const { id } = await task();
    await act(id, "start");
    const ends = Array.from({ length: 6 }, (_, n) =>
      act(id, n % 2 ? "cancel" : "end", n % 2 ? {} : { output: n }),
    );
    const statuses = (await Promise.all(ends)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  it.each([
    ["", { title: "" }, "title"],
    ["", { title: "a", status: "running" }, "status"],
    ["", { title: "a", startedAt: "2026-01-01T00:00:00.000Z" }, "startedAt"],
    ["", { title: "a", params: [] }, "params"],
    ["", { title: "a", input: "x".repeat(70_000) }, "input"],
    ["/end", { output: 1, errors: [{ code: "c", message: "m" }] }, "output"],
    ["/end", { errors: [{ code: "c" }] }, "errors[0].message"],
    ["/end", { errors: [{ code: "c", message: "m", extra: 1 }] }, "errors[0].extra"],
  ])("%s is refused with what does not fit, case %#", async (action, body, path) => {
    const { id } = await task();
    const answer = await api.call("POST", action === "" ? "/tasks" : `/tasks/${id}${action}`, body);
    expect([answer.status, answer.body.details.map((one: { path: string }) => one.path)]).toEqual([
      400,
      [path],
    ]);
  });

  it("is listed by parent and status, each without its children", async () => {
    const root = await task({ title: "root" });
    const [a, b] = [await task({ parentId: root.id }), await task({ parentId: root.id })];
    await task({ parentId: a.id });
    const ids = async (query: string) => (await get(`/tasks?${query}`)).map(({ id }: { id: string }) => id);
    expect(await ids(`parentId=${root.id}`)).toEqual([a.id, b.id]);
    await act(b.id, "start");
    expect(await ids(`parentId=${root.id}&status=running`)).toEqual([b.id]);
    expect(await ids("parentId=task_x")).toEqual([]);
    const shown = (await get(`/tasks/${root.id}`)).children.map((one: Tree) => ({ ...one, children: [] }));
    expect(await get(`/tasks?parentId=${root.id}`)).toEqual(shown);
    expect((await api.call("GET", "/tasks?status=gone")).status).toBe(400);
  });

  it("is hidden from other organizations, and names nothing of them", async () => {
    const made = await task();
    await expectHidden(stranger, "/tasks", made.id, { title: "theirs" });
    for (const action of ["start", "end", "cancel"])
      expect((await stranger("POST", `/tasks/${made.id}/${action}`, {})).status).toBe(404);
    const blueprint = await post("/blueprints", { title: "b" });
    const app = await post("/apps/install", { blueprintId: blueprint.id });
    const state = await post("/states", { name: "s" });
    const theirs = (await stranger("POST", "/tasks", { title: "theirs" })).body;
    for (const [field, foreign] of [
      ["parentId", made.id],
      ["executorId", callerId],
      ["appId", app.id],
      ["stateId", state.id],
    ]) {
      const named = (value: string) => ({ title: "a", [field]: value });
      await expectUnknownInside(stranger, "POST", "/tasks", foreign, named);
      await expectUnknownInside(stranger, "PUT", `/tasks/${theirs.id}`, foreign, named);
    }
    expect((await stranger("GET", `/tasks?parentId=${made.id}`)).body).toEqual([]);
  });
});
