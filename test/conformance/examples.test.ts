import { afterAll, beforeAll, expect, it } from "vitest";
import { createDocumentCheck, type DocumentCheck, type OpenApi } from "../support/documented.ts";
import { createTestStores, startTestGateway, type TestGateway, type TestStores } from "../support/gateway.ts";
import { createFixtures, type Fixtures, type Scope } from "./fixtures.ts";
import { type ApiOperation, readOperations } from "./operations.ts";
import { OPAQUE, RECIPES } from "./recipes.ts";
import type { Send } from "./requests.ts";
import { buryIn } from "./victim.ts";

let stores: TestStores;
let gateway: TestGateway;
let document: OpenApi;
let operations: readonly ApiOperation[];
let fixtures: Fixtures;
let check: DocumentCheck;
beforeAll(async () => {
  stores = await createTestStores();
  gateway = await startTestGateway(stores.env);
  document = await (await fetch(`${gateway.origin}/v1/openapi.json`)).json();
  check = createDocumentCheck(document);
  operations = readOperations(document).map((one) => ({
    ...one,
    places: one.places.filter(({ kind }) => !OPAQUE.has(kind) && !OPAQUE.has(`${one.id} ${kind}`)),
  }));
  // Bodies are the document's examples, all of them.
  fixtures = createFixtures(operations, { ids: RECIPES.ids, bodies: {} });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

const sendAs =
  (token: string): Send =>
  async ({ method, path, headers, body }) => {
    const stopping = new AbortController();
    const response = await fetch(`${gateway.origin}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      body: body === undefined ? null : JSON.stringify(body),
      signal: stopping.signal,
      redirect: "manual",
    });
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    const text = isStream ? "" : await response.text();
    stopping.abort();
    return { status: response.status, headers: response.headers, text };
  };

/** An organization in which nothing was made yet. */
async function newScope(): Promise<Scope> {
  const { id, apiKey } = await gateway.api<OpenApi>("POST", "/organizations", { name: "New" });
  return fixtures.open({
    organizationId: id,
    rename: false,
    send: sendAs(apiKey.key),
    deliver: async (channelId, body) => (await deliver(channelId, body)).json(),
    bury: (subscriptionId) => buryIn(stores.db, subscriptionId),
  });
}

const deliver = (channelId: string, body: unknown): Promise<Response> =>
  fetch(`${gateway.origin}/hooks/${channelId}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** What has to have happened before an operation may succeed, where its ids do not tell. */
const BEFORE: Readonly<Record<string, (scope: Scope) => Promise<unknown>>> = {
  approveArtifact: on("artifactId", (id) => `/stores/artifacts/${id}/reject`),
  refundOrder: on("orderId", (id) => `/stores/orders/${id}/pay`),
  endTask: on("taskId", (id) => `/tasks/${id}/start`),
  cancelTask: on("taskId", (id) => `/tasks/${id}/start`),
  assignPhoneNumber: async (scope) => {
    const phoneNumberId = await scope.idOf("phoneNumberId");
    return scope.call("POST", "/telephony/phone-numbers/unassign", { phoneNumberId });
  },
  // An account is a member of the organization that makes it.
  createMembership: async (scope) =>
    scope.call("DELETE", `/iam/memberships/${await scope.idOf("membershipId")}`),
};

function on(kind: string, path: (id: string) => string) {
  return async (scope: Scope) => scope.call("POST", path(await scope.idOf(kind)), {});
}

/** What the document does not know: who was sent away to sign in, with which `state`. */
const NOT_TRIED = new Set(["finishConnectionAuthorization"]);

it("every example of a request works in an organization that holds only what its ids name", async () => {
  const findings: string[] = [];
  let tried = 0;
  for (const operation of operations.filter(({ id }) => !NOT_TRIED.has(id))) {
    tried++;
    await tryExample(operation).catch((error: Error) => findings.push(`${operation.id}: ${error.message}`));
  }
  expect(findings).toEqual([]);
  expect(tried).toBeGreaterThan(200);
});

async function tryExample(operation: ApiOperation): Promise<void> {
  const scope = await newScope();
  await BEFORE[operation.id]?.(scope);
  const request = await fixtures.request(scope, operation);
  const url = new URL(request.path, "http://gateway");
  for (const { in: where, name, schema, example } of operation.parameters) {
    const value = example ?? schema.examples?.[0];
    if (where === "query" && value !== undefined) url.searchParams.set(name, String(value));
  }
  const { status, headers, text } = await scope.send({ ...request, path: url.pathname + url.search });
  if (status !== 200) throw new Error(`${JSON.stringify(request)}: ${status} ${text}`);
  const finding = check({ method: request.method, path: url.pathname, status, headers, text });
  if (finding !== undefined) throw new Error(finding);
}

it("the example of a delivery works at the address of a channel that was made by an example", async () => {
  const scope = await newScope();
  const media = document.paths["/hooks/{channelId}"].post.requestBody.content["application/json"];
  const response = await deliver(await scope.idOf("channelId"), media.example);
  expect(response.headers.has("x-request-id")).toBe(true);
  expect([response.status, await response.json()]).toMatchObject([200, { received: 1, published: 1 }]);
});

it("what is documented outside the version answers as it says", async () => {
  for (const path of ["/healthz", "/readyz", "/metrics", "/docs"]) {
    const { responses } = document.paths[path].get;
    const response = await fetch(gateway.origin + path);
    const [mediaType = ""] = (response.headers.get("content-type") ?? "").split(";");
    expect([path, response.status]).toEqual([path, 200]);
    expect(Object.keys(responses["200"].content)).toContain(mediaType);
    expect(response.headers.has("x-request-id")).toBe(true);
    const { status, headers } = await fetch(gateway.origin + path, { method: "POST" });
    expect(responses).toHaveProperty(String(status));
    expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    await response.body?.cancel();
  }
});
