import { lookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { Hono, type MiddlewareHandler } from "hono";
import type { CheckDefinitions } from "../../src/channels/check-channel.ts";
import type { ChannelKind } from "../../src/channels/kind.ts";
import { channelKinds } from "../../src/channels/kinds.ts";
import { createApiKey } from "../../src/data/accounts/api-keys.ts";
import { createOrganization } from "../../src/data/accounts/organizations.ts";
import { startRejectionCounts } from "../../src/data/accounts/rejections.ts";
import { bootstrap } from "../../src/data/bootstrap.ts";
import { type Keyring, openKeyring } from "../../src/data/keyring/keyring.ts";
import { type CallerPathDeps, createCallerPath } from "../../src/gateway/callers.ts";
import { createConnections } from "../../src/gateway/connections.ts";
import type { RequestEnv } from "../../src/http/context.ts";
import { answerErrors } from "../../src/http/errors.ts";
import { requestId } from "../../src/http/request.ts";
import { createClientAddressOf } from "../../src/lib/addresses/client-address.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { compileDefinitions } from "../../src/normalize/compile.ts";
import { createRowLimit } from "../../src/resources/kit/row-limit.ts";
import { type ApiDeps, createApi } from "../../src/resources/resources.ts";
import type { Presets } from "../../src/verify/presets.ts";
import { createTestChanges } from "./changes.ts";
import { createDocumentCheck, type DocumentCheck } from "./documented.ts";
import { testLimitDefaults } from "./limits.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";
import { sharedPresets } from "./presets.ts";
import { sharedSchemas } from "./schemas.ts";
import { createTestLog } from "./test-log.ts";
import { CEILING_MS } from "./until.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // Tests read responses of every shape.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly body: any;
}

/** Sends a JSON body with this token. `path` is relative to `/v1`. */
export type Call = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/** A caller of the API. `call` sends any request; the short forms below must succeed. */
export type Caller = Call & {
  /** Each short form returns the body of a 200 response and throws on any other status. */
  readonly get: (path: string) => Promise<Answer["body"]>;
  readonly post: (path: string, body?: unknown) => Promise<Answer["body"]>;
  readonly put: (path: string, body?: unknown) => Promise<Answer["body"]>;
  readonly delete: (path: string) => Promise<Answer["body"]>;
  /** Returns the error of a rejected request, with the paths of its `details`. Throws when the request succeeds. */
  readonly expectRejection: (method: string, path: string, body?: unknown) => Promise<RejectedRequest>;
};

export interface RejectedRequest {
  readonly status: number;
  readonly code: string;
  readonly paths?: readonly string[];
}

/** The API's dependencies that need Redis. */
export type ApiBus = Pick<
  ApiDeps,
  | "redis"
  | "groups"
  | "topics"
  | "entries"
  | "quarantine"
  | "deliveryRecords"
  | "redrive"
  | "publishTest"
  | "explain"
  | "findCompiledChannel"
  | "positions"
  | "states"
  | "leases"
  | "wakes"
  | "runtimes"
  | "redriveHeld"
  | "explainRouting"
  | "testRouting"
  | "sendAgain"
  | "findRetry"
  | "readings"
  | "onDeleted"
>;

export interface TestApi extends AsyncDisposable {
  readonly app: Hono<RequestEnv>;
  readonly database: TestDatabase;
  readonly keyring: Keyring;
  /** Calls as the organization `default`, with all permissions. */
  readonly call: Caller;
  readonly as: (token: string) => Caller;
  /** Creates a key of the organization `default` with only these permissions. */
  readonly keyWith: (...permissions: string[]) => Promise<string>;
  /** Creates a key of another organization with all permissions. */
  readonly createForeignKey: () => Promise<string>;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  readonly deletions: () => number;
  readonly metrics: Metrics;
}

/** Compiles the paths only, because compiling schemas needs a pool of threads and has its own tests. */
const checkDefinitions: CheckDefinitions = async (source) => {
  const compiled = compileDefinitions(source);
  return compiled.ok ? [] : compiled.error;
};

/** Creates the API over a real database, as the gateway mounts it. */
export async function createTestApi(
  options: {
    readonly extraKinds?: readonly ChannelKind[];
    /** Default: all known presets. */
    readonly presets?: Presets;
    /** Without a bus, the API behaves as when Redis is down. */
    readonly openBus?: (database: TestDatabase, keyring: Keyring) => Promise<ApiBus>;
    readonly callers?: Partial<CallerPathDeps["config"]>;
    readonly trustProxy?: readonly string[];
    readonly allowNetworks?: readonly string[];
    readonly rowsPerResource?: number;
  } = {},
): Promise<TestApi> {
  const database = await createTestDatabase();
  const { db } = database;
  const clock = Date.now;
  const keyring = await openKeyring({ db, masterKey: Buffer.alloc(32, 1), clock });
  const { apiKey = "" } = await bootstrap({ db, keyring, clock });
  const { organizationId: operators } = await db
    .selectFrom("cluster")
    .select("organizationId")
    .executeTakeFirstOrThrow();
  const limitDefaults = testLimitDefaults(options.rowsPerResource);
  const { log, lines } = createTestLog("info");
  const metrics = createMetrics();
  let deletions = 0;
  const stopping = new AbortController();
  const schemas = sharedSchemas();
  const bus = (await options.openBus?.(database, keyring)) ?? awayBus();
  const changes = createTestChanges();
  const callers = createCallerPath({
    changes,
    db,
    keyring,
    clock,
    redis: bus.redis,
    // On a busy machine Redis is as slow as the rest, so the limiter must not time out.
    limiterTimeoutMs: CEILING_MS,
    clientAddressOf: createClientAddressOf(options.trustProxy ?? []),
    config: {
      oidcIssuer: undefined,
      oidcAudience: undefined,
      oidcOrganizationClaim: undefined,
      oidcOrganization: undefined,
      apiRequestsPerMinute: 1_000_000,
      ...options.callers,
    },
  });
  const outbound = createOutbound({
    allowNetworks: options.allowNetworks ?? [],
    lookup: lookupLocalhostOnly,
  });
  const connections = createConnections({ db, keyring, outbound, clock, log });
  const refusals = startRejectionCounts({ db, clock, log });
  const app = new Hono<RequestEnv>();
  const undocumented: string[] = [];
  app.use("/v1/*", checkAnswers(app, undocumented, (options.extraKinds ?? []).length === 0));
  app.use(requestId(clock));
  app.route(
    "/v1",
    createApi({
      ...bus,
      ...callers,
      refusals,
      requireRoom: createRowLimit((id) =>
        id === operators ? undefined : limitDefaults.others.rowsPerResource,
      ),
      limitDefaults,
      db,
      keyring,
      clock,
      log,
      metrics,
      channelKinds: new Map([
        ...channelKinds,
        ...(options.extraKinds ?? []).map((kind) => [kind.kind, kind] as const),
      ]),
      checkDefinitions,
      presets: options.presets ?? sharedPresets(),
      hooksUrl: "https://hooks.example",
      baseUrl: "https://inlet.example/v1",
      outbound,
      credentialsOf: connections.credentialsOf,
      issuerFetch: connections.issuerFetch,
      traceUrl: "https://tempo.example/trace/{traceId}",
      sipProviders: ["sip_provider_1", "sip_provider_2", "sip_provider_3"],
      readChanges: async () => changes.reset(),
      schemas,
      stopping: stopping.signal,
      async onDeleted() {
        deletions++;
        await bus.onDeleted();
      },
    }),
  );
  answerErrors(app);

  const as = (token: string): Caller =>
    callerOf(async (method, path, body, headers) => {
      const response = await app.request(`/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      throwUndocumented();
      return {
        status: response.status,
        headers: response.headers,
        body: isJson(response.headers) ? JSON.parse(text) : text === "" ? undefined : text,
      };
    });
  const throwUndocumented = (): void => {
    if (undocumented.length > 0) throw new Error(undocumented.splice(0).join("\n"));
  };

  return {
    app,
    database,
    keyring,
    call: as(apiKey),
    as,
    async keyWith(...permissions) {
      const owner = await db
        .selectFrom("apiKeys")
        .select(["organizationId", "spaceId", "accountId"])
        .orderBy("createdAt")
        .executeTakeFirstOrThrow();
      return (await createApiKey(db, { ...owner, name: "limited", permissions }, clock())).token;
    },
    createForeignKey: () =>
      db.transaction().execute(async (trx) => {
        const names = { organization: "other", space: "other", account: "other" };
        const owner = await createOrganization(trx, names, clock());
        return (await createApiKey(trx, { ...owner, name: "other", permissions: ["*"] }, clock())).token;
      }),
    lines,
    deletions: () => deletions,
    metrics,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await refusals[Symbol.asyncDispose]();
      await connections[Symbol.asyncDispose]();
      await outbound[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
      throwUndocumented();
    },
  };
}

export function callerOf(call: Call): Caller {
  const succeed = async (method: string, path: string, body?: unknown): Promise<Answer["body"]> => {
    const answer = await call(method, path, body);
    if (answer.status !== 200)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  return Object.assign(call, {
    get: (path: string) => succeed("GET", path),
    post: (path: string, body: unknown = {}) => succeed("POST", path, body),
    put: (path: string, body: unknown = {}) => succeed("PUT", path, body),
    delete: (path: string) => succeed("DELETE", path),
    async expectRejection(method: string, path: string, body?: unknown): Promise<RejectedRequest> {
      const { status, body: error } = await call(method, path, body);
      if (status < 400) throw new Error(`${method} ${path} was not rejected: ${status}`);
      const paths = error.details?.map((detail: { readonly path: string }) => detail.path);
      return { status, code: error.code, ...(paths && { paths }) };
    },
  });
}

/** Tests make no DNS queries: the host names in examples belong to real servers. */
const lookupLocalhostOnly: LookupFunction = (name, options, callback) =>
  name === "localhost"
    ? lookup(name, options, callback)
    : callback(Object.assign(new Error("tests resolve no host names"), { code: "ENOTFOUND" }), "");

const isJson = (headers: Headers): boolean =>
  headers.get("content-type")?.startsWith("application/json") === true;

const DOCUMENT_PATH = "/v1/openapi.json";

/**
 * Shared by all APIs of the process that have the same channel kinds and thus the same document. Compiling
 * it for each API would take longer than most tests.
 */
let documentCheck: Promise<DocumentCheck> | undefined;

/** Checks every response in a test against the OpenAPI document. */
function checkAnswers(api: Hono<RequestEnv>, findings: string[], shares: boolean): MiddlewareHandler {
  let own: Promise<DocumentCheck> | undefined;
  const readDocument = async (): Promise<DocumentCheck> =>
    createDocumentCheck(await (await api.request(DOCUMENT_PATH)).json());
  return async (c, next) => {
    await next();
    if (c.req.path === DOCUMENT_PATH || c.res.headers.get("content-type")?.startsWith("text/event-stream"))
      return;
    if (shares) documentCheck ??= readDocument();
    else own ??= readDocument();
    const check = await (own ?? documentCheck);
    if (!check) return;
    const { status, headers } = c.res;
    const text = await c.res.clone().text();
    const path = c.req.path.slice("/v1".length);
    const finding = check({ method: c.req.method, path, status, headers, text });
    if (finding !== undefined) findings.push(finding);
  };
}

/** A bus whose every call fails, as when Redis is down. */
export function awayBus(): ApiBus {
  const fail = async (): Promise<never> => {
    throw new UnavailableError("this test has no Redis");
  };
  const away = <T extends object>(): T => new Proxy({}, { get: () => fail }) as T;
  return {
    redis: away(),
    groups: away(),
    topics: away(),
    entries: away(),
    quarantine: away(),
    deliveryRecords: away(),
    redrive: fail,
    publishTest: fail,
    explain: fail,
    redriveHeld: fail,
    explainRouting: fail,
    testRouting: fail,
    sendAgain: fail,
    findRetry: fail,
    readings: away(),
    positions: away(),
    states: away(),
    leases: away(),
    wakes: away(),
    runtimes: new Map(),
    findCompiledChannel: fail,
    onDeleted: async () => {},
  };
}
