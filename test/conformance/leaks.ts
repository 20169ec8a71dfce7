import { createHash, randomUUID } from "node:crypto";
import { createApiKey } from "../../src/data/accounts/api-keys.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { BODY_FORMS, type BodyForm, createFixtures, type Fixtures, type Scope } from "./fixtures.ts";
import { type ApiOperation, type IdPlace, readOperations } from "./operations.ts";
import { OPAQUE, RECIPES } from "./recipes.ts";
import { type Answered, type ApiRequest, type Send, sendTo, visible } from "./requests.ts";
import { createPlant, idsIn, listForeignIds } from "./victim.ts";

/** Tests of the isolation between organizations, at every place of an id in every operation of the API's document. */
export interface LeakMatrix extends AsyncDisposable {
  readonly spine: TestSpine;
  readonly all: readonly ApiOperation[];
  /** The operations that require a token, with the places of ids that Inlet stores. */
  readonly operations: readonly ApiOperation[];
  readonly fixtures: Fixtures;
  /** The victim. Others try its ids, and its data must not change after its creation. */
  readonly ours: Scope;
  /** The intruder. */
  readonly theirs: Scope;
  readonly as: (token: string | undefined) => Send;
  /** Creates a key of the victim. */
  readonly keyOf: (permissions: readonly string[], extra?: { readonly expiresAt?: Date }) => Promise<Key>;
  /** Creates an organization, for requests that change or delete entities. */
  readonly newScope: () => Promise<Scope>;
  readonly counts: { requests: number; comparisons: number };
}

interface Key {
  readonly id: string;
  readonly token: string;
}

export async function openLeakMatrix(): Promise<LeakMatrix> {
  const spine = await startTestSpine();
  const send = sendTo(spine.api.app);
  const document = await (await spine.api.app.request("/v1/openapi.json")).json();
  const all = readOperations(document);
  const operations = all
    .filter(({ isPublic }) => !isPublic)
    .map((one) => ({
      ...one,
      places: one.places.filter(({ kind }) => !OPAQUE.has(kind) && !OPAQUE.has(`${one.id} ${kind}`)),
    }));
  const fixtures = createFixtures(operations, RECIPES);
  const counts = { requests: 0, comparisons: 0 };
  const as: LeakMatrix["as"] = (token) => (request) => {
    counts.requests++;
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return send({ ...request, headers: { ...authorization, ...request.headers } });
  };
  const { db } = spine.api.database;
  const home = await db
    .selectFrom("apiKeys")
    .select(["organizationId", "spaceId", "accountId"])
    .orderBy("createdAt")
    .executeTakeFirstOrThrow();
  const keyOf: LeakMatrix["keyOf"] = (permissions, extra = {}) =>
    createApiKey(db, { ...home, name: "test", permissions, ...extra }, Date.now());
  const scopeOf = (token: string, organizationId: string, rename: boolean): Scope =>
    fixtures.open({
      organizationId,
      rename,
      send: as(token),
      async deliver(channelId, body) {
        const outcome = await spine.send(channelId, body);
        // A later flush would count as a change of the victim's data.
        await spine.path.recorder.flush();
        return outcome;
      },
      plant: createPlant(spine.api.database.db, organizationId, () => spine.api.keyring),
    });
  const theirToken = await spine.api.createForeignKey();
  const other = await db
    .selectFrom("organizations")
    .select("id")
    .where("name", "=", "other")
    .executeTakeFirstOrThrow();
  const ours = scopeOf((await keyOf(["*"])).token, home.organizationId, false);
  return {
    spine,
    all,
    operations,
    fixtures,
    as,
    keyOf,
    counts,
    ours,
    theirs: scopeOf(theirToken, other.id, false),
    async newScope() {
      const { id, apiKey } = await ours.call("POST", "/organizations", { name: "New" });
      return scopeOf(apiKey.key, id, true);
    },
    [Symbol.asyncDispose]: () => spine[Symbol.asyncDispose](),
  };
}

export const kindsOf = ({ operations }: LeakMatrix): readonly string[] => [
  ...new Set(operations.flatMap(({ places }) => places.map(({ kind }) => kind))),
];

export const where = ({ method, path }: ApiOperation, place?: IdPlace): string =>
  `${method} ${path}${place ? ` ${place.where} ${place.steps.join(".")}` : ""}`;

export const show = ({ status, text }: Answered): string => `${status} ${text.slice(0, 300)}`;

/** Creates one of every kind in both organizations under the same names. Returns the ids that only the victim knows. */
export async function fillBoth(matrix: LeakMatrix): Promise<ReadonlySet<string>> {
  const { ours, theirs } = matrix;
  const kinds = kindsOf(matrix);
  for (const scope of [ours, theirs]) for (const kind of kinds) await scope.idOf(kind);
  const known = await Promise.all(kinds.map((kind) => ours.idOf(kind)));
  const theirAnswers = theirs.answers.join();
  return new Set([...known, ...ours.answers.flatMap(idsIn)].filter((id) => !theirAnswers.includes(id)));
}

/** For each place of a body, the form with which the owner's own ids are accepted. */
export type Accepted = ReadonlyMap<IdPlace, BodyForm>;

/** Operations rejected for all but the operator's organization. */
export const OPERATOR_ONLY: ReadonlySet<string> = new Set(["createOrganization", "adoptRegistrations"]);

/**
 * Sends operations with their caller's own ids at each place of the body and query, which must all be accepted. `few` tests a quarter
 * of the operations. `all` tests every operation, and also sends it without those ids, as `examples.test.ts` does.
 */
export async function tryOwnIds(matrix: LeakMatrix, tried: "all" | "few") {
  const { fixtures } = matrix;
  const operations = tried === "all" ? matrix.operations : quarterOf(matrix.operations);
  const accepted = new Map<IdPlace, BodyForm>();
  const findings: string[] = [];
  // An earlier request may have changed or deleted an entity that a later one needs. The request is then repeated in a new organization.
  let shared = await matrix.newScope();
  // Deletes run last, parts before the objects that contain them.
  const rank = ({ method, path }: ApiOperation): number => (method === "DELETE" ? 1_000 - path.length : -1);
  for (const operation of [...operations].sort((a, b) => rank(a) - rank(b))) {
    const otherPlaces = operation.places.filter((place) => place.where !== "path");
    for (const place of tried === "all" && !OPERATOR_ONLY.has(operation.id)
      ? [undefined, ...otherPlaces]
      : otherPlaces) {
      const failures: string[] = [];
      const forms = place?.where === "body" ? BODY_FORMS : (["example"] as const);
      const attempt = async (scope: Scope, form: BodyForm, isNew: boolean): Promise<boolean> => {
        const given = new Map(place ? [[place, await scope.idOf(place.kind)]] : []);
        const request = await fixtures.request(scope, operation, { given, form });
        const answer = await fixtures.sendRenamed(scope, request);
        if (answer.status === 200) return true;
        // A conflict or an unsuitable entity is only reported after all named entities were found, so the id counts as accepted.
        if (isNew && place && (answer.status === 409 || isUnsuitable(answer, place))) return true;
        failures.push(`${JSON.stringify(request.body)} → ${show(answer)}`);
        return false;
      };
      for (const form of forms) {
        let isAccepted = await attempt(shared, form, false).catch(() => false);
        if (!isAccepted) {
          shared = await matrix.newScope();
          isAccepted = await attempt(shared, form, true);
        }
        if (!isAccepted) continue;
        if (place) accepted.set(place, form);
        failures.length = 0;
        break;
      }
      if (failures.length > 0) findings.push(`${where(operation, place)}: ${failures.join(" | ")}`);
    }
  }
  return { accepted, findings };
}

function isUnsuitable({ status, text }: Answered, { steps }: IdPlace): boolean {
  const { details = [] } = status === 400 ? JSON.parse(text) : {};
  return details.length === 1 && details[0].path === steps.join(".");
}

/** Builds the operation's request with own, foreign, random and malformed ids in its path. */
export async function withEveryId({ spine, fixtures, ours, theirs }: LeakMatrix, operation: ApiOperation) {
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
    random: await withIds(async ({ kind }) => listForeignIds(await ours.idOf(kind), key)[0] ?? ""),
    malformed: await withIds(async () => "nope"),
  };
}

/** Creates a live conversation of the victim. Returns it with its guest's token. */
export async function liveConversation({ ours }: LeakMatrix) {
  const body = { roomId: await ours.idOf("roomId"), message: "Hello" };
  const { id, liveToken, messages } = await ours.call("POST", "/conversations/CreateLiveConversation", body);
  return { id, token: liveToken as string, messageId: messages[0].id };
}

/** Returns invalid tokens, by description: ended, expired, revoked and invented ones. */
async function createInvalidTokens(
  matrix: LeakMatrix,
): Promise<readonly (readonly [string, string | undefined])[]> {
  const { spine, ours, as, keyOf } = matrix;
  const revoked = await keyOf(["*"]);
  const exchanged = await as(revoked.token)({ method: "POST", path: "/auth/tokens", body: {} });
  const ofRevoked: string = JSON.parse(exchanged.text).accessToken;
  const ended = await liveConversation(matrix);
  await ours.call("POST", `/conversations/${ended.id}/end`, {});
  const { db } = spine.api.database;
  await db.updateTable("apiKeys").set({ revokedAt: new Date() }).where("id", "=", revoked.id).execute();
  return [
    ["no token", undefined],
    ["garbage", "garbage"],
    ["an unknown key", `ik_${"0".repeat(40)}`],
    ["a token with a wrong signature", `${ofRevoked.slice(0, -4)}AAAA`],
    ["an expired key", (await keyOf(["*"], { expiresAt: new Date(Date.now() - 1_000) })).token],
    ["a revoked key", revoked.token],
    ["a revoked key's access token", ofRevoked],
    ["an ended conversation's live token", ended.token],
  ];
}

/** Returns a quarter of the operations, the same in each run. */
const quarterOf = (operations: readonly ApiOperation[]): readonly ApiOperation[] =>
  operations.filter((operation) => pickFor(where(operation), 4) === 0);

/**
 * Prepares each operation for callers without access. Findings are responses other than 401 or 403, or that differ between ids.
 * With `all`, every caller sends own, foreign, random and malformed ids. With `few`, a quarter of the operations are tested: one invalid
 * token per operation, taken in turn, and the authenticated callers without permission send own and random ids.
 */
export async function expectForeignIdsRejected(matrix: LeakMatrix, ids: "all" | "few") {
  const { as, keyOf, counts } = matrix;
  const operations = ids === "all" ? matrix.operations : quarterOf(matrix.operations);
  const invalidTokens = await createInvalidTokens(matrix);
  const live = await liveConversation(matrix);
  const names = [...new Set(operations.flatMap(({ permission }) => permission ?? []))];
  const without = new Map<string, string>();
  for (const name of names) without.set(name, (await keyOf(names.filter((one) => one !== name))).token);
  const prepared: [ApiOperation, [string, ApiRequest][]][] = [];
  for (const operation of operations) {
    const requests = Object.entries(await withEveryId(matrix, operation));
    prepared.push([operation, requests.filter(([name]) => ids === "all" || /own|random/.test(name))]);
  }
  const findings: string[] = [];
  const send = async (): Promise<void> => {
    for (const [index, [operation, requests]] of prepared.entries()) {
      const check = async (who: string, token: string | undefined, status: number) => {
        let first: string | undefined;
        for (const [name, request] of requests) {
          const answer = await as(token)(request);
          const seen = JSON.stringify(visible(answer));
          first ??= seen;
          counts.comparisons++;
          if (answer.status !== status || seen !== first)
            findings.push(`${where(operation)} by ${who} with ${name} ids: ${show(answer)}`);
        }
      };
      for (const [at, [who, token]] of invalidTokens.entries()) {
        if (ids === "all" || index % invalidTokens.length === at) await check(who, token, 401);
      }
      if (operation.confined === undefined) await check("a live token", live.token, 403);
      if (operation.permission)
        await check("a key without the permission", without.get(operation.permission), 403);
    }
  };
  return { findings, send };
}

/** Variants of each request. A malformed request must be rejected before another organization's entity is looked up. */
const twists = (victim: Scope): readonly (readonly [string, (request: ApiRequest) => ApiRequest])[] => [
  [
    "an invalid body",
    (request) =>
      request.body === undefined
        ? request
        : { ...request, body: { ...Object(request.body), "no such field": 1 } },
  ],
  ["If-Match", (request) => ({ ...request, headers: { "if-match": '"another"' } })],
  // Each request needs its own key, because a used one would return the earlier response.
  ["Idempotency-Key", (request) => ({ ...request, headers: { "idempotency-key": randomUUID() } })],
  [
    "X-Organization-Id",
    (request) => ({ ...request, headers: { "x-organization-id": victim.organizationId } }),
  ],
];

export interface CompareOptions {
  readonly accepted: Accepted;
  readonly ourIds: ReadonlySet<string>;
  /** In addition to the plain request: all variants at each place, or one at some places of a quarter of the operations. */
  readonly twists: "all" | "some";
}

/**
 * Sends the victim's ids as the intruder, at each place and at all places of a path.
 * Returns the responses that differ from those to random ids.
 */
export async function compareForeignIds(matrix: LeakMatrix, options: CompareOptions) {
  const { spine, fixtures, ours, theirs, counts } = matrix;
  const operations = options.twists === "all" ? matrix.operations : quarterOf(matrix.operations);
  const key = spine.api.keyring.channelIdKey;
  const findings: string[] = [];

  async function compare(operation: ApiOperation, places: readonly IdPlace[]): Promise<void> {
    const name = where(operation, places[0]);
    const form = places.map((place) => options.accepted.get(place)).find((one) => one) ?? "example";
    const foreign = new Map<IdPlace, string>();
    const random = [new Map<IdPlace, string>(), new Map<IdPlace, string>()] as const;
    const malformed = new Map<IdPlace, string>();
    for (const place of places) {
      const id = await ours.idOf(place.kind);
      const [one = "", two = one] = listForeignIds(id, key);
      foreign.set(place, id);
      random[0].set(place, one);
      random[1].set(place, two);
      malformed.set(place, "nope");
    }
    const isOne = places.every((place) => random[0].get(place) === random[1].get(place));
    const requestOf = (given: ReadonlyMap<IdPlace, string>) =>
      fixtures.request(theirs, operation, { given, form });
    const withForeign = await requestOf(foreign);
    const withRandom: ApiRequest[] = [];
    for (const given of isOne ? [random[0]] : random) withRandom.push(await requestOf(given));
    const withMalformed = await requestOf(malformed);
    const also = twists(ours);
    const chosen =
      options.twists === "all" ? also : also.filter((_, at) => at === pickFor(name, 3 * also.length));
    for (const [twist, twisted] of [["plain", (one: ApiRequest) => one] as const, ...chosen]) {
      const send = async (request: ApiRequest): Promise<Answered> => {
        const answer = await theirs.send(twisted(request));
        if (answer.status >= 500) findings.push(`${name}, ${twist}: ${show(answer)}`);
        const leaked = idsIn(`${answer.text} ${[...answer.headers.values()].join(" ")}`);
        for (const id of leaked.filter((one) => options.ourIds.has(one)))
          findings.push(`${name}, ${twist}: leaks ${id}`);
        return answer;
      };
      const seen = await send(withForeign);
      for (const request of withRandom) {
        const other = await send(request);
        counts.comparisons++;
        if (JSON.stringify(visible(seen)) !== JSON.stringify(visible(other)))
          findings.push(`${name}, ${twist}: ${show(seen)}, random: ${show(other)}`);
      }
      const odd = await send(withMalformed);
      if (twist === "plain" && places[0]?.where === "path" && odd.status !== 404)
        findings.push(`${name}, malformed: ${show(odd)}`);
      const expected = places[0]?.where === "query" ? [200, 404] : [404];
      if (twist === "plain" && !expected.includes(seen.status)) findings.push(`${name}: ${show(seen)}`);
    }
  }

  for (const operation of operations) {
    for (const place of operation.places) await compare(operation, [place]);
    const inPath = operation.places.filter(({ where: at }) => at === "path");
    if (inPath.length > 1) await compare(operation, inPath);
  }
  return findings;
}

/** Sends each creating operation with one Idempotency-Key in two organizations. Returns the operations whose responses share an id. */
export async function shareIdempotencyKeys({ operations, fixtures, newScope, counts }: LeakMatrix) {
  const findings: string[] = [];
  let scopes = [await newScope(), await newScope()];
  let keys = 0;
  for (const operation of operations.filter(({ creates, id }) => creates && !OPERATOR_ONLY.has(id))) {
    const createInEach = async () => {
      const headers = { "idempotency-key": `key-${++keys}` };
      const made = [];
      for (const scope of scopes) {
        const request: ApiRequest = { ...(await fixtures.request(scope, operation)), headers };
        made.push(await scope.send(request));
      }
      return made;
    };
    const isDone = (made: readonly Answered[]) => made.every(({ status }) => status === 200);
    let made = await createInEach();
    if (!isDone(made)) {
      // Earlier requests have created an entity that may exist only once.
      scopes = [await newScope(), await newScope()];
      made = await createInEach();
    }
    const [first, second] = made.map(({ text }) => text);
    const shared = idsIn(first ?? "").filter((id) => second?.includes(id));
    counts.comparisons++;
    if (!isDone(made) || shared.length > 0)
      findings.push(`${where(operation)}: ${made.map(show).join(" | ")}`);
  }
  return findings;
}

/** Returns a number below `length` that is the same for this name in each run. */
const pickFor = (name: string, length: number): number =>
  createHash("sha256").update(name).digest().readUInt32BE() % length;
