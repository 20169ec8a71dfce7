import { expect, it } from "vitest";
import { readAll } from "../conformance/read-all.ts";
import type { OpenApi } from "../support/documented.ts";
import { opened } from "../support/opened.ts";
import { startTestSpine } from "../support/spine.ts";

const spine = opened(startTestSpine);

/** Creates entities with data in every list and map that the API can return. */
async function fill(): Promise<void> {
  const { post, get } = spine.api.call;
  const account = await post("/iam/accounts", { name: "Ada" });
  const role = await post("/iam/roles", { name: "reader", permissions: ["apps.read"] });
  const [own] = await get("/iam/memberships?limit=200");
  await post("/iam/identities", { accountId: account.id, identifier: "ada" });
  const membership = (await get("/iam/memberships?limit=200")).find(
    ({ accountId }: { accountId: string }) => accountId === account.id,
  );
  await spine.api.call.put(`/iam/memberships/${membership.id}`, {
    permissions: ["apps.read"],
    roleIds: [role.id],
  });
  await post("/iam/groups", { name: "support", members: [account.id, own?.accountId ?? account.id] });
  await post("/iam/api-keys", { name: "key", permissions: ["apps.read"], roleIds: [role.id] });

  const knowledgeBase = await post("/knowledge-bases", { name: "book", metadata: { a: 1 } });
  await post("/agents", {
    name: "agent",
    identifier: "agent",
    knowledgeBaseId: knowledgeBase.id,
    querySuggestions: [{ content: "Hello?" }],
    toolIds: ["tool"],
  });
  const room = await post("/rooms", { title: "room" });
  const joining = { accountId: account.id, agentIdentifier: "agent", autoJoin: true };
  await post(`/rooms/${room.id}/participants`, joining);
  const attachments = [{ name: "a.txt", metadata: [1], payload: [2] }];
  await post(`/rooms/${room.id}/messages`, { content: "hello", attachments });
  const conversation = await post("/conversations", { roomId: room.id });
  await post(`/conversations/${conversation.id}/messages`, { content: "hello", attachments });

  const parent = await post("/tasks", { title: "parent", params: { a: 1 } });
  const child = await post("/tasks", { title: "child", parentId: parent.id, params: { b: 1 } });
  const grandchild = await post("/tasks", { title: "grandchild", parentId: child.id });
  await post(`/tasks/${grandchild.id}/start`);
  await post(`/tasks/${grandchild.id}/end`, { errors: [{ code: "timeout", message: "late" }] });

  const collection = await post("/collections", { name: "customers" });
  await post(`/collections/${collection.id}/fields`, { name: "size", kind: "choice", options: ["s", "m"] });
  await post(`/collections/${collection.id}/records`, { values: { size: "s" } });
  const state = await post("/states", { name: "state" });
  await post(`/states/${state.id}/variables`, [
    { name: "v", groupIds: ["g"], tags: ["t"], schema: { a: 1 } },
  ]);
  const input = { key: "name", kind: "text", params: { text: {} } };
  await post("/forms", {
    title: "form",
    content: { items: [{ id: "1", kind: "input", sectionId: "s", input }], sections: [{ id: "s" }] },
  });

  const app = await spine.install({
    uid: "main",
    kind: "webhook",
    config: {},
    events: [{ type: "push", idPath: "$.id" }],
  });
  await post(`/apps/${app.id}/events/subscribe`, { eventUid: "main:push" });
  await spine.send(app.channels[0].id, { id: "1" });
  await spine.send(app.channels[0].id, { other: "1" });
  const store = await post("/stores", { name: "store", isPublic: true });
  const { blueprintId } = app;
  const artifact = await post("/stores/artifacts", {
    kind: "blueprint",
    title: "artifact",
    storeId: store.id,
    blueprintId,
  });
  await post(`/stores/artifacts/${artifact.id}/pricing-plans`, { name: "a", price: "1", currency: "EUR" });
}

const ID = /^[a-z]+_[0-9a-hjkmnp-tv-z]{23}$/;

/** Size of a list or map, by path of the response, for each entity and field. */
type Seen = Map<string, Map<string, number>>;

/** Notes the size of each list and map of each entity in the response, at any depth. */
function note(value: unknown, path: string, seen: Seen): void {
  if (typeof value !== "object" || value === null) return;
  const { id } = value as { readonly id?: unknown };
  for (const [name, field] of Object.entries(value)) {
    const place = Array.isArray(value) ? `${path}[]` : `${path}.${name}`;
    if (typeof id === "string" && ID.test(id) && typeof field === "object" && field !== null) {
      const key = `${id} ${name}`;
      const sizes = seen.get(key) ?? new Map<string, number>();
      seen.set(key, sizes.set(place, Object.keys(field).length));
    }
    note(field, place, seen);
  }
}

it("every list and nested entity of the API shows no empty list or map for data that exists", async () => {
  await fill();
  const seen: Seen = new Map();
  const document: OpenApi = await spine.api.call.get("/openapi.json");
  const read = await readAll(document, async (path) => {
    const { status, body } = await spine.api.call("GET", path);
    if (status !== 200) return undefined;
    if (path !== "/openapi.json") note(body, path, seen);
    return body;
  });
  expect(read.seen.size).toBeGreaterThan(60);
  const filled = [...seen].filter(([, sizes]) => [...sizes.values()].some((size) => size > 0));
  // Without such data, the test would compare nothing.
  const fields = new Set(filled.map(([key]) => key.split(" ")[1]));
  expect([...fields]).toEqual(
    expect.arrayContaining(["children", "members", "messages", "participants", "permissions", "attachments"]),
  );
  const empty = filled.flatMap(([key, sizes]) =>
    [...sizes].filter(([, size]) => size === 0).map(([place]) => `${place} (${key})`),
  );
  expect(empty).toEqual([]);
});
