import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { RedisBus } from "../bus/connection/redis.ts";
import { createEventCursors } from "../bus/topics/event-cursors.ts";
import { createTopicReader } from "../bus/topics/read-after.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import { type AuthenticateDeps, authenticate } from "../http/callers/authenticate.ts";
import { createStillAllowed, requireAllowed } from "../http/callers/authorize.ts";
import type { ApiEnv, RequestEnv } from "../http/context.ts";
import { ApiError } from "../http/errors.ts";
import { type ShowLimitsDeps, showLimits } from "../http/limits.ts";
import { countRejections, requestLog, requestMetrics } from "../http/request.ts";
import type { Metrics } from "../metrics.ts";
import type { CallApi } from "./call-tool.ts";
import { createServer, type McpServerDeps } from "./server.ts";
import { TOOLS } from "./tools.ts";

export interface McpDeps
  extends AuthenticateDeps,
    ShowLimitsDeps,
    Omit<McpServerDeps, "specs" | "reader" | "cursors"> {
  readonly redis: RedisBus;
  readonly keyring: Keyring;
  readonly metrics: Metrics;
  readonly refusals: Parameters<typeof countRejections>[0];
  /** Public base URL of the API, such as `https://inlet.example/v1`. */
  readonly baseUrl: string;
  readonly config: {
    /** Whether agents get tools that change something. */
    readonly mcpWrites: boolean;
    /** Issuer of the callers' tokens. `undefined` if callers only use API keys. */
    readonly oidcIssuer: string | undefined;
  };
  /** Handles a request as if it had arrived on the connection of `c`. */
  readonly fetch: (request: Request, c: Context) => Response | Promise<Response>;
}

const MAX_ORIGIN_CHARS = 200;
/** Headers of an MCP request that the API needs to identify the caller. */
const PASSED_HEADERS = ["authorization", "x-organization-id", "x-forwarded-for"];

/**
 * Creates the MCP server at `POST /mcp` (Streamable HTTP without sessions), and the metadata with which clients find the issuer of its
 * tokens (RFC 9728, section 3).
 */
export function createMcp(deps: McpDeps): Hono<RequestEnv> {
  const { log, clock, metrics, refusals, baseUrl, config } = deps;
  const root = baseUrl.replace(/\/v1$/, "");
  const mcp = new Hono<ApiEnv>();
  const specs = TOOLS.filter(({ writes = false }) => config.mcpWrites || !writes);
  const stillAllowed = createStillAllowed(deps);
  let server: ReturnType<typeof createServer> | undefined;
  mcp.use("/mcp", requestMetrics(metrics), requestLog({ log, clock }), showLimits(deps));
  mcp.use("/mcp", countRejections(refusals), rejectForeignOrigins(new URL(root).origin));
  if (config.oidcIssuer !== undefined) {
    const metadata = {
      resource: `${root}/mcp`,
      authorization_servers: [config.oidcIssuer],
      bearer_methods_supported: ["header"],
    };
    for (const path of ["", "/mcp"]) mcp.get(`${METADATA_PATH}${path}`, (c) => c.json(metadata));
    mcp.use("/mcp", nameMetadata(root));
  }
  mcp.use("/mcp", authenticate(deps));
  mcp.post("/mcp", async (c) => {
    const caller = c.get("caller");
    requireAllowed(caller, { permission: null });
    server ??= createServer({
      ...deps,
      specs,
      reader: createTopicReader(deps),
      cursors: createEventCursors(deps.keyring),
    });
    return (await server).answer(c.req.raw, {
      caller,
      callApi: createCallApi(deps, c),
      stillAllowed: (permission) => stillAllowed(c, permission),
    });
  });
  return mcp as unknown as Hono<RequestEnv>;
}

const METADATA_PATH = "/.well-known/oauth-protected-resource";

/**
 * Rejects requests of web pages from other origins. A browser sends the header `Origin` with them, and other clients do not (MCP,
 * Streamable HTTP, security warning).
 */
function rejectForeignOrigins(own: string): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const origin = c.req.header("origin");
    if (origin !== undefined && origin !== own)
      throw new ApiError(
        "permission_denied",
        `Web pages of ${JSON.stringify(origin.slice(0, MAX_ORIGIN_CHARS))} may not use this MCP server.`,
      );
    await next();
  };
}

/** Adds the address of the metadata to a 401 response (RFC 9728, section 5.1). */
function nameMetadata(root: string): MiddlewareHandler<ApiEnv> {
  const { origin, pathname } = new URL(root);
  const address = `${origin}${METADATA_PATH}${pathname === "/" ? "" : pathname}/mcp`;
  return async (c, next) => {
    await next();
    const challenge = c.res.headers.get("www-authenticate");
    if (challenge !== null) c.header("WWW-Authenticate", `${challenge} resource_metadata="${address}"`);
  };
}

/** Creates a function that sends API requests with the token of the MCP request, over the same connection. */
function createCallApi({ fetch, baseUrl }: McpDeps, c: Context<ApiEnv>): CallApi {
  const headers = new Headers({ "content-type": "application/json", "x-request-id": c.get("requestId") });
  for (const name of PASSED_HEADERS) {
    const value = c.req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  return async ({ method, path, body }) => {
    const url = new URL(`/v1${path}`, baseUrl);
    return fetch(new Request(url, { method, headers, ...(body !== undefined && { body }) }), c);
  };
}
