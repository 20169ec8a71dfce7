import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let accountId: string;
const api = opened(createTestApi);
beforeAll(async () => {
  accountId = (await api.database.db.selectFrom("apiKeys").select("accountId").executeTakeFirstOrThrow())
    .accountId;
});

const form = (body: object = {}) => api.call.post("/forms", { title: "Form", ...body });
const refusal = (body: object) => api.call.expectRejection("POST", "/forms", { title: "Form", ...body });
const put = (id: string, patch: object) => api.call.put(`/forms/${id}`, patch);
const putRefusal = (id: string, patch: object) => api.call.expectRejection("PUT", `/forms/${id}`, patch);
const refusedFor = (...paths: string[]) => ({ status: 400, code: "invalid_parameters", paths });
const conflict = { status: 409, code: "conflict" };

/** A parameter block of every kind, with all of its fields. */
const BLOCKS = {
  address: { precision: "street" },
  choice: {
    options: [
      { label: "Red", value: "r" },
      { label: "Blue", value: "b" },
    ],
    multiple: true,
    allowOther: false,
    otherLabel: "Another",
    minCount: 0,
    maxCount: 2,
  },
  date: { minDate: "2026-01-01", maxDate: "2026-12-31" },
  dateTime: { minDateTime: "2026-01-01T12:00:00+14:00", maxDateTime: "2026-01-01T00:00:00Z" },
  email: { domainWhitelist: ["example.com"], domainBlacklist: [] },
  file: { allowMultiple: false, allowedTypes: ["image/png"], maxItems: 3, minSize: 0, maxSize: 1.5 },
  nps: { minLabel: "never", maxLabel: "surely" },
  number: { minValue: -1.5, maxValue: 0, precision: 2, step: 0.25 },
  phone: { allowCountries: ["DE"], denyCountries: ["US"] },
  range: { minValue: 0, maxValue: 10, step: 1 },
  rating: { minRating: 1, maxRating: 5, minLabel: "bad", maxLabel: "good", symbol: "star" },
  secret: {},
  text: { long: false, minLength: 0, maxLength: 100, minWords: 1, maxWords: 20 },
  time: { minTime: "09:30", maxTime: "09:30:00" },
  url: { allowProtocols: ["https"], denyProtocols: ["ftp"] },
  yesNo: { yesLabel: "Yes", noLabel: "No" },
};
type Kind = keyof typeof BLOCKS;
const KINDS = Object.keys(BLOCKS) as Kind[];

/** An empty block of every kind, as the API returns it. */
const EMPTY = Object.fromEntries(
  Object.entries(BLOCKS).map(([kind, block]) => [
    kind,
    Object.fromEntries(
      Object.entries(block).map(([name, value]) => [name, Array.isArray(value) ? [] : null]),
    ),
  ]),
);

const input = (kind: string, params: object, more: object = {}) => ({
  key: kind,
  title: `a ${kind}`,
  description: "what it is",
  required: true,
  kind,
  params,
  ...more,
});
const item = (id: string, question: object | null, more: object = {}) => ({
  id,
  kind: question === null ? "text" : "input",
  content: "before it",
  sectionId: null,
  input: question,
  ...more,
});
const SECTION = { id: "s1", title: "First", description: "of all" };
const EVERYTHING = {
  items: [
    item("hello", null, { kind: "heading", sectionId: "s1" }),
    ...KINDS.map((kind) => item(`of ${kind}`, input(kind, { [kind]: BLOCKS[kind] }), { sectionId: "s1" })),
    item("line", null, { kind: "divider", content: null }),
  ],
  sections: [SECTION, { id: "s2", title: null, description: null }],
};
const inputRefusal = (kind: string, params: object) =>
  refusal({ content: { items: [item("1", input(kind, params))] } });
const INPUT = "content.items[0].input";

describe("a form", () => {
  it("with inputs of all sixteen kinds is returned exactly as the request defined it", async () => {
    const given = { uid: "all", title: "All", description: "kinds", content: EVERYTHING };
    const body = await form(given);
    expect(body).toEqual({
      ...given,
      id: expect.stringMatching(/^form_/),
      organizationId: expect.stringMatching(/^org_/),
      blueprintId: null,
      versionParentId: null,
      createdById: accountId,
      updatedById: accountId,
      createdAt: expect.any(String),
      updatedAt: body.createdAt,
    });
    expect(KINDS).toHaveLength(16);
    const read = await api.call.get(`/forms/${body.id}`);
    expect(read).toEqual(body);
    expect(JSON.stringify(read.content)).toBe(JSON.stringify(body.content));
    expect((await put(body.id, { title: "New" })).content).toEqual(EVERYTHING);
  });

  it("is returned with null or [] for fields that the request omitted", async () => {
    const empty = await form();
    expect(empty).toMatchObject({ uid: empty.id, description: null, content: { items: [], sections: [] } });
    const items = KINDS.map((kind) => ({
      id: kind,
      kind: "input",
      input: { key: kind, kind, params: { [kind]: {} } },
    }));
    const { content } = await form({ content: { items, sections: [{ id: "s" }] } });
    expect(content).toEqual({
      items: KINDS.map((kind) => ({
        id: kind,
        kind: "input",
        content: null,
        sectionId: null,
        input: {
          key: kind,
          title: null,
          description: null,
          required: false,
          kind,
          params: { [kind]: EMPTY[kind] },
        },
      })),
      sections: [{ id: "s", title: null, description: null }],
    });
  });

  it.each(
    KINDS,
  )("with an input of kind %s is rejected if the input has parameters of other kinds", async (kind) => {
    const { [kind]: own, ...all } = BLOCKS;
    const others = Object.fromEntries(Object.entries(all).filter(([name]) => name !== "secret"));
    const paths = Object.keys(others).map((other) => `${INPUT}.params.${other}`);
    expect(await inputRefusal(kind, { [kind]: own, ...others })).toEqual(refusedFor(...paths));
    const missing = await inputRefusal(kind, others);
    expect(missing).toEqual(refusedFor(`${INPUT}.params.${kind}`, ...paths));
    expect(await inputRefusal(kind, {})).toEqual(refusedFor(`${INPUT}.params.${kind}`));
  });

  it.each(
    KINDS,
  )("with an input of kind %s accepts parameters of other kinds if they are null or empty", async (kind) => {
    for (const empty of [null, {}]) {
      const params = { ...Object.fromEntries(KINDS.map((name) => [name, empty])), [kind]: BLOCKS[kind] };
      const { content } = await form({ content: { items: [item("1", input(kind, params))] } });
      expect(content.items[0].input.params).toEqual({ [kind]: BLOCKS[kind] });
    }
    const nulls = Object.fromEntries(Object.keys(BLOCKS[kind]).map((name) => [name, null]));
    const { content } = await form({ content: { items: [item("1", input(kind, { [kind]: nulls }))] } });
    expect(content.items[0].input.params).toEqual({ [kind]: EMPTY[kind] });
    const params = { [kind]: BLOCKS[kind], another: null };
    expect(await inputRefusal(kind, params)).toEqual(refusedFor(`${INPUT}.params.another`));
  });

  it("accepts dates and points in time as the limits of a date input", async () => {
    const block = { minDate: "2026-01-01", maxDate: "2026-12-31T23:59:59.999+02:00" };
    const { content } = await form({ content: { items: [item("1", input("date", { date: block }))] } });
    expect(content.items[0].input.params).toEqual({ date: block });
  });

  it.each(
    KINDS,
  )("with an input of kind %s is rejected if its parameters have a wrong type or name", async (kind) => {
    const at = `${INPUT}.params.${kind}`;
    const names = Object.keys(BLOCKS[kind]);
    for (const wrong of [{}, [{}]]) {
      const params = Object.fromEntries(names.map((name) => [name, wrong]));
      const { status, paths = [] } = await inputRefusal(kind, { [kind]: { ...params, another: 1 } });
      expect(status).toBe(400);
      expect(paths.map((path) => path.replace(/\[0\](\.\w+)?$/, ""))).toEqual(
        expect.arrayContaining([...names, "another"].map((name) => `${at}.${name}`)),
      );
    }
    expect(await inputRefusal(kind, { [kind]: null })).toEqual(refusedFor(at));
  });

  it.each([
    ["choice", { minCount: 2, maxCount: 1 }, "maxCount"],
    ["date", { minDate: "2026-02-01", maxDate: "2026-01-31" }, "maxDate"],
    [
      "dateTime",
      { minDateTime: "2026-01-01T00:00:00Z", maxDateTime: "2026-01-01T01:00:00+02:00" },
      "maxDateTime",
    ],
    ["file", { minSize: 2, maxSize: 1.5 }, "maxSize"],
    ["number", { minValue: 0, maxValue: -1 }, "maxValue"],
    ["range", { minValue: 10, maxValue: 9 }, "maxValue"],
    ["rating", { minRating: 5, maxRating: 1 }, "maxRating"],
    ["text", { minLength: 10, maxLength: 9 }, "maxLength"],
    ["text", { minWords: 10, maxWords: 9 }, "maxWords"],
    ["time", { minTime: "10:00", maxTime: "09:59:59" }, "maxTime"],
    ["text", { minLength: -1 }, "minLength"],
    ["text", { maxWords: 1.5 }, "maxWords"],
    ["number", { step: 0 }, "step"],
    ["date", { minDate: "2026-01-31T12:00:00Z", maxDate: "2026-01-31" }, "maxDate"],
    ["date", { minDate: "2026-02-30" }, "minDate"],
    ["date", { minDate: "2026-01-31T25:00:00Z" }, "minDate"],
    ["dateTime", { minDateTime: "2026-01-01" }, "minDateTime"],
    ["time", { minTime: "25:00" }, "minTime"],
  ])("with an input of kind %s is rejected with the parameters %o", async (kind, block, name) => {
    expect(await inputRefusal(kind, { [kind]: block })).toEqual(
      refusedFor(`${INPUT}.params.${kind}.${name}`),
    );
  });

  it("is rejected with the path of every invalid field at any depth", async () => {
    expect(await refusal({ uid: "a b", title: "" })).toEqual(refusedFor("uid", "title"));
    const content = {
      items: [
        { id: "", kind: "video", content: 1, sectionId: 1, more: 1 },
        item("2", { key: "", title: 1, description: 1, required: 1, kind: "text", params: 1, more: 1 }),
        item("3", input("video", {})),
      ],
      sections: [{ title: 1, description: 1, more: 1 }],
      more: [],
    };
    const inputFields = ["key", "title", "description", "required", "params", "more"];
    expect(await refusal({ content })).toEqual(
      refusedFor(
        ...["id", "kind", "content", "sectionId", "more"].map((name) => `content.items[0].${name}`),
        ...inputFields.map((name) => `content.items[1].input.${name}`),
        "content.items[2].input.kind",
        ...["id", "title", "description", "more"].map((name) => `content.sections[0].${name}`),
        "content.more",
      ),
    );
  });

  it("is rejected if an item of kind input has no input, or an item of another kind has an input", async () => {
    const text = input("text", { text: {} });
    const items = [item("1", null, { kind: "input" }), item("2", text, { kind: "heading" })];
    expect(await refusal({ content: { items } })).toEqual(
      refusedFor("content.items[0].input", "content.items[1].input"),
    );
  });

  it("is rejected if two items or sections have the same id or key, or if an item refers to an unknown section", async () => {
    const text = input("text", { text: {} });
    const content = {
      items: [item("1", text, { sectionId: "s1" }), item("1", null), item("3", text, { sectionId: "s3" })],
      sections: [SECTION, { id: "s2" }, SECTION],
    };
    expect(await refusal({ content })).toEqual(
      refusedFor(
        "content.sections[2].id",
        "content.items[1].id",
        "content.items[2].input.key",
        "content.items[2].sectionId",
      ),
    );
  });

  it("is changed by a merge patch and validated after the merge", async () => {
    const { id } = await form({ description: "d", content: EVERYTHING });
    const items = [item("only", null, { sectionId: "s2" })];
    const changed = await put(id, { description: null, content: { items } });
    expect(changed).toMatchObject({ title: "Form", description: null });
    expect(changed.content).toEqual({ items, sections: EVERYTHING.sections });
    expect(await putRefusal(id, { content: { sections: [SECTION] } })).toEqual(
      refusedFor("content.items[0].sectionId"),
    );
    expect((await api.call.get(`/forms/${id}`)).content).toEqual(changed.content);
    expect(await putRefusal(id, { title: null, versionParentId: id, createdById: "x" })).toEqual(
      refusedFor("title", "versionParentId", "createdById"),
    );
    expect(await putRefusal(id, { content: null })).toEqual(refusedFor("content"));
    expect(await putRefusal(id, { content: { items: null } })).toEqual(refusedFor("content.items"));
  });

  it("is returned with the accounts that created the form and last changed it", async () => {
    const { id } = await form();
    const other = await api.call.post("/iam/api-keys", { name: "k", permissions: ["forms.write"] });
    await api.as(other.key).put(`/forms/${id}`, { title: "b" });
    expect(await api.call.get(`/forms/${id}`)).toMatchObject({
      createdById: accountId,
      updatedById: other.accountId,
    });
  });

  it("refers to a blueprint until that blueprint is deleted, and its ETag changes then", async () => {
    const blueprint = await api.call.post("/blueprints", { title: "b" });
    const { id, blueprintId } = await form({ blueprintId: blueprint.id });
    expect(blueprintId).toBe(blueprint.id);
    const path = `/forms/${id}`;
    const etag = (await api.call("GET", path)).headers.get("etag") ?? "";
    await api.call.delete(`/blueprints/${blueprint.id}`);
    expect((await api.call("GET", path, undefined, { "if-none-match": etag })).status).toBe(200);
    expect((await api.call("PUT", path, { title: "b" }, { "if-match": etag })).status).toBe(409);
    expect(await put(id, { title: "b" })).toMatchObject({ title: "b", blueprintId: null });
  });

  it("can be listed in pages and deleted", async () => {
    const { id } = await form();
    const total = Number((await api.call("GET", "/forms")).headers.get("x-total-count"));
    const last = await api.call.get(`/forms?limit=1&offset=${total - 1}`);
    expect([last.length, last[0].id]).toEqual([1, id]);
    expect(await api.call.delete(`/forms/${id}`)).toEqual({ id });
    expect((await api.call("GET", `/forms/${id}`)).status).toBe(404);
  });
});

describe("a version of a form", () => {
  it("is a separate form with its own content, but with the uid of its parent form", async () => {
    const first = await form({ uid: "contact", title: "1" });
    const second = await form({ versionParentId: first.id, title: "2" });
    const third = await form({ versionParentId: second.id, uid: "contact", title: "3" });
    expect([second.uid, second.versionParentId]).toEqual(["contact", first.id]);
    expect([third.uid, third.versionParentId]).toEqual(["contact", second.id]);
    expect(await put(second.id, { title: "new" })).toMatchObject({ title: "new", uid: "contact" });
    expect(await api.call.get(`/forms/${first.id}`)).toEqual(first);
    const listed = await api.call("GET", `/forms?versionParentId=${first.id}`);
    expect([listed.body.length, listed.body[0].id, listed.headers.get("x-total-count")]).toEqual([
      1,
      second.id,
      "1",
    ]);
  });

  it("prevents the deletion of its parent form, and a change of the uid that the two forms share", async () => {
    const first = await form();
    const second = await form({ versionParentId: first.id });
    expect(await api.call.expectRejection("DELETE", `/forms/${first.id}`)).toEqual(conflict);
    for (const { id } of [first, second]) expect(await putRefusal(id, { uid: "else" })).toEqual(conflict);
    await put(first.id, { uid: first.uid });
    expect(await refusal({ versionParentId: first.id, uid: "else" })).toEqual(refusedFor("uid"));
    await api.call.delete(`/forms/${second.id}`);
    await put(first.id, { uid: `${first.uid}.2` });
    await api.call.delete(`/forms/${first.id}`);
  });
});

describe("the uid of a form", () => {
  it("must be unique in its organization", async () => {
    const first = await form({ uid: "taken" });
    const second = await form();
    expect(await refusal({ uid: "taken" })).toEqual(conflict);
    expect(await putRefusal(second.id, { uid: "taken" })).toEqual(conflict);
    await api.as(await api.createForeignKey()).post("/forms", { title: "Form", uid: "taken" });
    await api.call.delete(`/forms/${first.id}`);
    await form({ uid: "taken" });
  });

  it("is given to only one of several concurrent requests", async () => {
    const create = () => api.call("POST", "/forms", { title: "Form", uid: "wanted" });
    const answers = await Promise.all([create(), create(), create()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });
});
