import { afterAll, beforeAll, expect, it } from "vitest";
import { createApiKey } from "../../src/data/api-keys.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { BODY_FORMS, type BodyForm, createFixtures, type Fixtures, type Scope } from "./fixtures.ts";
import { type ApiOperation, type IdPlace, pathNames, readOperations } from "./operations.ts";
import { OPAQUE, RECIPES } from "./recipes.ts";
import { type Answered, type ApiRequest, type Send, sendTo, visible } from "./requests.ts";
import { buryIn, idsIn, keptOf, strangersTo } from "./victim.ts";

let spine: TestSpine;
let send: Send;
let all: readonly ApiOperation[];
let operations: readonly ApiOperation[];
let fixtures: Fixtures;
/** Whose ids the others try; nothing is ever changed in it once it is made. */
let ours: Scope;
let theirs: Scope;
let ourToken: string;
let theirToken: string;
/** What every answer to somebody else than its owner is searched for. */
let ourIds: ReadonlySet<string>;
const counts = { requests: 0, comparisons: 0, leaks: 0 };

const as =
  (token: string | undefined): Send =>
  (request) => {
    counts.requests++;
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return send({ ...request, headers: { ...authorization, ...request.headers } });
  };

async function keyOf(permissions: readonly string[], extra: { readonly expiresAt?: Date } = {}) {
  const owner = await spine.api.database.db
    .selectFrom("apiKeys")
    .select(["organizationId", "spaceId", "accountId"])
    .orderBy("createdAt")
    .executeTakeFirstOrThrow();
  const grant = { ...owner, name: "test", permissions, ...extra };
  return { ...owner, ...(await createApiKey(spine.api.database.db, grant, Date.now())) };
}

const scopeOf = (token: string, organizationId: string, rename: boolean): Scope =>
  fixtures.open({
    ...{ organizationId, rename, send: as(token), deliver: spine.send },
    bury: (subscriptionId) => buryIn(spine, subscriptionId),
  });

/** An organization of its own, for what changes or deletes. */
async function newScope(): Promise<Scope> {
  const { id, apiKey } = await ours.call("POST", "/organizations", { name: "New" });
  return scopeOf(apiKey.key, id, true);
}

beforeAll(async () => {
  spine = await startTestSpine();
  send = sendTo(spine.api.app);
  const document = await (await spine.api.app.request("/v1/openapi.json")).json();
  all = readOperations(document);
  operations = all
    .filter(({ isPublic }) => !isPublic)
    .map((one) => ({
      ...one,
      places: one.places.filter(({ kind }) => !OPAQUE.has(kind) && !OPAQUE.has(`${one.id} ${kind}`)),
    }));
  fixtures = createFixtures(operations, RECIPES);
  const home = await keyOf(["*"]);
  ourToken = home.token;
  theirToken = await spine.api.strangerKey();
  const { db } = spine.api.database;
  const other = await db.selectFrom("organizations").select("id").where("name", "=", "other").execute();
  ours = scopeOf(ourToken, home.organizationId, false);
  theirs = scopeOf(theirToken, other[0]?.id ?? "", false);
});
afterAll(async () => {
  console.log(
    `leaks: ${operations.length} operations and ${all.length - operations.length} public ones, ` +
      `${counts.requests} requests, ${counts.comparisons} comparisons, ${counts.leaks} leaks`,
  );
  await spine[Symbol.asyncDispose]();
});

const kinds = (): readonly string[] => [
  ...new Set(operations.flatMap(({ places }) => places.map(({ kind }) => kind))),
];
const where = ({ method, path }: ApiOperation, place?: IdPlace): string =>
  `${method} ${path}${place ? ` ${place.where} ${place.steps.join(".")}` : ""}`;
const show = ({ status, text }: Answered): string => `${status} ${text.slice(0, 300)}`;

it("makes one of everything that the document names, twice under the same names", async () => {
  // Whatever is unique is so within an organization: the second one's must not meet the first one's.
  for (const scope of [ours, theirs]) for (const kind of kinds()) await scope.idOf(kind);
  const known = await Promise.all(kinds().map((kind) => ours.idOf(kind)));
  ourIds = new Set(
    [...known, ...ours.answers.flatMap(idsIn)].filter((id) => !theirs.answers.join().includes(id)),
  );
  expect(ourIds.size).toBeGreaterThan(kinds().length / 2);
  expect(all.filter(({ isPublic, places }) => isPublic && places.length > 0)).toEqual([]);
  const documented = new Set(all.flatMap(({ path }) => pathNames(path)));
  expect([...OPAQUE].filter((kind) => documented.has(kind))).toEqual([]);
});

function isUnfit({ status, text }: Answered, { steps }: IdPlace): boolean {
  const { details = [] } = status === 400 ? JSON.parse(text) : {};
  return details.length === 1 && details[0].path === steps.join(".");
}

/** How each place of a body is filled so that the owner's own ids are accepted. */
const accepted = new Map<IdPlace, BodyForm>();

it("takes its owner's own ids at every place of every operation", async () => {
  const findings: string[] = [];
  for (const operation of operations) {
    const bodyPlaces = operation.places.filter((place) => place.where !== "path");
    for (const place of [undefined, ...bodyPlaces]) {
      const tried: string[] = [];
      for (const form of place?.where === "body" ? BODY_FORMS : (["example"] as const)) {
        const scope = await newScope();
        const given = new Map(place ? [[place, await scope.idOf(place.kind)]] : []);
        const request = await fixtures.request(scope, operation, { given, form });
        const answer = await fixtures.sendRenamed(scope, request);
        // A conflict comes after all that is named was found, and so does that what was found does not fit.
        if (answer.status === 200 || (place && (answer.status === 409 || isUnfit(answer, place)))) {
          if (place) accepted.set(place, form);
          tried.length = 0;
          break;
        }
        tried.push(`${JSON.stringify(request.body)} → ${show(answer)}`);
      }
      if (tried.length > 0) findings.push(`${where(operation, place)}: ${tried.join(" | ")}`);
    }
  }
  expect(findings).toEqual([]);
});

/** The same request with the ids of each kind wherever it names something. */
async function everyId(operation: ApiOperation): Promise<Readonly<Record<string, ApiRequest>>> {
  const key = spine.api.keyring.channelIdKey;
  const withIds = async (idOf: (place: IdPlace) => Promise<string>) => {
    const places = operation.places.filter(({ where: at }) => at === "path");
    const given = new Map<IdPlace, string>();
    for (const place of places) given.set(place, await idOf(place));
    return fixtures.request(ours, operation, { given });
  };
  return {
    own: await withIds(({ kind }) => ours.idOf(kind)),
    other: await withIds(({ kind }) => theirs.idOf(kind)),
    random: await withIds(async ({ kind }) => strangersTo(await ours.idOf(kind), key)[0] ?? ""),
    malformed: await withIds(async () => "nope"),
  };
}

/** One of ours, with the token that its guest has. */
async function liveConversation() {
  const body = { roomId: await ours.idOf("roomId"), message: "Hello" };
  const { id, liveToken, messages } = await ours.call("POST", "/conversations/CreateLiveConversation", body);
  return { id, token: liveToken as string, messageId: messages[0].id };
}

it("answers 401 or 403 alike whatever is named, and changes nothing", async () => {
  const { db } = spine.api.database;
  const revoked = await keyOf(["*"]);
  const exchanged = await as(revoked.token)({ method: "POST", path: "/auth/tokens", body: {} });
  const ofRevoked: string = JSON.parse(exchanged.text).accessToken;
  const [live, ended] = [await liveConversation(), await liveConversation()];
  await ours.call("POST", `/conversations/${ended.id}/end`, {});
  await db.updateTable("apiKeys").set({ revokedAt: new Date() }).where("id", "=", revoked.id).execute();
  const strangers: Readonly<Record<string, string | undefined>> = {
    "no token": undefined,
    garbage: "garbage",
    "a key that nobody has": `ik_${"0".repeat(40)}`,
    "a token that nobody has signed": `${ofRevoked.slice(0, -4)}AAAA`,
    "an expired key": (await keyOf(["*"], { expiresAt: new Date(Date.now() - 1_000) })).token,
    "a revoked key": revoked.token,
    "a revoked key's access token": ofRevoked,
    "an ended conversation's live token": ended.token,
  };
  const names = [
    ...new Set(operations.map(({ permission }) => permission).filter((name) => name !== undefined)),
  ];
  const without = new Map<string, string>();
  for (const name of names) {
    const others = names.filter((one) => one !== name);
    without.set(name, (await keyOf(others)).token);
  }
  const prepared: [ApiOperation, [string, ApiRequest][]][] = [];
  for (const operation of operations) prepared.push([operation, Object.entries(await everyId(operation))]);
  const before = await keptOf(spine, ours.organizationId);
  const findings: string[] = [];
  for (const [operation, requests] of prepared) {
    const check = async (who: string, token: string | undefined, status: number): Promise<void> => {
      let first: string | undefined;
      for (const [ids, request] of requests) {
        const answer = await as(token)(request);
        const seen = JSON.stringify(visible(answer));
        first ??= seen;
        counts.comparisons++;
        if (answer.status !== status || seen !== first)
          findings.push(`${where(operation)} by ${who} with ${ids} ids: ${show(answer)}`);
      }
    };
    for (const [who, token] of Object.entries(strangers)) await check(who, token, 401);
    if (operation.confined === undefined) await check("a live token", live.token, 403);
    if (operation.permission) await check("a key without it", without.get(operation.permission), 403);
  }
  expect(findings).toEqual([]);
  expect(await keptOf(spine, ours.organizationId)).toEqual(before);
});

/** What is compared beside the plain request: no check of what is sent may come after a look at what is not the caller's. */
const twists: Readonly<Record<string, (request: ApiRequest) => ApiRequest>> = {
  plain: (request) => request,
  "a body that does not fit": (request) =>
    request.body === undefined
      ? request
      : { ...request, body: { ...Object(request.body), "no such field": 1 } },
  "If-Match": (request) => ({ ...request, headers: { "if-match": '"another"' } }),
  "Idempotency-Key": (request) => ({ ...request, headers: { "idempotency-key": "the same for all" } }),
  "X-Organization-Id": (request) => ({ ...request, headers: { "x-organization-id": ours.organizationId } }),
};

it("answers another organization's ids exactly as random ones, and changes nothing of it", async () => {
  const key = spine.api.keyring.channelIdKey;
  const before = await keptOf(spine, ours.organizationId);
  const findings: string[] = [];

  /** Each set of places is given ours, then ids of nobody; all else is the caller's own. */
  async function compare(operation: ApiOperation, places: readonly IdPlace[]): Promise<void> {
    const form = places.map((place) => accepted.get(place)).find((one) => one !== undefined) ?? "example";
    const foreign = new Map<IdPlace, string>();
    const random = [0, 1].map(() => new Map<IdPlace, string>());
    const malformed = new Map<IdPlace, string>();
    for (const place of places) {
      const id = await ours.idOf(place.kind);
      const [one = "", two = one] = strangersTo(id, key);
      foreign.set(place, id);
      random[0]?.set(place, one);
      random[1]?.set(place, two);
      malformed.set(place, "nope");
    }
    for (const [twist, twisted] of Object.entries(twists)) {
      const ask = async (given: ReadonlyMap<IdPlace, string>): Promise<Answered> => {
        const answer = await as(theirToken)(
          twisted(await fixtures.request(theirs, operation, { given, form })),
        );
        if (answer.status >= 500) findings.push(`${where(operation, places[0])}, ${twist}: ${show(answer)}`);
        const told = idsIn(`${answer.text} ${[...answer.headers.values()].join(" ")}`);
        for (const id of told.filter((one) => ourIds.has(one)))
          findings.push(`${where(operation, places[0])}, ${twist}: tells of ${id}`);
        return answer;
      };
      const seen = await ask(foreign);
      for (const given of random) {
        const other = await ask(given);
        counts.comparisons++;
        if (JSON.stringify(visible(seen)) !== JSON.stringify(visible(other))) {
          findings.push(`${where(operation, places[0])}, ${twist}: ${show(seen)}, random: ${show(other)}`);
        }
      }
      await ask(malformed);
      const [place] = places;
      const expected = place?.where === "query" ? [200, 404] : [404];
      if (twist === "plain" && !expected.includes(seen.status))
        findings.push(`${where(operation, place)}: ${show(seen)}`);
    }
  }

  for (const operation of operations) {
    for (const place of operation.places) await compare(operation, [place]);
    const inPath = operation.places.filter(({ where: at }) => at === "path");
    if (inPath.length > 1) await compare(operation, inPath);
  }
  counts.leaks = findings.length;
  expect(findings).toEqual([]);
  expect(await keptOf(spine, ours.organizationId)).toEqual(before);
});

it("opens one conversation to its live token, and no other, be it of the same organization", async () => {
  const live = await liveConversation();
  const guest = as(live.token);
  const open = operations.filter(({ confined }) => confined === "conversationId");
  const findings: string[] = [];
  for (const operation of open) {
    const { own, ...others } = await everyId(operation);
    if (own === undefined) throw new Error("there are no ids");
    const seen = visible(await guest(own));
    if (seen.status !== 404) findings.push(`${where(operation)}: ${seen.status}`);
    for (const [ids, request] of Object.entries(others)) {
      const answer = await guest(request);
      counts.comparisons++;
      if (JSON.stringify(visible(answer)) !== JSON.stringify(seen))
        findings.push(`${where(operation)} with ${ids} ids: ${show(answer)}`);
    }
    const path = own.path
      .replace(await ours.idOf("conversationId"), live.id)
      .replace(await ours.idOf("conversationMessageId"), live.messageId);
    const answer = await guest({ ...own, path });
    if (answer.status !== 200) findings.push(`${where(operation)}: ${show(answer)}`);
  }
  expect(findings).toEqual([]);
  expect(open.length).toBeGreaterThan(0);
});

it("lists and counts nothing of another organization", async () => {
  const findings: string[] = [];
  for (const operation of operations.filter(({ isList }) => isList)) {
    const request = await fixtures.request(theirs, operation);
    const paged =
      operation.method === "GET"
        ? { ...request, path: `${request.path}?limit=200` }
        : { ...request, body: { pagination: { limit: 200 } } };
    const answer = await as(theirToken)(paged);
    const told = idsIn(answer.text).filter((id) => ourIds.has(id));
    const count = answer.status === 200 ? JSON.parse(answer.text).length : -1;
    counts.comparisons++;
    if (told.length > 0 || String(count) !== answer.headers.get("x-total-count"))
      findings.push(`${where(operation)}: ${told} ${show(answer)}`);
  }
  expect(findings).toEqual([]);
});

it("never answers one organization's Idempotency-Key to another", async () => {
  const findings: string[] = [];
  for (const operation of operations.filter(({ creates }) => creates)) {
    const headers = { "idempotency-key": `one for ${operation.id}` };
    const scopes = [await newScope(), await newScope()];
    const texts: string[] = [];
    for (const scope of scopes) {
      const request = { ...(await fixtures.request(scope, operation)), headers };
      const answer = await scope.send(request);
      texts.push(answer.text);
    }
    const [first = "", second = ""] = texts;
    const shared = idsIn(first).filter((id) => second.includes(id));
    counts.comparisons++;
    if (shared.length > 0) findings.push(`${where(operation)}: ${second}`);
  }
  expect(findings).toEqual([]);
});
