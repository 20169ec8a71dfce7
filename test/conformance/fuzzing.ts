import { createHash, randomInt } from "node:crypto";
import { request as httpRequest } from "node:http";
import fc from "fast-check";
import { type ErrorCode, STATUS_OF } from "../../src/http/errors.ts";
import { createDocumentCheck, type DocumentCheck, type OpenApi } from "../support/documented.ts";
import { API_KEY, type GatewayProcess } from "../support/gateway-process.ts";
import type { TestSpine } from "../support/spine.ts";
import { type Draft, deliveries, draftsOf, isOwn } from "./arbitraries.ts";
import { createFixtures, type Scope } from "./fixtures.ts";
import { type ApiOperation, readOperations } from "./operations.ts";
import { RECIPES } from "./recipes.ts";
import { type Answered, type ApiRequest, type Send, sendTo } from "./requests.ts";
import { createPlant, type Plant } from "./victim.ts";

const WORKERS = 4;
/** The printed seed of a run. Set it to send the same requests again. */
const seed = Number(process.env.INLET_FUZZ_SEED ?? randomInt(2 ** 31));

/** The API under test, and the ways to create entities in it. */
export interface Target {
  readonly document: OpenApi;
  readonly send: Send;
  readonly deliver: Scope["deliver"];
  readonly plantIn: (organizationId: string) => Plant;
  readonly token: string;
}

export interface Tally {
  requests: number;
  readonly statuses: Map<number, number>;
  readonly findings: string[];
}

/** Opens the API of a spine, in this process. */
export const targetIn = async (spine: TestSpine): Promise<Target> => ({
  document: await (await spine.api.app.request("/v1/openapi.json")).json(),
  send: sendTo(spine.api.app),
  deliver: spine.send,
  plantIn: (organizationId) => createPlant(spine.api.database.db, organizationId, () => spine.api.keyring),
  token: await spine.api.keyWith("*"),
});

const refusePlanting = async () => Promise.reject(new Error("this test has no access to the database"));
const NOTHING_PLANTED: Plant = {
  deadLetter: refusePlanting,
  problem: refusePlanting,
  leftover: refusePlanting,
  agentSubscription: refusePlanting,
};

/** Opens the API of a listening gateway. */
export const targetAt = async (origin: string): Promise<Target> => ({
  document: await (await fetch(`${origin}/v1/openapi.json`)).json(),
  send: sendRaw(origin),
  async deliver(channelId, body) {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${origin}/hooks/${channelId}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return response.json();
  },
  plantIn: () => NOTHING_PLANTED,
  token: API_KEY,
});

export interface FuzzOptions {
  /** Number of drafts for each operation. */
  readonly drafts: number;
  /** Number of operations, selected by the seed. Default: all. */
  readonly operations?: number;
}

/** Sends random requests to each operation. Findings are responses that the document does not describe. */
export async function fuzz(target: Target, options: FuzzOptions): Promise<Tally> {
  const tally = emptyTally();
  const all = readOperations(target.document);
  const check = createDocumentCheck(target.document);
  const drawn = fc.sample(fc.shuffledSubarray([...all], { minLength: all.length }), { seed, numRuns: 1 })[0];
  const queue = (drawn ?? []).slice(0, options.operations);
  const worker = async (): Promise<void> => {
    const scopes = scopesOf(target, all);
    for (let operation = queue.shift(); operation; operation = queue.shift()) {
      const failure = await fuzzOperation(target, operation, {
        check,
        tally,
        scopes,
        numRuns: options.drafts,
      });
      if (failure !== undefined) tally.findings.push(failure);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return tally;
}

const emptyTally = (): Tally => ({ requests: 0, statuses: new Map(), findings: [] });

function count(tally: Tally, status: number): void {
  tally.requests++;
  tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1);
}

/** The current organization, replaced once a request may have deleted some of its entities. */
interface Scopes {
  readonly current: () => Promise<Scope>;
  readonly leave: () => void;
}

function scopesOf(target: Target, operations: readonly ApiOperation[]): Scopes {
  const fixtures = createFixtures(operations, RECIPES);
  let scope: Promise<Scope> | undefined;
  const open = async (): Promise<Scope> => {
    const made = await target.send({
      method: "POST",
      path: "/organizations",
      headers: { authorization: `Bearer ${target.token}` },
      body: { name: "New" },
    });
    const { id, apiKey } = JSON.parse(made.text);
    const send: Send = (request) =>
      target.send({ ...request, headers: { authorization: `Bearer ${apiKey.key}`, ...request.headers } });
    const { deliver, plantIn } = target;
    return fixtures.open({
      organizationId: id,
      send,
      deliver,
      plant: plantIn(id),
      rename: true,
    });
  };
  return {
    current() {
      scope ??= open();
      return scope;
    },
    leave() {
      scope = undefined;
    },
  };
}

async function fuzzOperation(
  target: Target,
  operation: ApiOperation,
  parts: {
    readonly check: DocumentCheck;
    readonly numRuns: number;
    readonly tally: Tally;
    readonly scopes: Scopes;
  },
): Promise<string | undefined> {
  const { check, numRuns, tally, scopes } = parts;
  const property = fc.asyncProperty(draftsOf(target.document, operation), async (draft) => {
    const scope = await scopes.current();
    const request = await requestOf(draft, operation, scope);
    const answer = await scope.send(request);
    count(tally, answer.status);
    const finding = findingOf(request, answer, check);
    if (finding !== undefined) throw new Error(finding);
    if (request.method !== "GET" && answer.status === 200 && operation.method !== "POST") scopes.leave();
  });
  // Gives each operation its own random numbers for the same seed.
  const own = createHash("sha256").update(`${seed} ${operation.id}`).digest().readInt32BE();
  const { failed, counterexample, errorInstance } = await fc.check(property, { seed: own, numRuns });
  if (!failed) return undefined;
  return `${operation.id}: ${errorInstance instanceof Error ? errorInstance.message : errorInstance} for ${fc
    .stringify(counterexample)
    .slice(0, 2_000)}`;
}

async function requestOf(draft: Draft, { path }: ApiOperation, scope: Scope): Promise<ApiRequest> {
  const idOf = (kind: string): Promise<string> => scope.idOf(kind).catch(() => "there-is-none");
  const resolved = async (value: unknown): Promise<unknown> => {
    if (isOwn(value)) return idOf(value.own);
    if (Array.isArray(value)) return Promise.all(value.map(resolved));
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(async ([key, one]) => [key, await resolved(one)] as const);
    return Object.fromEntries(await Promise.all(entries));
  };
  let filled = path;
  for (const [name, value] of Object.entries(draft.params)) {
    const text = isOwn(value) ? await idOf(value.own) : value;
    filled = filled.replace(`{${name}}`, () => encode(text));
  }
  const query: string[] = [];
  for (const [name, value] of draft.query) {
    const one = await resolved(value);
    query.push(`${encode(name)}=${encode(typeof one === "string" ? one : (JSON.stringify(one) ?? ""))}`);
  }
  const { method, headers, body } = draft;
  const sent = body && method !== "GET" && method !== "HEAD" ? body : undefined;
  return {
    method,
    headers,
    path: query.length === 0 ? filled : `${filled}?${query.join("&")}`,
    ...(sent === undefined ? {} : { body: "text" in sent ? sent.text : await resolved(sent.json) }),
  };
}

/** Text that cannot be encoded is replaced by malformed percent-encoding. */
const encode = (text: string): string => (text.isWellFormed() ? encodeURIComponent(text) : "%ed%a0%80%");

function findingOf(request: ApiRequest, answer: Answered, check: DocumentCheck): string | undefined {
  const { status, headers, text } = answer;
  const seen = `${request.method} ${request.path} → ${status} ${text.slice(0, 500)}`;
  if (status >= 500) return seen;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream");
  const { pathname } = new URL(`http://gateway${request.path}`);
  const undocumented = isStream
    ? undefined
    : check({ method: request.method, path: pathname, status, headers, text });
  if (undocumented !== undefined) return `${undocumented} (${seen})`;
  // The document check has already covered plain text, which has no error body.
  const isText = headers.get("content-type")?.startsWith("text/plain");
  if (status < 400 || isText || request.method === "HEAD") return undefined;
  return isError(status, text) ? undefined : `not an error body: ${seen}`;
}

function isError(status: number, text: string): boolean {
  const { code, message, details = [], ...more } = JSON.parse(text);
  return (
    STATUS_OF[code as ErrorCode] === status &&
    typeof message === "string" &&
    Array.isArray(details) &&
    details.every((one) => typeof one.path === "string" && typeof one.message === "string") &&
    Object.keys(more).length === 0
  );
}

interface Made {
  readonly id: string;
}

/** How often a request that receives 503 is repeated. */
const MAX_REPEATS = 5;

/** Sends random deliveries to a channel, and random requests to other paths outside the API. */
export async function fuzzWithTraffic(
  { origin, api }: Pick<GatewayProcess, "origin" | "api">,
  numRuns: number,
) {
  const tally = emptyTally();
  const channels = [{ uid: "main", kind: "webhook", events: [{ type: "push", idPath: "$.id" }] }];
  const blueprint = await api<Made>("POST", "/blueprints", { title: "Fuzz", channels });
  const app = await api<Made>("POST", "/apps/install", { blueprintId: blueprint.id });
  const [channel] = await api<readonly Made[]>("GET", `/apps/${app.id}/channels`);
  if (!channel) throw new Error("the app has no channel");
  const property = fc.asyncProperty(deliveries, async ({ method, path, contentType, body }) => {
    const send = async () => {
      const response = await fetch(`${origin}${path ?? `/hooks/${channel.id}`}`, {
        method,
        headers: { "content-type": contentType },
        ...(method === "GET" || method === "HEAD" ? {} : { body }),
      });
      return { status: response.status, text: await response.text() };
    };
    let { status, text } = await send();
    // A slow machine may run into a timeout. A sender repeats its delivery then, and so does this one.
    for (let repeats = 0; status === 503 && repeats < MAX_REPEATS; repeats++)
      ({ status, text } = await send());
    count(tally, status);
    if (status >= 500 || (status >= 400 && method !== "HEAD" && !isError(status, text)))
      throw new Error(`${status} ${text}`);
  });
  await fc.assert(property, { seed, numRuns });
  return tally;
}

export function report(where: string, { requests, statuses, findings }: Tally): void {
  const counted = [...statuses].sort(([a], [b]) => a - b).map(([status, many]) => `${status}: ${many}`);
  console.log(
    `fuzz ${where}: ${requests} requests, seed ${seed} (${counted.join(", ")}), ${findings.length} findings`,
  );
}

/** Collects unhandled rejections until disposed. */
export function watchRejections(): Disposable & { readonly seen: readonly unknown[] } {
  const seen: unknown[] = [];
  const note = (reason: unknown): void => void seen.push(reason);
  process.on("unhandledRejection", note);
  return { seen, [Symbol.dispose]: () => void process.off("unhandledRejection", note) };
}

/** Sends the request exactly as written, without corrections by an HTTP client. */
const sendRaw =
  (origin: string): Send =>
  ({ method, path, headers, body }) =>
    new Promise((resolve, reject) => {
      const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
      const length = Buffer.byteLength(text ?? "");
      const content =
        text === undefined ? {} : { "content-type": "application/json", "content-length": String(length) };
      const request = httpRequest(`${origin}/v1/`, {
        method,
        path: `/v1${path}`,
        headers: { ...content, ...headers },
      });
      request.on("error", reject);
      request.on("response", (response) => {
        const { statusCode: status = 0 } = response;
        const all = new Headers(
          Object.entries(response.headers).map(([name, value]) => [name, String(value)] as [string, string]),
        );
        if (all.get("content-type")?.startsWith("text/event-stream")) {
          response.destroy();
          resolve({ status, headers: all, text: "" });
          return;
        }
        let received = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          received += chunk;
        });
        response.on("error", reject);
        response.on("end", () => resolve({ status, headers: all, text: received }));
      });
      request.end(text);
    });
