import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ClientAddress } from "../lib/addresses/client-address.ts";
import type { PlainReply } from "./fast-path/plain-reply.ts";
import type { PlainRequest } from "./fast-path/plain-request.ts";

/** Handles one web request. `bindings` holds Node's own objects for the request. */
export type Fetch = (request: Request, bindings: HttpBindings) => Response | Promise<Response>;

/** A request that was read by `node:http` or by the fast path. */
export type Incoming = IncomingMessage | PlainRequest;

/** The response object that belongs to an `Incoming` request. */
export type Outgoing = ServerResponse | PlainReply;

/** Handles a request without creating a web `Request` and `Response`. Returns false if another handler must handle it. */
export type AnswerDirectly = (incoming: Incoming, outgoing: Outgoing) => boolean;

/** The handlers of all requests to the gateway. */
export interface App {
  readonly fetch: Fetch;
  /** Called for each request before `fetch`. If it returns false, `fetch` is called. */
  readonly answerDirectly?: AnswerDirectly | undefined;
}

/** Restricts a token to a single resource. */
export interface Confinement {
  /** Name of the path parameter that contains the id, for example `conversationId`. */
  readonly param: string;
  readonly id: string;
}

/** The authenticated caller of a management API request. */
export interface Caller {
  readonly requestId: string;
  readonly by: "apiKey" | "accessToken" | "oidc" | "liveToken";
  /** Id of the API key that was sent, or that issued the access token. `null` for a token of another issuer and for a live token. */
  readonly keyId: string | null;
  readonly accountId: string;
  readonly organizationId: string;
  /** Id of the space to use for operations that do not name one. */
  readonly defaultSpaceId: string | null;
  readonly permissions: ReadonlySet<string>;
  /** Set if the token is from another issuer and names no organization. Such a token can only use routes that allow this. */
  readonly isUnplaced?: true;
  /**
   * The resource to which the token is restricted. Such a token can only use routes that allow this restriction, and only for this
   * resource.
   */
  readonly confinedTo?: Confinement;
}

/** Variables that are set for every request. */
export interface RequestEnv {
  Variables: { requestId: string };
}

/** Variables that are set for a management API request once it is authenticated. */
export interface ApiEnv {
  Variables: RequestEnv["Variables"] & { client: ClientAddress; limitState: RateLimitState; caller: Caller };
}
