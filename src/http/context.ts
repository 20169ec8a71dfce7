import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ClientAddress } from "../lib/addresses/client-address.ts";
import type { PlainReply } from "./fast-path/plain-reply.ts";
import type { PlainRequest } from "./fast-path/plain-request.ts";

/** Answers one request; `bindings` hold Node's own beneath it. */
export type Fetch = (request: Request, bindings: HttpBindings) => Response | Promise<Response>;

/** A request as Node reads it, or as the fast path does. */
export type Incoming = IncomingMessage | PlainRequest;

/** What answers it. */
export type Outgoing = ServerResponse | PlainReply;

/** Answers requests without web requests and responses, where it says that they are its own. */
export type AnswerDirectly = (incoming: Incoming, outgoing: Outgoing) => boolean;

/** All that answers at an address. */
export interface App {
  readonly fetch: Fetch;
  /** Asked first. */
  readonly answerDirectly?: AnswerDirectly | undefined;
}

/** The only thing that a token is good for, as it stands in paths. */
export interface Confinement {
  /** The parameter that names it: `conversationId`. */
  readonly param: string;
  readonly id: string;
}

/** Who calls the management API, as the token says, and in which request. */
export interface Caller {
  readonly requestId: string;
  readonly by: "apiKey" | "accessToken" | "oidc" | "liveToken";
  /** The API key, be it brought itself or by an access token; null: another issuer's token, or a live one. */
  readonly keyId: string | null;
  readonly accountId: string;
  readonly organizationId: string;
  /** The space that an operation falls in where it names none. */
  readonly defaultSpaceId: string | null;
  readonly permissions: ReadonlySet<string>;
  /** Another issuer's token that names no organization: it opens no more than the routes that say so. */
  readonly isUnplaced?: true;
  /** It opens no more than the routes that say so, for that one thing; undefined: what its permissions open. */
  readonly confinedTo?: Confinement;
}

/** Every request carries these. */
export interface RequestEnv {
  Variables: { requestId: string };
}

/** A request of the management API carries these once it is authenticated. */
export interface ApiEnv {
  Variables: RequestEnv["Variables"] & { client: ClientAddress; limitState: RateLimitState; caller: Caller };
}
