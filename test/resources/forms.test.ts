import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside } from "../support/isolated.ts";

let api: TestApi;
let stranger: Call;
let accountId: string;
beforeAll(async () => {
  api = await createTestApi();
  stranger = api.as(await api.strangerKey());
  accountId = (await api.database.db.selectFrom("apiKeys").select("accountId").executeTakeFirstOrThrow())
    .accountId;
});
afterAll(() => api[Symbol.asyncDispose]());

const create = (body: object, call: Call = api.call) => call("POST", "/forms", { title: "Form", ...body });
const form = async (body: object = {}) => (await create(body)).body;
const put = (id: string, patch: object, headers = {}) => api.call("PUT", `/forms/${id}`, patch, headers);
const paths = ({ body }: { readonly body: { readonly details: readonly { readonly path: string }[] } }) =>
  body.details.map(({ path }) => path);

/** A whole block of every kind. */
const BLOCKS = {
  address: { precision: "street" },
  choice: {
    options: [
      { label: "Red", value: "r" },
      { label: "Blue", value: "b" },
    ],
    ...{ multiple: true, allowOther: false, otherLabel: "Another", minCount: 0, maxCount: 2 },
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

/** A block of which nothing is said, as it is answered. */
const EMPTY = Object.fromEntries(
  Object.entries(BLOCKS).map(([kind, block]) => [
    kind,
    Object.fromEntries(
      Object.entries(block).map(([name, value]) => [name, Array.isArray(value) ? [] : null]),
    ),
  ]),
);

const input = (kind: string, params: object, more: object = {}) => ({
  ...{ key: kind, title: `a ${kind}`, description: "what it is", required: true, kind, params },
  ...more,
});
const item = (id: string, question: object | null, more: object = {}) => ({
  ...{
    id,
    kind: question === null ? "text" : "input",
    content: "before it",
    sectionId: null,
    input: question,
  },
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
const asked = (kind: string, params: object, more: object = {}) =>
  create({ content: { items: [item("1", input(kind, params, more))] } });
const INPUT = "content.items[0].input";

describe("a form", () => {
  it("of all sixteen kinds is read as it was written", async () => {
    const given = { uid: "all", title: "All", description: "kinds", content: EVERYTHING };
    const { status, body } = await create(given);
    expect(status).toBe(200);
    expect(body).toEqual({
      ...given,
      id: expect.stringMatching(/^form_/),
      organizationId: expect.stringMatching(/^org_/),
      ...{ blueprintId: null, versionParentId: null, createdById: accountId, updatedById: accountId },
      createdAt: expect.any(String),
      updatedAt: body.createdAt,
    });
    expect(KINDS).toHaveLength(16);
    const read = (await api.call("GET", `/forms/${body.id}`)).body;
    expect(read).toEqual(body);
    expect(JSON.stringify(read.content)).toBe(JSON.stringify(body.content));
    expect((await put(body.id, { title: "New" })).body.content).toEqual(EVERYTHING);
  });

  it("says null and [] of what was not said", async () => {
    const empty = await form();
    expect(empty).toMatchObject({ uid: empty.id, description: null, content: { items: [], sections: [] } });
    const items = KINDS.map((kind) => ({
      ...{ id: kind, kind: "input" },
      input: { key: kind, kind, params: { [kind]: {} } },
    }));
    const { content } = await form({ content: { items, sections: [{ id: "s" }] } });
    expect(content).toEqual({
      items: KINDS.map((kind) => ({
        ...{ id: kind, kind: "input", content: null, sectionId: null },
        input: {
          ...{ key: kind, title: null, description: null, required: false, kind },
          params: { [kind]: EMPTY[kind] },
        },
      })),
      sections: [{ id: "s", title: null, description: null }],
    });
  });

  it.each(KINDS)("refuses another block than %s for that kind, beside it or in its place", async (kind) => {
    for (const other of KINDS.filter((one) => one !== kind)) {
      const instead = await asked(kind, { [other]: BLOCKS[other] });
      expect([instead.status, paths(instead)]).toEqual([
        400,
        [`${INPUT}.params.${kind}`, `${INPUT}.params.${other}`],
      ]);
      const beside = await asked(kind, { [kind]: BLOCKS[kind], [other]: BLOCKS[other] });
      expect([beside.status, paths(beside)]).toEqual([400, [`${INPUT}.params.${other}`]]);
    }
    expect(paths(await asked(kind, {}))).toEqual([`${INPUT}.params.${kind}`]);
  });

  it.each(KINDS)("refuses each field of %s that is of another type, and others", async (kind) => {
    const at = `${INPUT}.params.${kind}`;
    const names = Object.keys(BLOCKS[kind]);
    for (const wrong of [{}, [{}]]) {
      const params = Object.fromEntries(names.map((name) => [name, wrong]));
      const answer = await asked(kind, { [kind]: { ...params, another: 1 } });
      expect(answer.status).toBe(400);
      expect(paths(answer).map((path) => path.replace(/\[0\](\.\w+)?$/, ""))).toEqual(
        expect.arrayContaining([...names, "another"].map((name) => `${at}.${name}`)),
      );
    }
    expect(paths(await asked(kind, { [kind]: null }))).toEqual([at]);
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
    ["date", { minDate: "2026-02-30" }, "minDate"],
    ["dateTime", { minDateTime: "2026-01-01" }, "minDateTime"],
    ["time", { minTime: "25:00" }, "minTime"],
  ])("refuses the bounds of %s %o", async (kind, block, name) => {
    const answer = await asked(kind, { [kind]: block });
    expect([answer.status, paths(answer)]).toEqual([400, [`${INPUT}.params.${kind}.${name}`]]);
  });

  it("is refused with each field that does not fit", async () => {
    const wrong = {
      uid: "a b",
      title: "",
      description: 1,
      blueprintId: 1,
      content: 1,
      versionParentId: 1,
      id: "x",
    };
    expect(paths(await create(wrong))).toEqual(Object.keys(wrong));
    const content = {
      items: [
        { id: "", kind: "video", content: 1, sectionId: 1, more: 1 },
        item("2", { key: "", title: 1, description: 1, required: 1, kind: "text", params: 1, more: 1 }),
        item("3", input("video", {})),
      ],
      sections: [{ title: 1, description: 1, more: 1 }],
      more: [],
    };
    expect(paths(await create({ content }))).toEqual([
      ...["id", "kind", "content", "sectionId", "more"].map((name) => `content.items[0].${name}`),
      ...["key", "title", "description", "required", "params", "more"].map(
        (name) => `content.items[1].input.${name}`,
      ),
      "content.items[2].input.kind",
      ...["id", "title", "description", "more"].map((name) => `content.sections[0].${name}`),
      "content.more",
    ]);
  });

  it("asks by items of kind input, and by those only", async () => {
    const text = input("text", { text: {} });
    const items = [item("1", null, { kind: "input" }), item("2", text, { kind: "heading" })];
    expect(paths(await create({ content: { items } }))).toEqual([
      "content.items[0].input",
      "content.items[1].input",
    ]);
  });

  it("has each id and each key once, and items in its own sections", async () => {
    const text = input("text", { text: {} });
    const content = {
      items: [item("1", text, { sectionId: "s1" }), item("1", null), item("3", text, { sectionId: "s3" })],
      sections: [SECTION, { id: "s2" }, SECTION],
    };
    expect(paths(await create({ content }))).toEqual([
      "content.sections[2].id",
      "content.items[1].id",
      "content.items[2].input.key",
      "content.items[2].sectionId",
    ]);
  });

  it("is changed by a merge patch, and checked after the merge", async () => {
    const { id } = await form({ description: "d", content: EVERYTHING });
    const items = [item("only", null, { sectionId: "s2" })];
    const changed = (await put(id, { description: null, content: { items } })).body;
    expect(changed).toMatchObject({ title: "Form", description: null });
    expect(changed.content).toEqual({ items, sections: EVERYTHING.sections });
    const broken = await put(id, { content: { sections: [SECTION] } });
    expect([broken.status, paths(broken)]).toEqual([400, ["content.items[0].sectionId"]]);
    expect((await api.call("GET", `/forms/${id}`)).body.content).toEqual(changed.content);
    expect(paths(await put(id, { title: null, versionParentId: id, createdById: "x" }))).toEqual([
      ...["title", "versionParentId", "createdById"],
    ]);
    expect((await put(id, { content: null })).body.content).toEqual({ items: [], sections: [] });
  });

  it("is its writer's: who made it and who changed it last", async () => {
    const { id } = await form();
    const account = (await api.call("POST", "/iam/accounts", { name: "Ada", status: "active" })).body;
    const key = await api.call("POST", "/iam/api-keys", {
      ...{ name: "k", accountId: account.id, permissions: ["forms.write"] },
    });
    await api.as(key.body.key)("PUT", `/forms/${id}`, { title: "b" });
    expect((await api.call("GET", `/forms/${id}`)).body).toMatchObject({
      ...{ createdById: accountId, updatedById: account.id },
    });
  });

  it("names a blueprint of its organization until that is deleted", async () => {
    const blueprint = (await api.call("POST", "/blueprints", { title: "b" })).body;
    const { id, blueprintId } = await form({ blueprintId: blueprint.id });
    expect(blueprintId).toBe(blueprint.id);
    const withBlueprint = (named: string) => ({ title: "x", blueprintId: named });
    await expectUnknownInside(stranger, "POST", "/forms", blueprint.id, withBlueprint);
    const theirs = (await create({}, stranger)).body;
    await expectUnknownInside(stranger, "PUT", `/forms/${theirs.id}`, blueprint.id, withBlueprint);
    const etag = (await api.call("GET", `/forms/${id}`)).headers.get("etag") ?? "";
    await api.call("DELETE", `/blueprints/${blueprint.id}`);
    expect((await api.call("GET", `/forms/${id}`, undefined, { "if-none-match": etag })).status).toBe(200);
    expect((await put(id, { title: "b" }, { "if-match": etag })).status).toBe(409);
    expect((await put(id, { title: "b" })).body).toMatchObject({ title: "b", blueprintId: null });
  });

  it("is deleted, listed in pages, and hidden from other organizations", async () => {
    const { id } = await form();
    const total = Number((await api.call("GET", "/forms")).headers.get("x-total-count"));
    const last = await api.call("GET", `/forms?limit=1&offset=${total - 1}`);
    expect([last.body.length, last.body[0].id]).toEqual([1, id]);
    await expectHidden(stranger, "/forms", id, { title: "theirs" });
    expect(
      (await stranger("GET", "/forms?limit=200")).body.map((one: { id: string }) => one.id),
    ).not.toContain(id);
    expect((await api.call("DELETE", `/forms/${id}`)).body).toEqual({ id });
    expect((await api.call("GET", `/forms/${id}`)).status).toBe(404);
  });
});

describe("a version of a form", () => {
  it("is a form of its own under the same uid", async () => {
    const first = await form({ uid: "contact", title: "1" });
    const second = await form({ versionParentId: first.id, title: "2" });
    const third = await form({ versionParentId: second.id, uid: "contact", title: "3" });
    expect([second.uid, second.versionParentId]).toEqual(["contact", first.id]);
    expect([third.uid, third.versionParentId]).toEqual(["contact", second.id]);
    expect((await put(second.id, { title: "new" })).body).toMatchObject({ title: "new", uid: "contact" });
    expect((await api.call("GET", `/forms/${first.id}`)).body).toEqual(first);
    const listed = await api.call("GET", `/forms?versionParentId=${first.id}`);
    expect([listed.body.length, listed.body[0].id, listed.headers.get("x-total-count")]).toEqual([
      1,
      second.id,
      "1",
    ]);
    expect((await stranger("GET", `/forms?versionParentId=${first.id}`)).body).toEqual([]);
  });

  it("keeps the form that it is of, and both keep their uid", async () => {
    const first = await form();
    const second = await form({ versionParentId: first.id });
    const refused = await api.call("DELETE", `/forms/${first.id}`);
    expect([refused.status, refused.body.code]).toEqual([409, "conflict"]);
    for (const { id } of [first, second]) expect((await put(id, { uid: "else" })).status).toBe(409);
    expect((await put(first.id, { uid: first.uid })).status).toBe(200);
    expect(paths(await create({ versionParentId: first.id, uid: "else" }))).toEqual(["uid"]);
    expect((await api.call("DELETE", `/forms/${second.id}`)).status).toBe(200);
    expect((await put(first.id, { uid: `${first.uid}.2` })).status).toBe(200);
    expect((await api.call("DELETE", `/forms/${first.id}`)).status).toBe(200);
  });

  it("is of a form of the same organization", async () => {
    const { id } = await form();
    await expectUnknownInside(stranger, "POST", "/forms", id, (versionParentId) => ({
      title: "theirs",
      versionParentId,
    }));
  });
});

describe("the uid of a form", () => {
  it("is one form's in its organization", async () => {
    const first = await form({ uid: "taken" });
    const second = await form();
    for (const answer of [await create({ uid: "taken" }), await put(second.id, { uid: "taken" })])
      expect([answer.status, answer.body.code]).toEqual([409, "conflict"]);
    expect((await create({ uid: "taken" }, stranger)).status).toBe(200);
    await api.call("DELETE", `/forms/${first.id}`);
    expect((await create({ uid: "taken" })).status).toBe(200);
  });

  it("is given to one of many that ask at the same time", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => create({ uid: "wanted" })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });
});
