import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ErrorCode, STATUS_OF } from "../../src/http/problem.ts";
import { createDocumentCheck, type DocumentCheck, type OpenApi } from "../support/documented.ts";
import { API_KEY, type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { type Draft, deliveries, draftsOf, isOwn } from "./arbitraries.ts";
import { createFixtures, type Scope } from "./fixtures.ts";
import { type ApiOperation, readOperations } from "./operations.ts";
import { RECIPES } from "./recipes.ts";
import { type Answered, type ApiRequest, type Send, sendTo } from "./requests.ts";
import { buryIn } from "./victim.ts";

const REQUESTS = 10_000;
/** Of these so many through a socket, to a gateway in a process of its own. */
const THROUGH_SOCKET = 1_500;
const BESIDE = 500;
const WORKERS = 4;
/** Whoever wants to see the same requests again gives the seed that was printed. */
const seed = Number(process.env.INLET_FUZZ_SEED ?? randomInt(2 ** 31));

const rejections: unknown[] = [];
const onRejection = (reason: unknown): void => void rejections.push(reason);
let dir: string;
let gateway: GatewayProcess;
let spine: TestSpine;
beforeAll(async () => {
  process.on("unhandledRejection", onRejection);
  dir = await mkdtemp(join(tmpdir(), "inlet-fuzz-"));
  [spine, gateway] = await Promise.all([
    startTestSpine(),
    startGatewayProcess({ INLET_DATA_DIR: join(dir, "data") }),
  ]);
});
afterAll(async () => {
  process.off("unhandledRejection", onRejection);
  await gateway?.[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
  await spine?.[Symbol.asyncDispose]();
});

/** What is asked, and how things are made there. */
interface Target {
  readonly document: OpenApi;
  readonly send: Send;
  readonly deliver: Scope["deliver"];
  readonly bury: Scope["bury"];
  readonly token: string;
}

interface Tally {
  requests: number;
  readonly statuses: Map<number, number>;
  readonly findings: string[];
}

/** Asks each operation as often as the others; answers what was not as the document says. */
async function fuzz(target: Target, requests: number): Promise<Tally> {
  const tally: Tally = { requests: 0, statuses: new Map(), findings: [] };
  const operations = readOperations(target.document);
  const check = createDocumentCheck(target.document);
  const queue = [...operations];
  const numRuns = Math.ceil(requests / operations.length);
  const worker = async (): Promise<void> => {
    for (let operation = queue.shift(); operation; operation = queue.shift()) {
      const failure = await fuzzOperation(target, operation, { check, numRuns, tally, operations });
      if (failure !== undefined) tally.findings.push(failure);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return tally;
}

async function fuzzOperation(
  target: Target,
  operation: ApiOperation,
  {
    check,
    numRuns,
    tally,
    operations,
  }: {
    readonly check: DocumentCheck;
    readonly numRuns: number;
    readonly tally: Tally;
    readonly operations: readonly ApiOperation[];
  },
): Promise<string | undefined> {
  const fixtures = createFixtures(operations, RECIPES);
  let scope: Scope | undefined;
  /** A new organization: what was there may be gone. */
  const newScope = async (): Promise<Scope & { readonly token: string }> => {
    const made = await target.send({
      method: "POST",
      path: "/organizations",
      headers: { authorization: `Bearer ${target.token}` },
      body: { name: "New" },
    });
    const { id, apiKey } = JSON.parse(made.text);
    const send: Send = (request) =>
      target.send({ ...request, headers: { authorization: `Bearer ${apiKey.key}`, ...request.headers } });
    return {
      ...fixtures.open({
        organizationId: id,
        send,
        deliver: target.deliver,
        bury: target.bury,
        rename: true,
      }),
      token: apiKey.key,
    };
  };
  const property = fc.asyncProperty(draftsOf(target.document, operation), async (draft) => {
    scope ??= await newScope();
    const request = await requestOf(draft, operation, scope);
    const answer = await scope.send(request);
    tally.requests++;
    tally.statuses.set(answer.status, (tally.statuses.get(answer.status) ?? 0) + 1);
    const finding = findingOf(request, answer, check);
    if (finding !== undefined) throw new Error(finding);
    if (request.method !== "GET" && answer.status === 200 && operation.method !== "POST") scope = undefined;
  });
  const { failed, counterexample, errorInstance } = await fc.check(property, { seed, numRuns });
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
    ...{ method, headers, path: query.length === 0 ? filled : `${filled}?${query.join("&")}` },
    ...(sent === undefined ? {} : { body: "text" in sent ? sent.text : await resolved(sent.json) }),
  };
}

/** Some of what cannot be encoded goes out raw. */
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
  // What is no JSON was found in the document as what it is.
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

function report(where: string, { requests, statuses, findings }: Tally): void {
  const told = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `fuzz ${where}: ${requests} requests, seed ${seed} (${told.join(", ")}), ${findings.length} findings`,
  );
}

it("answers whatever is sent as the document says, never with 5xx", async () => {
  const target: Target = {
    document: await (await spine.api.app.request("/v1/openapi.json")).json(),
    send: sendTo(spine.api.app),
    deliver: spine.send,
    bury: (subscriptionId) => buryIn(spine, subscriptionId),
    token: await spine.api.keyWith("*"),
  };
  const tally = await fuzz(target, REQUESTS - THROUGH_SOCKET - BESIDE);
  report("in process", tally);
  expect(tally.findings).toEqual([]);
  expect(tally.requests).toBeGreaterThanOrEqual(REQUESTS - THROUGH_SOCKET - BESIDE);
  expect(rejections).toEqual([]);
});

it("does so through a socket, and lives on", async () => {
  const { origin } = gateway;
  const target: Target = {
    document: await (await fetch(`${origin}/v1/openapi.json`)).json(),
    send: sendRaw(origin),
    deliver: async (channelId, body) => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${origin}/hooks/${channelId}`, {
        ...{ method: "POST", headers },
        body: JSON.stringify(body),
      });
      return response.json();
    },
    bury: async () => Promise.reject(new Error("nobody has a handler that failed for a day")),
    token: API_KEY,
  };
  const tally = await fuzz(target, THROUGH_SOCKET);
  report("through a socket", tally);
  expect(tally.findings).toEqual([]);
});

it("does so beside the API, hooks before all, and ends well", async () => {
  const { origin } = gateway;
  const [app] = await gateway.api<readonly { readonly id: string }[]>("GET", "/apps");
  const [channel] = await gateway.api<readonly { readonly id: string }[]>("GET", `/apps/${app?.id}/channels`);
  const statuses = new Map<number, number>();
  const property = fc.asyncProperty(deliveries, async ({ method, path, contentType, body }) => {
    const response = await fetch(`${origin}${path ?? `/hooks/${channel?.id}`}`, {
      method,
      headers: { "content-type": contentType },
      ...(method === "GET" || method === "HEAD" ? {} : { body }),
    });
    const { status } = response;
    const text = await response.text();
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status >= 500 || (status >= 400 && method !== "HEAD" && !isError(status, text)))
      throw new Error(`${status} ${text}`);
  });
  await fc.assert(property, { seed, numRuns: BESIDE });
  report("beside the API", { requests: BESIDE, statuses, findings: [] });
  gateway.kill("SIGTERM");
  expect(await gateway.exited).toBe(0);
  expect(gateway.output()).not.toMatch(/"level":(?:50|60|"error"|"fatal")|unhandled/i);
});

/** As the request is written, with nothing put right by a client. */
const sendRaw =
  (origin: string): Send =>
  ({ method, path, headers, body }) =>
    new Promise((resolve, reject) => {
      const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
      const length = Buffer.byteLength(text ?? "");
      const content =
        text === undefined ? {} : { "content-type": "application/json", "content-length": String(length) };
      const request = httpRequest(`${origin}/v1/`, {
        ...{ method, path: `/v1${path}` },
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
        let answered = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          answered += chunk;
        });
        response.on("error", reject);
        response.on("end", () => resolve({ status, headers: all, text: answered }));
      });
      request.end(text);
    });
