import { Events, type MutableResponse, OAuth2Server } from "oauth2-mock-server";
import { createConnections } from "../../src/gateway/connections.ts";
import { createLog } from "../../src/log.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import type { Credentials } from "../../src/net/credentials.ts";
import type { Outbound } from "../../src/net/outbound.ts";
import { createTestApi, type TestApi } from "../support/api.ts";
import { CLIENT } from "../support/oauth-provider.ts";

export const ORIGIN = "https://api.example.com";
export const REQUEST = { method: "GET", url: `${ORIGIN}/x`, headers: { accept: "*/*" } };
export const { signal } = new AbortController();

const allowNetworks = ["127.0.0.0/8", "::1/128"];

/** The API, a token issuer, and workers that only share the database. */
export interface ConnectionsRig extends AsyncDisposable {
  readonly api: TestApi;
  readonly issuer: OAuth2Server;
  /** Requests to the issuer's token endpoint. */
  tokenRequests: Record<string, string>[];
  /** Modifies the issuer's n-th response. */
  modifyResponse: ((response: MutableResponse, n: number) => void) | undefined;
  /** Offset of the workers' clocks, which otherwise do not move. */
  aheadMs: number;
  /** Log lines of the workers. */
  lines: string[];
  /** Starts a worker as in a gateway. `afterCall` delays each response of the token endpoint. */
  readonly startWorker: (afterCall?: () => Promise<void>) => (id: string) => Credentials;
  readonly stopWorkers: () => Promise<void>;
  /** Creates a connection and returns its id. */
  readonly create: (config: object, kind?: string) => Promise<string>;
  /** Settings of a client of the issuer. */
  readonly client: (more?: object) => object;
  /** The same with the refresh token `first`. */
  readonly refreshing: (more?: object) => object;
  readonly stateOf: (id: string) => Promise<string>;
  /** Must be called between tests. */
  readonly reset: () => Promise<void>;
}

export async function startConnectionsRig(): Promise<ConnectionsRig> {
  await using starting = new AsyncDisposableStack();
  const api = starting.use(await createTestApi({ allowNetworks }));
  const issuer = new OAuth2Server();
  await issuer.issuer.keys.generate("ES256");
  await issuer.start(0, "127.0.0.1");
  starting.defer(() => issuer.stop());
  issuer.service.on(Events.BeforeResponse, (response, request) => {
    rig.tokenRequests.push({
      ...(request.body as Record<string, string>),
      authorization: request.headers.authorization ?? "",
    });
    rig.modifyResponse?.(response, rig.tokenRequests.length);
  });
  let workers = new AsyncDisposableStack();
  starting.defer(() => workers.disposeAsync());
  let startMs = Date.now();
  const client = (more: object = {}) => ({
    grant: "clientCredentials",
    issuer: issuer.issuer.url,
    ...CLIENT,
    ...more,
  });
  const fresh = () => ({ tokenRequests: [], modifyResponse: undefined, aheadMs: 0, lines: [] });

  const owned = starting.move();
  const rig: ConnectionsRig = {
    api,
    issuer,
    client,
    ...fresh(),
    startWorker(afterCall = async () => {}) {
      const real = workers.use(createOutbound({ allowNetworks }));
      const outbound: Outbound = {
        ...real,
        async request(request, options) {
          const response = await real.request(request, options);
          if (request.method === "POST") await afterCall();
          return response;
        },
      };
      const destination = { write: (line: string) => void rig.lines.push(line) };
      const log = createLog({ level: "debug", destination });
      const clock = () => startMs + rig.aheadMs;
      const { keyring, database } = api;
      return workers.use(createConnections({ db: database.db, keyring, outbound, clock, log })).credentialsOf;
    },
    async stopWorkers() {
      const stopped = workers;
      workers = new AsyncDisposableStack();
      await stopped.disposeAsync();
    },
    create: async (config, kind = "oauth2") =>
      (await api.call.post("/connections", { name: "x", kind, config, allowedOrigins: [ORIGIN] })).id,
    refreshing: (more) => client({ grant: "refreshToken", refreshToken: "first", ...more }),
    stateOf: async (id) => (await api.call.get(`/connections/${id}`)).state,
    async reset() {
      await rig.stopWorkers();
      startMs = Date.now();
      Object.assign(rig, fresh());
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  return rig;
}

/** Returns the token that a request is sent with. */
export const tokenOf = async (credentials: Credentials): Promise<string | undefined> =>
  (await credentials.authorize(REQUEST, { signal })).request.headers.authorization;

/** Returns a new access token and a new refresh token in each response. */
export const rotate = (response: MutableResponse, n: number): void => {
  Object.assign(response.body as object, {
    access_token: `access-${n}`,
    refresh_token: `refresh-${n}`,
    expires_in: 600,
  });
};
