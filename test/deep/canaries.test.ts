import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { Redis } from "ioredis";
import { beforeAll, expect, it } from "vitest";
import { findCanaries, type Places, plant, readKeys, readTables } from "../conformance/canaries.ts";
import { type ReadOperations, readAll } from "../conformance/read-all.ts";
import { installApp } from "../support/channels.ts";
import type { OpenApi } from "../support/documented.ts";
import { createTestStores, startTestGateway } from "../support/gateway.ts";
import { listenLocally } from "../support/local-server.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

/** Every secret of the installation, by description. */
const canaries = new Map<string, string>();
const secret = (what: string): string => plant(canaries, what);
/** Channel addresses. Unlike secrets, responses of the API may show them. */
const addresses = new Map<string, string>();
/** A secret inside a body is data: it is stored as received, for the topic and for a redrive. */
const tokenInBody = secret("token in a body");
const DATA = /^key (?:events\.|inlet:\{q\.)|^answer of GET \S*\/events(?:\?|$)/;
/** Not a secret. The search must find it wherever events, items and errors are stored, which proves that the search works. */
const marker = plant(new Map(), "marker");

/** Accepts calls with credentials and echoes each request in its response, as a debugging server does. */
async function startEcho() {
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    const echoed = await describeRequest(request);
    requests.push(echoed);
    // A connection can add a credential to the start of the path.
    const { pathname: path } = new URL(request.url ?? "/", "http://echo");
    const pathname = path.slice(path.lastIndexOf("/"));
    const json = (status: number, body: object): void => {
      response.writeHead(status, {
        "content-type": "application/json",
        "x-echo": encodeURIComponent(echoed),
      });
      response.end(JSON.stringify(body));
    };
    if (pathname === "/token") {
      const tokens = { access_token: secret("access token"), refresh_token: secret("refresh token") };
      json(200, { ...tokens, token_type: "Bearer", expires_in: 3_600 });
    } else if (pathname === "/broken-token") {
      json(400, { error: "invalid_client", error_description: echoed });
    } else if (pathname === "/stream") {
      response.writeHead(200, { "content-type": "text/event-stream", "x-echo": encodeURIComponent(echoed) });
      response.write(`id: 1\ndata: ${JSON.stringify({ n: 1, marker })}\n\n`);
    } else if (pathname === "/rows") {
      json(200, { rows: [{ id: 1, marker }], seen: echoed });
    } else if (pathname === "/taken") {
      json(200, {});
    } else if (echoed.includes('"challenge"')) {
      json(200, { challenge: /"challenge":"([^"]+)"/.exec(echoed)?.[1], seen: echoed });
    } else {
      json(500, { error: echoed });
    }
  });
  const local = await listenLocally(server);
  return {
    ...local,
    requests,
  };
}

async function describeRequest(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += chunk;
  return `${request.url} ${JSON.stringify(request.headers)} ${body}`;
}

const apiKey = secret("API key of the first start");
const metricsToken = secret("metrics token");

const stores = opened(createTestStores);
const echo = opened(startEcho);
const gateway = opened(() => {
  canaries.set("master key", stores.env.INLET_MASTER_KEY ?? "");
  return startTestGateway(
    {
      ...stores.env,
      INLET_API_KEY: apiKey,
      INLET_METRICS_TOKEN: metricsToken,
      INLET_LOG_LEVEL: "trace",
      INLET_ALLOW_NETWORKS: "127.0.0.0/8",
    },
    { handlersTiming: { firstRetryMs: 10, mostRetryMs: 20, giveUpAfterMs: 40 } },
  );
});

/** The management API's responses, except for secrets that are shown once. */
const answers: Places = new Map();

async function call(method: string, path: string, body?: unknown, headers: object = {}): Promise<OpenApi> {
  const response = await fetch(`${gateway.origin}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** Calls the API and records the response, which must not contain a secret. */
async function callRecorded(method: string, path: string, body?: unknown): Promise<OpenApi> {
  const answer = await call(method, path, body);
  answers.set(`answer of ${method} ${path}`, JSON.stringify(answer));
  return answer;
}

async function deliver(
  channel: { readonly id: string },
  { query = "", headers = {}, body = {} }: { query?: string; headers?: object; body?: object | string },
): Promise<number> {
  addresses.set(`address ${addresses.size}`, channel.id);
  const response = await fetch(`${gateway.origin}/hooks/${channel.id}${query}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  answers.set(`answer ${answers.size} of a hook`, await response.text());
  return response.status;
}

/** Uses callers' tokens and keys: valid ones, rejected ones, and one stored for an idempotent repeat. */
async function useCallers(): Promise<void> {
  const { accessToken } = await call("POST", "/auth/tokens", {});
  canaries.set("access token of the API", accessToken);
  await call("GET", "/apps", undefined, { authorization: `Bearer ${accessToken}` });
  const idempotent = { "idempotency-key": "one" };
  const account = (await call("GET", "/iam/accounts"))[0].id;
  const made = await call(
    "POST",
    "/iam/api-keys",
    { name: "n", permissions: ["*"], accountId: account },
    idempotent,
  );
  canaries.set("API key", made.key);
  await call("POST", "/organizations", { name: "Other" }).then((other) =>
    canaries.set("first API key of an organization", other.apiKey.key),
  );
  const room = await call("POST", "/rooms", { title: "Support" });
  const live = await call("POST", "/conversations/CreateLiveConversation", { roomId: room.id });
  canaries.set("live token", live.liveToken);
  await call("GET", `/conversations/${live.id}`, undefined, { authorization: `Bearer ${live.liveToken}` });
  for (const wrong of [
    secret("a wrong token"),
    `ik_${secret("a wrong key")}`,
    `ey.${secret("a wrong JWT")}.x`,
  ])
    await fetch(`${gateway.origin}/v1/apps`, { headers: { authorization: `Bearer ${wrong}` } });
  await fetch(`${gateway.origin}/metrics`, {
    headers: { authorization: `Bearer ${secret("a wrong metrics token")}` },
  });
}

const events = [{ type: "known", typePath: "$.type", idPath: "$.id", schema: { required: ["n"] } }];

interface Signed {
  readonly headers?: object;
  readonly query?: string;
}

interface SignedScheme {
  readonly verification: object;
  readonly value: string;
  /** Returns a request part that the scheme accepts, or one with `instead` as its credential. */
  readonly sign: (body: string, instead?: string) => Signed;
}

/** One channel per scheme, with secrets that are sent as they are and secrets that sign. */
function schemes(): Readonly<Record<string, SignedScheme>> {
  const tokenIn = (where: string, show: (value: string) => Signed, name?: string): SignedScheme => {
    const value = secret(`token in ${where}`);
    const verification = { scheme: "token", in: where, ...(name && { name }) };
    return { verification, value, sign: (_, instead = value) => show(instead) };
  };
  const hmacKey = secret("HMAC key");
  const signingKey = secret("key of Standard Webhooks");
  return {
    header: tokenIn("header", (value) => ({ headers: { "x-token": value } }), "x-token"),
    bearer: tokenIn("bearer", (value) => ({ headers: { authorization: `Bearer ${value}` } })),
    query: tokenIn("query", (value) => ({ query: `?key=${value}` }), "key"),
    body: {
      verification: { scheme: "token", in: "body", name: "$.token" },
      value: tokenInBody,
      sign: () => ({}),
    },
    hmac: {
      verification: { scheme: "hmac", name: "x-signature" },
      value: hmacKey,
      sign(body, instead) {
        const signature = instead ?? createHmac("sha256", hmacKey).update(body).digest("hex");
        canaries.set(`signature ${canaries.size}`, signature);
        return { headers: { "x-signature": signature } };
      },
    },
    standard: {
      verification: { scheme: "standardWebhooks", secretEncoding: "utf8" },
      value: signingKey,
      sign(body, instead) {
        const [id, time] = [`m${canaries.size}`, String(Math.floor(Date.now() / 1_000))];
        const signed = createHmac("sha256", signingKey).update(`${id}.${time}.${body}`);
        const signature = instead ?? signed.digest("base64");
        canaries.set(`signature ${canaries.size}`, signature);
        const headers = {
          "webhook-id": id,
          "webhook-timestamp": time,
          "webhook-signature": `v1,${signature}`,
        };
        return { headers };
      },
    },
  };
}

/** Sends published, duplicate, quarantined, rejected and malformed deliveries to a channel of each scheme. */
async function deliverAll(): Promise<void> {
  const app = await installApp({ api: call }, []);
  const path = `/apps/${app.id}`;
  for (const [uid, { verification, value, sign }] of Object.entries(schemes())) {
    const config = { verification, secrets: [{ value }] };
    const channel = await callRecorded("POST", `${path}/channels`, { uid, kind: "webhook", config, events });
    const send = async (body: object | string) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const { headers = {}, query = "" } = sign(text);
      const others = {
        cookie: secret("cookie"),
        "proxy-authorization": secret("credential of a proxy"),
        "x-api-key": secret("API key of a sender"),
        referer: `${gateway.origin}/hooks/${channel.id}`,
      };
      return deliver(channel, { headers: { ...others, ...headers }, query, body: text });
    };
    const marked = { marker, ...(uid === "body" ? { token: tokenInBody } : {}) };
    const known = { ...marked, type: "known", id: "1", n: 1 };
    expect(await send(known)).toBe(200);
    expect(await send(known)).toBe(200);
    for (const body of [
      { ...known, n: 2 },
      { ...marked, type: "known", id: "2" },
      { ...marked, type: "unknown" },
    ])
      expect(await send(body)).toBe(200);
    // A token in the body cannot be read from a malformed body.
    expect(await send("{")).toBe(uid === "body" ? 401 : 200);
    const wrong = secret(`wrong credential of ${uid}`);
    const forged = uid === "body" ? { ...known, token: wrong } : known;
    expect(await deliver(channel, { ...sign("", wrong), body: forged })).toBe(401);
    const { id } = await callRecorded("POST", `${path}/channels/${channel.id}/rotate`, {});
    addresses.set(`address ${addresses.size}`, id);
    const rotated = { secrets: [{ value: secret(`next secret of ${uid}`) }] };
    await callRecorded("PUT", `${path}/channels/${id}`, { config: rotated });
    await callRecorded("GET", `${path}/channels/${id}`);
  }
  const quarantine: OpenApi[] = await callRecorded("GET", `${path}/quarantine?limit=200`);
  expect(quarantine.length).toBeGreaterThan(3 * 5);
  for (const { id } of quarantine) await callRecorded("GET", `${path}/quarantine/${id}`);
  const uids = new Set(
    (await callRecorded("GET", `${path}/channels`)).map(({ uid }: { readonly uid: string }) => uid),
  );
  const recorded = async (): Promise<OpenApi[]> => callRecorded("GET", `${path}/deliveries?limit=200`);
  await until(
    async () => new Set((await recorded()).map(({ channelUid }) => channelUid)).size === uids.size,
    { everyMs: 200 },
  );
  for (const { id } of await recorded()) await callRecorded("GET", `${path}/deliveries/${id}`);
  await callRecorded("POST", `${path}/quarantine/redrive`, { limit: 10 });
  await callRecorded("GET", `${path}/events?limit=200`);
}

/** Creates an intake with a token in the body, an install with a route key, and sends items that are routed and held. */
async function routeAll(): Promise<void> {
  const events = [{ type: "known", idPath: "$.id" }];
  const blueprint = { title: "Intake", channels: [{ uid: "main", kind: "webhook", events }] };
  const { id } = await callRecorded("POST", "/blueprints", blueprint);
  const token = secret("token of an intake");
  const verification = { scheme: "token", in: "body", name: "$.token" };
  const config = { verification, secrets: [{ value: token }] };
  const settings = { channel: "main", routeBy: ["$.team"], config };
  const { url } = await callRecorded("PUT", `/blueprints/${id}/intake`, settings);
  const app = await callRecorded("POST", "/apps/install", { blueprintId: id });
  await callRecorded("PUT", `/blueprints/${id}/installs/${app.id}/route-keys`, { keys: ["A"] });
  const intake = { id: url.slice(url.lastIndexOf("/") + 1) };
  for (const team of ["A", "unknown"]) {
    const headers = { cookie: secret("cookie of an intake") };
    expect(await deliver(intake, { headers, body: { id: "1", team, token } })).toBe(200);
  }
  const [held] = await callRecorded("GET", `/blueprints/${id}/quarantine`);
  await callRecorded("GET", `/blueprints/${id}/quarantine/${held.id}`);
  await callRecorded("POST", `/blueprints/${id}/quarantine/${held.id}/redrive`, {});
  const headers = { cookie: secret("cookie of an explained delivery") };
  const body = JSON.stringify({ id: "2", team: "A", token });
  await callRecorded("POST", `/blueprints/${id}/intake/explain`, { headers, body, routeBy: ["$.token"] });
  await callRecorded("POST", `/blueprints/${id}/intake/test`, { body, routeKey: "A" });
}

/**
 * Creates connections of every kind, and sources and handlers that use them, at a server that echoes the credentials in every response.
 */
async function connectAll(): Promise<void> {
  const { origin } = echo;
  const oauth = { grant: "clientCredentials", tokenEndpoint: `${origin}/token`, clientId: "inlet" };
  const broken = { ...oauth, tokenEndpoint: `${origin}/broken-token` };
  const kinds: Readonly<Record<string, readonly [kind: string, config: object]>> = {
    header: ["apiKey", { name: "x-key", value: secret("API key of a connection, in a header") }],
    query: ["apiKey", { in: "query", name: "key", value: secret("API key of a connection, in a query") }],
    basic: ["basic", { username: "inlet", password: secret("password") }],
    bearer: ["bearer", { token: secret("bearer token") }],
    custom: [
      "custom",
      {
        fields: { a: secret("field of a custom connection"), b: secret("another field") },
        headers: { "x-custom": "{{a}}" },
        query: { custom: "{{b}}" },
      },
    ],
    path: ["custom", { fields: { c: secret("credential in a path") }, path: "/bot{{c}}" }],
    oauth: ["oauth2", { ...oauth, clientSecret: secret("client secret") }],
    broken: ["oauth2", { ...broken, clientSecret: secret("client secret that is refused") }],
  };
  const app = await installApp({ api: call }, [
    { uid: "hook", kind: "webhook", events: [{ type: "made", agents: true }] },
  ]);
  const path = `/apps/${app.id}`;
  const subscribe = async (eventUid: string, more: object): Promise<void> => {
    const { id, handler } = await call("POST", `${path}/events/subscribe`, { eventUid, ...more });
    if (handler?.secret) canaries.set(`handler secret ${canaries.size}`, handler.secret);
    await callRecorded("GET", `${path}/subscriptions/${id}`);
  };
  for (const [uid, [kind, config]] of Object.entries(kinds)) {
    const { id } = await callRecorded("POST", "/connections", {
      name: uid,
      kind,
      config,
      allowedOrigins: [origin],
    });
    await call("POST", `/connections/${id}/test`, { url: `${origin}/taken` }).catch(() => {});
    const polled = {
      request: { url: `${origin}/rows` },
      itemsPath: "$.rows",
      discriminator: { by: "seenSet" },
      itemId: "$.id",
    };
    const sources: Readonly<Record<string, readonly [kind: string, config: object]>> = {
      rows: ["polling", { ...polled, startAt: "earliest" }],
      // Its items match no definition.
      lost: ["polling", { ...polled, startAt: "earliest", onNoMatch: "quarantine" }],
      failing: ["polling", { ...polled, request: { url: `${origin}/fails` }, retry: { attempts: 0 } }],
      stream: ["sse", { url: `${origin}/stream` }],
    };
    for (const [name, [sourceKind, settings]] of Object.entries(sources)) {
      const own = `${uid}-${name}`;
      const definitions = name === "lost" ? [{ type: "x", typePath: "$.none" }] : [{ type: "made" }];
      const body = { uid: own, kind: sourceKind, config: settings, events: definitions };
      const channel = await callRecorded("POST", `${path}/channels`, body);
      await subscribe(`${own}:*`, { connectionId: id });
      if (sourceKind === "polling")
        await callRecorded("POST", `${path}/channels/${channel.id}/source/dry-run`, {}).catch(() => {});
    }
    await subscribe("hook:made", { connectionId: id, handler: { url: `${origin}/taken` } });
    await subscribe("hook:made", { connectionId: id, handler: { url: `${origin}/fails` } });
  }
  await subscribe("hook:made", { handler: { url: `${origin}/fails`, secret: `whsec_${canaryKey()}` } });
  await subscribeAgent(`${app.id}.hook.made`, `${origin}/agent`);
  for (let n = 0; n < 3; n++) await deliver({ id: app.channels[0]?.id ?? "" }, { body: { n, marker } });
  const channels: OpenApi[] = await callRecorded("GET", `${path}/channels`);
  const fetching = channels.filter(({ kind, uid }) => kind !== "webhook" && !uid.startsWith("broken"));
  for (const { id } of fetching)
    await until(
      async () => {
        const { lastSuccessAt, lastError } = await callRecorded("GET", `${path}/channels/${id}/source`);
        return lastSuccessAt !== null || lastError !== null;
      },
      { everyMs: 200 },
    );
  const listed = (): Promise<OpenApi[]> => callRecorded("GET", `${path}/subscriptions?limit=200`);
  const handled = (await listed()).filter(({ handler }) => handler);
  const given = new Set<string>();
  await until(
    async () => {
      for (const { id } of handled) {
        if (given.has(id)) continue;
        if ((await callRecorded("GET", `${path}/subscriptions/${id}/dead-letters`)).length >= 3)
          given.add(id);
      }
      return given.size >= Object.keys(kinds).length;
    },
    { everyMs: 200 },
  );
  // The listing now includes the failures.
  await listed();
  await callRecorded("GET", "/connections");
}

/** Subscribes an agent whose callback URL confirms the challenge and then rejects each event. */
async function subscribeAgent(name: string, url: string): Promise<void> {
  const delivery = { mode: "webhook", url, secret: `whsec_${canaryKey()}` };
  const response = await fetch(`${gateway.origin}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "events/subscribe", params: { name, delivery } }),
  });
  const text = await response.text();
  answers.set("answer of POST /mcp", text);
  expect(text).toContain("refreshBefore");
}

/** Creates a Standard Webhooks key, and registers it as a secret both raw and encoded. */
function canaryKey(): string {
  const key = Buffer.from(secret("handler secret that was given")).toString("base64");
  canaries.set("handler secret that was given, as written", key);
  return key;
}

/**
 * Operations without an entity in this test, and operations whose ids are in no list: events and presets, read above, dead letters, and
 * schema versions.
 */
const WITHOUT_ENTITY = [
  // The responses of intakes are recorded above.
  ...[
    "/blueprints/{blueprintId}/quarantine/",
    "/agents/",
    "/collections/",
    "/forms/",
    "/iam/groups/",
    "/iam/identities/",
    "/iam/roles/",
  ],
  ...["/knowledge-bases/", "/presets/", "/states/", "/stores/", "/tasks/", "/telephony/"],
  ...["/rooms/{roomId}/messages/", "/rooms/{roomId}/participants/"],
  ...["/conversations/{conversationId}/messages/", "/apps/{appId}/events/"],
  "/apps/{appId}/subscriptions/{subscriptionId}/dead-letters/",
  "/apps/{appId}/channels/{channelId}/schemas/",
];

let places: Places;
/** The operations whose responses were recorded, in addition to those that the functions above call. */
let read: ReadOperations;
beforeAll(async () => {
  await useCallers();
  await deliverAll();
  await connectAll();
  await routeAll();
  await callRecorded("GET", "/audit?limit=200");
  await until(async () => (await callRecorded("GET", "/problems")).length > 0, { everyMs: 200 });
  const document = await (await fetch(`${gateway.origin}/v1/openapi.json`)).json();
  read = await readAll(document, (path) =>
    callRecorded("GET", path).catch((error: Error) => {
      if (!/: 40[049] /.test(error.message)) throw error;
      return undefined;
    }),
  );
  places = new Map(answers);
  for (const path of ["/readyz", "/healthz", "/v1/openapi.json", "/docs"])
    places.set(path, await (await fetch(gateway.origin + path)).text());
  const metrics = await fetch(`${gateway.origin}/metrics`, {
    headers: { authorization: `Bearer ${metricsToken}` },
  });
  expect(metrics.status).toBe(200);
  places.set("metrics", await metrics.text());
  await readTables(stores.db, places);
  if (stores.client instanceof Redis) await readKeys(stores.client, places);
  for (const [at, line] of gateway.lines.entries())
    places.set(`log line ${at}, ${line.event}`, JSON.stringify(line));
});

it("no secret occurs in a log line at level trace, a metric, a database table, a Redis key or an API response", () => {
  const found = findCanaries(canaries, places);
  const isData = (one: string): boolean =>
    one.startsWith("token in a body in ") && DATA.test(one.slice("token in a body in ".length));
  expect(found.filter((one) => !isData(one))).toEqual([]);
  expect(canaries.size).toBeGreaterThan(40);
});

it("no secret address of a channel occurs in a log line at level trace, a metric, a database table or a Redis key", () => {
  const outside = new Map([...places].filter(([place]) => !place.startsWith("answer of ")));
  expect(findCanaries(addresses, outside)).toEqual([]);
  expect(addresses.size).toBeGreaterThan(10);
});

it("the search for leaked secrets calls every read operation of the API, except those without an entity to return", () => {
  // The health checks are read in `beforeAll`. The last path needs a connection that a person authorizes.
  expect(read.refused).toEqual(["/healthz", "/readyz", "/connections/{connectionId}/authorize"]);
  expect(read.unknown.filter((template) => !WITHOUT_ENTITY.some((one) => template.startsWith(one)))).toEqual(
    [],
  );
});

it("the search for leaked secrets covers events, quarantine and dead letters, and finds the secrets in the gateway's outgoing requests", () => {
  const holders = [...places].filter(([, text]) => text.includes(marker)).map(([place]) => place);
  for (const part of ["key events.", "quarantine", "table dead_letters"])
    expect(holders.filter((place) => place.includes(part))).not.toEqual([]);
  const alsoEncoded = findCanaries(new Map([["marker", marker]]), places);
  expect(alsoEncoded.some((found) => found.startsWith("marker in key inlet:{d."))).toBe(true);
  expect(gateway.lines.some(({ level }) => level === "trace" || level === "debug")).toBe(true);
  const sent = new Map([["calls of the gateway", echo.requests.join("\n")]]);
  const seen = findCanaries(canaries, sent).map((found) => found.split(" in calls")[0]);
  for (const what of [
    "password",
    "bearer token",
    "field of a custom connection",
    "credential in a path",
    "client secret",
    "access token",
  ])
    expect(seen).toContain(what);
});
