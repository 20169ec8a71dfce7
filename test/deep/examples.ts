import { openKeyring } from "../../src/data/keyring/keyring.ts";
import { createFixtures, type Scope } from "../conformance/fixtures.ts";
import { OPERATOR_ONLY } from "../conformance/leaks.ts";
import { type ApiOperation, readOperations } from "../conformance/operations.ts";
import { OPAQUE, RECIPES } from "../conformance/recipes.ts";
import type { Send } from "../conformance/requests.ts";
import { createPlant } from "../conformance/victim.ts";
import { createDocumentCheck, type OpenApi } from "../support/documented.ts";
import { createTestStores, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { API_KEY } from "../support/gateway-process.ts";

/** A gateway for trying the examples of its OpenAPI document. */
export interface ExampleRig extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly document: OpenApi;
  /** The operations whose examples can be tried, deletions last. */
  readonly operations: readonly ApiOperation[];
  /** Creates an empty organization. */
  readonly newScope: () => Promise<Scope>;
  /** @throws Error when the example is rejected or the response is not as documented. */
  readonly tryExample: (operation: ApiOperation, scope: Scope) => Promise<void>;
  readonly deliver: (channelId: string, body: unknown) => Promise<Response>;
}

export async function openExamples(): Promise<ExampleRig> {
  await using opening = new AsyncDisposableStack();
  const stores = opening.use(await createTestStores());
  const gateway = opening.use(
    await startTestGateway({ ...stores.env, INLET_HOOKS_URL: "https://hooks.example.com" }),
  );
  const document: OpenApi = await (await fetch(`${gateway.origin}/v1/openapi.json`)).json();
  const check = createDocumentCheck(document);
  const operations = readOperations(document).map((one) => ({
    ...one,
    places: one.places.filter(({ kind }) => !OPAQUE.has(kind) && !OPAQUE.has(`${one.id} ${kind}`)),
  }));
  // All bodies are the document's examples.
  const fixtures = createFixtures(operations, { ids: RECIPES.ids, bodies: {} });

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
  const deliver: ExampleRig["deliver"] = (channelId, body) =>
    fetch(`${gateway.origin}/hooks/${channelId}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  // Deletes parts before the objects that contain them.
  const rank = ({ method, path }: ApiOperation): number =>
    method === "DELETE" ? 1_000 - path.length : method === "POST" ? -1 : 0;

  const owned = opening.move();
  return {
    gateway,
    document,
    deliver,
    operations: operations.filter(({ id }) => !NOT_TRIED.has(id)).sort((a, b) => rank(a) - rank(b)),
    async newScope() {
      const { id, apiKey } = await gateway.api<OpenApi>("POST", "/organizations", { name: "New" });
      return fixtures.open({
        organizationId: id,
        rename: false,
        send: sendAs(apiKey.key),
        deliver: async (channelId, body) => (await deliver(channelId, body)).json(),
        plant: createPlant(stores.db, id, () =>
          openKeyring({
            db: stores.db,
            masterKey: Buffer.from(stores.env.INLET_MASTER_KEY ?? "", "base64"),
            clock: Date.now,
          }),
        ),
      });
    },
    async tryExample(operation, scope) {
      await BEFORE[operation.id]?.(scope);
      const request = await fixtures.request(scope, operation);
      const url = new URL(request.path, "http://gateway");
      for (const { in: where, name, schema, example } of operation.parameters) {
        const value = example ?? schema.examples?.[0];
        if (where === "query" && value !== undefined) url.searchParams.set(name, String(value));
      }
      const send = OPERATOR_ONLY.has(operation.id) ? sendAs(API_KEY) : scope.send;
      const { status, headers, text } = await send({ ...request, path: url.pathname + url.search });
      if (status !== 200) throw new Error(`${JSON.stringify(request)}: ${status} ${text}`);
      const finding = check({ method: request.method, path: url.pathname, status, headers, text });
      if (finding !== undefined) throw new Error(finding);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Calls needed before an operation can succeed, beyond creating the entities that its ids name. */
const BEFORE: Readonly<Record<string, (scope: Scope) => Promise<unknown>>> = {
  approveArtifact: on("artifactId", (id) => `/stores/artifacts/${id}/reject`),
  refundOrder: on("orderId", (id) => `/stores/orders/${id}/pay`),
  endTask: on("taskId", (id) => `/tasks/${id}/start`),
  cancelTask: on("taskId", (id) => `/tasks/${id}/start`),
  assignPhoneNumber: async (scope) => {
    const phoneNumberId = await scope.idOf("phoneNumberId");
    return scope.call("POST", "/telephony/phone-numbers/unassign", { phoneNumberId });
  },
  // The creator of an organization is already a member, so the membership is deleted first.
  createMembership: async (scope) =>
    scope.call("DELETE", `/iam/memberships/${await scope.idOf("membershipId")}`),
};

function on(kind: string, path: (id: string) => string) {
  return async (scope: Scope) => scope.call("POST", path(await scope.idOf(kind)), {});
}

/** Operations that need data outside the document: here the `state` of a started sign-in. */
const NOT_TRIED = new Set(["finishConnectionAuthorization"]);
