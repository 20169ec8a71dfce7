import { Hono } from "hono";
import type { ChannelKind } from "../../src/channels/kind.ts";
import { channelKinds } from "../../src/channels/kinds.ts";
import type { CheckDefinitions } from "../../src/channels/settings.ts";
import { createApiKey } from "../../src/data/api-keys.ts";
import { bootstrap } from "../../src/data/bootstrap.ts";
import { type Keyring, openKeyring } from "../../src/data/keyring.ts";
import { createOrganization } from "../../src/data/organizations.ts";
import { answerErrors } from "../../src/http/answers.ts";
import type { RequestEnv } from "../../src/http/context.ts";
import { requestId } from "../../src/http/request-id.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { type ApiDeps, createApi } from "../../src/resources/resources.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // Tests look into answers of every shape.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly body: any;
}

/** Sends a JSON body as that token; `path` is below the version. */
export type Call = (method: string, path: string, body?: unknown) => Promise<Answer>;

/** What the API needs of the bus, and what it tells it. */
export type ApiBus = Pick<
  ApiDeps,
  "redis" | "groups" | "topics" | "entries" | "quarantine" | "redrive" | "findLiveChannel" | "onDeleted"
>;

export interface TestApi extends AsyncDisposable {
  readonly app: Hono<RequestEnv>;
  readonly database: TestDatabase;
  readonly keyring: Keyring;
  /** As the organization `default`, with all permissions. */
  readonly call: Call;
  readonly as: (token: string) => Call;
  /** A key of the organization `default` with these permissions only. */
  readonly keyWith: (...permissions: string[]) => Promise<string>;
  /** Another organization's key with all permissions. */
  readonly strangerKey: () => Promise<string>;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  readonly deletions: () => number;
  readonly metrics: Metrics;
}

/** Stands in for the compilers of paths and schemas, which are tested where they are: a path begins with `$`. */
const checkDefinitions: CheckDefinitions = async ({ definitions }) =>
  definitions.flatMap(({ typePath }, index) =>
    typePath === undefined || typePath.startsWith("$")
      ? []
      : [{ path: `events[${index}].typePath`, message: "is not a path" }],
  );

/** The API over a real database, as the gateway mounts it. */
export async function createTestApi(
  options: {
    readonly extraKinds?: readonly ChannelKind[];
    /** Without it the API behaves as when Redis is away. */
    readonly openBus?: (database: TestDatabase, keyring: Keyring) => Promise<ApiBus>;
  } = {},
): Promise<TestApi> {
  const database = await createTestDatabase();
  const { db } = database;
  const clock = Date.now;
  const keyring = await openKeyring({ db, masterKey: Buffer.alloc(32, 1), clock });
  const { apiKey = "" } = await bootstrap({ db, keyring, clock });
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    level: "info",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const metrics = createMetrics();
  let deletions = 0;
  const bus = (await options.openBus?.(database, keyring)) ?? awayBus();
  const app = new Hono<RequestEnv>();
  app.use(requestId(clock));
  app.route(
    "/v1",
    createApi({
      ...bus,
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
      hooksUrl: () => "https://hooks.example",
      readChanges: async () => {},
      async onDeleted() {
        deletions++;
        await bus.onDeleted();
      },
    }),
  );
  answerErrors(app);

  const as =
    (token: string): Call =>
    async (method, path, body) => {
      const response = await app.request(`/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      return { status: response.status, headers: response.headers, body: await response.json() };
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
      return createApiKey(db, { ...owner, name: "limited", permissions }, clock());
    },
    strangerKey: () =>
      db.transaction().execute(async (trx) => {
        const names = { organization: "other", space: "other", account: "other" };
        const owner = await createOrganization(trx, names, clock());
        return createApiKey(trx, { ...owner, name: "other", permissions: ["*"] }, clock());
      }),
    lines,
    deletions: () => deletions,
    metrics,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

function awayBus(): ApiBus {
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
    redrive: fail,
    findLiveChannel: fail,
    onDeleted: async () => {},
  };
}
