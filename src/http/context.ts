import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ClientAddress } from "../lib/addresses/client-address.ts";
import type { PlainReply } from "./fast-path/plain-reply.ts";
import type { PlainRequest } from "./fast-path/plain-request.ts";

/** Handles one request. `bindings` holds the underlying Node objects. */
export type Fetch = (request: Request, bindings: HttpBindings) => Response | Promise<Response>;

/** A request read by `node:http` or by the fast path. */
export type Incoming = IncomingMessage | PlainRequest;

/** The response to an `Incoming`. */
export type Outgoing = ServerResponse | PlainReply;

/** Handles a request without a web `Request` and `Response`. Returns false if the request is for another handler. */
export type AnswerDirectly = (incoming: Incoming, outgoing: Outgoing) => boolean;

/** The handlers of all requests. */
export interface App {
  readonly fetch: Fetch;
  /** Called first, if present. */
  readonly answerDirectly?: AnswerDirectly | undefined;
}

/** The only resource that a confined token may access. */
export interface Confinement {
  /** Name of the path parameter that contains the id, for example `conversationId`. */
  readonly param: string;
  readonly id: string;
}

/** The authenticated caller of a management API request. */
export interface Caller {
  readonly requestId: string;
  readonly by: "apiKey" | "accessToken" | "oidc" | "liveToken";
  /** The API key that was sent, or that issued the access token. `null` for a token of another issuer and for a live token. */
  readonly keyId: string | null;
  readonly accountId: string;
  readonly organizationId: string;
  /** The space of operations that do not name one. */
  readonly defaultSpaceId: string | null;
  readonly permissions: ReadonlySet<string>;
  /** Set for a token of another issuer that names no organization. It only opens routes that allow this. */
  readonly isUnplaced?: true;
  /** If set, the token only opens routes that allow this confinement, and only for this resource. */
  readonly confinedTo?: Confinement;
}

/** Set for every request. */
export interface RequestEnv {
  Variables: { requestId: string };
}

/** Set for a management API request once it is authenticated. */
export interface ApiEnv {
  Variables: RequestEnv["Variables"] & { client: ClientAddress; limitState: RateLimitState; caller: Caller };
}
