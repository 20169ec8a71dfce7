import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { BODY_FORMS, type BodyForm, createFixtures, type Fixtures, type Scope } from "./fixtures.ts";
import { type ApiOperation, type IdPlace, readOperations } from "./operations.ts";
import { OPAQUE, OPEN_TO_ALL, OPEN_TO_BUYER, RECIPES } from "./recipes.ts";
import { type Answered, sendTo, visible } from "./requests.ts";
import { createPlant, idsIn, keptOf, listForeignIds } from "./victim.ts";

/** The exceptions to the leak matrix: the entities that a public store opens, and the two sides of an order. */
let spine: TestSpine;
let operations: readonly ApiOperation[];
let fixtures: Fixtures;
/** Has a public store with one entity of each kind. */
let seller: Scope;
let open: ReadonlyMap<string, string>;
const counts = { comparisons: 0, openings: 0 };

async function newScope(): Promise<Scope> {
  const { body } = await spine.api.call("POST", "/organizations", { name: "New" });
  const send = sendTo(spine.api.app);
  const authorization = `Bearer ${body.apiKey.key}`;
  return fixtures.open({
    organizationId: body.id,
    rename: true,
    deliver: spine.send,
    plant: createPlant(spine.api.database.db, body.id, () => spine.api.keyring),
    send: (request) => send({ ...request, headers: { authorization, ...request.headers } }),
  });
}

const KINDS = ["storeId", "categoryId", "artifactId", "pricingPlanId", "reviewId"];

beforeAll(async () => {
  spine = await startTestSpine();
  const document = await (await spine.api.app.request("/v1/openapi.json")).json();
  operations = readOperations(document)
    .filter(({ isPublic }) => !isPublic)
    .map((one) => ({
      ...one,
      places: one.places.filter(({ kind }) => !OPAQUE.has(kind) && !OPAQUE.has(`${one.id} ${kind}`)),
    }));
  fixtures = createFixtures(operations, RECIPES);
  seller = await newScope();
  open = new Map(await Promise.all(KINDS.map(async (kind) => [kind, await seller.idOf(kind)] as const)));
  const id = open.get("storeId");
  await seller.call("PUT", `/stores/${id}`, { id, isPublic: true });
  const categoryId = open.get("categoryId");
  await seller.call("PUT", `/stores/artifacts/${open.get("artifactId")}`, { categoryId });
});
afterAll(async () => {
  console.log(`openings: ${counts.openings} of ${counts.comparisons} comparisons`);
  await spine[Symbol.asyncDispose]();
});

const random = (id: string): string => listForeignIds(id, spine.api.keyring.channelIdKey)[0] ?? "";
const where = ({ id }: ApiOperation, places: readonly IdPlace[]): string =>
  `${id} ${places.map(({ kind }) => kind).join(" ")}`;

/** Sends the same request with ids of the seller and with random ids. */
async function sendBoth(
  caller: Scope,
  operation: ApiOperation,
  given: ReadonlyMap<IdPlace, string>,
  form: BodyForm = "example",
): Promise<readonly [Answered, Answered]> {
  const unknownIds = new Map([...given].map(([place, id]) => [place, random(id)]));
  const foreign = await caller.send(await fixtures.request(caller, operation, { given, form }));
  const unknown = await caller.send(await fixtures.request(caller, operation, { given: unknownIds, form }));
  counts.comparisons++;
  return [foreign, unknown];
}

const isSame = (one: Answered, other: Answered): boolean =>
  JSON.stringify(visible(one)) === JSON.stringify(visible(other));

it("a public store reveals only the store with its own categories, artifacts and reviews to other organizations", async () => {
  const artifact = await seller.call("GET", `/stores/artifacts/${open.get("artifactId")}`);
  const review = await seller.call("GET", `/stores/reviews/${open.get("reviewId")}`);
  /** The ids that the open entities contain. */
  const named = [...open.values(), seller.organizationId, artifact.blueprintId, review.reviewerId];
  const sellersIds = new Set(seller.answers.flatMap(idsIn).concat(seller.organizationId));
  const opened = new Map<string, Set<string>>();
  const findings: string[] = [];
  let caller = await newScope();
  for (const operation of operations) {
    const ofStore = operation.places.filter(({ kind }) => open.has(kind));
    const sets = [...ofStore.map((place) => [place]), ofStore.filter((place) => place.where === "path")];
    const forms = operation.bodySchema ? BODY_FORMS : (["example"] as const);
    const tries = sets.flatMap((places) => forms.map((form) => [places, form] as const));
    for (const [places, form] of tries.filter(([{ length }]) => length > 0)) {
      const given = new Map(places.map((place) => [place, open.get(place.kind) ?? ""]));
      const [foreign, unknown] = await sendBoth(caller, operation, given, form);
      const leaked = idsIn(foreign.text).filter((id) => sellersIds.has(id) && !named.includes(id));
      if (leaked.length > 0 || foreign.status >= 500)
        findings.push(`${where(operation, places)}: ${foreign.status} leaks ${leaked}`);
      // The effect of one request must not be visible to the next one.
      const hasChanged = [foreign, unknown].some(({ status }) => status < 300);
      if (hasChanged && operation.method !== "GET") caller = await newScope();
      if (isSame(foreign, unknown)) continue;
      counts.openings++;
      const known = opened.get(operation.id) ?? new Set<string>();
      for (const { kind } of places) known.add(kind);
      opened.set(operation.id, known);
    }
  }
  expect(findings).toEqual([]);
  const sorted = (all: Iterable<readonly [string, Iterable<string>]>) =>
    Object.fromEntries([...all].map(([id, kinds]) => [id, [...kinds].sort()] as const).sort());
  expect(sorted(opened)).toEqual(sorted(Object.entries(OPEN_TO_ALL)));
});

it("an order is visible only to its buyer and its seller, and the buyer cannot use operations reserved for the seller", async () => {
  const buyer = await newScope();
  const outsider = await newScope();
  const findings: string[] = [];
  const seen: Record<string, number> = {};
  for (const operation of operations.filter(({ places }) => places.some(({ kind }) => kind === "orderId"))) {
    const { id } = await buyer.call("POST", "/stores/orders", {
      artifactId: open.get("artifactId"),
      pricingPlanId: open.get("pricingPlanId"),
    });
    const given = new Map(
      operation.places.filter(({ kind }) => kind === "orderId").map((place) => [place, id]),
    );
    const before = await keptOf(spine, seller.organizationId);
    const [foreign, unknown] = await sendBoth(outsider, operation, given);
    if (!isSame(foreign, unknown) || foreign.status !== 404)
      findings.push(`${operation.id}: ${foreign.status} ${foreign.text}`);
    expect(await keptOf(spine, seller.organizationId)).toEqual(before);
    const [own, random] = await sendBoth(buyer, operation, given);
    seen[operation.id] = own.status;
    if (random.status !== 404) findings.push(`${operation.id} with a random id: ${random.status}`);
  }
  expect(findings).toEqual([]);
  expect(seen).toEqual(OPEN_TO_BUYER);
});

it("lists omit public entities of other organizations, unless a filter asks for public ones", async () => {
  const outsider = await newScope();
  const ids = new Set(open.values());
  for (const path of [
    "/stores",
    "/stores/categories",
    "/stores/artifacts",
    "/stores/reviews",
    "/stores/orders",
  ]) {
    const { body, total } = await list(outsider, path);
    expect([path, total, idsIn(body).filter((id) => ids.has(id))]).toEqual([path, "0", []]);
  }
  expect((await list(outsider, "/stores?isPublic=true")).body).toContain(open.get("storeId"));
});

async function list(scope: Scope, path: string) {
  const { text, headers } = await scope.send({ method: "GET", path });
  return { body: text, total: headers.get("x-total-count") };
}
