import type { HttpBindings } from "@hono/node-server";
import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ClientAddress } from "../lib/addresses/client-address.ts";
import type { ReceiveHook } from "./hook-exchange.ts";

export type Fetch = (request: Request, bindings: HttpBindings) => Response | Promise<Response>;

/** The handlers of all requests to the gateway. */
export interface App {
  readonly fetch: Fetch;
  /** Receives webhook requests without `node:http`. `undefined` if this gateway does not receive webhooks. */
  readonly receiveHook?: ReceiveHook | undefined;
}

export interface Confinement {
  /** Name of the path parameter that contains the resource's id, such as `conversationId`. */
  readonly param: string;
  readonly id: string;
}

export interface Caller {
  readonly requestId: string;
  readonly by: "apiKey" | "accessToken" | "oidc" | "liveToken";
  /** API key that was sent or that issued the access token. `null` for all other tokens. */
  readonly keyId: string | null;
  readonly accountId: string;
  readonly organizationId: string;
  /** Space for operations that name no space. */
  readonly defaultSpaceId: string | null;
  readonly permissions: ReadonlySet<string>;
  /** Set if the token names no organization. Only some routes accept such a token. */
  readonly isUnplaced?: true;
  /** The only resource that this token may access. `undefined` for unrestricted tokens. */
  readonly confinedTo?: Confinement;
}

export interface RequestEnv {
  Variables: { requestId: string };
}

export interface ApiEnv {
  Variables: RequestEnv["Variables"] & { client: ClientAddress; limitState: RateLimitState; caller: Caller };
}
