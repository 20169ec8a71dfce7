import type { HttpBindings } from "@hono/node-server";
import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ClientAddress } from "../lib/addresses/client-address.ts";
import type { ReceiveHook } from "./hook-exchange.ts";

export type Fetch = (request: Request, bindings: HttpBindings) => Response | Promise<Response>;

/** The handlers of all requests to the gateway. */
export interface App {
  readonly fetch: Fetch;
  /** Receives requests to channel addresses from the fast path. `undefined` if this gateway has no hooks. */
  readonly receiveHook?: ReceiveHook | undefined;
}

export interface Confinement {
  /** Path parameter that contains the resource's id, such as `conversationId`. */
  readonly param: string;
  readonly id: string;
}

export interface Caller {
  readonly requestId: string;
  readonly by: "apiKey" | "accessToken" | "oidc" | "liveToken";
  /** The API key that was sent or that issued the access token. `null` for live tokens and tokens of another issuer. */
  readonly keyId: string | null;
  readonly accountId: string;
  readonly organizationId: string;
  /** The space for operations that do not name one. */
  readonly defaultSpaceId: string | null;
  readonly permissions: ReadonlySet<string>;
  /** Set for a token of another issuer that names no organization. Only routes with `unplaced` accept it. */
  readonly isUnplaced?: true;
  /** The only resource for which the token may be used, on routes that allow this restriction. */
  readonly confinedTo?: Confinement;
}

export interface RequestEnv {
  Variables: { requestId: string };
}

export interface ApiEnv {
  Variables: RequestEnv["Variables"] & { client: ClientAddress; limitState: RateLimitState; caller: Caller };
}
