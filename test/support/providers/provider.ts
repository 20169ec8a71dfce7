import type { z } from "zod";
import type { Hook, RecordedRequest, Step } from "./emulator.ts";

/** A request to the provider's API. */
export interface Call extends RecordedRequest {
  readonly url: URL;
  /** Parts of the path, by their names in the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly form: URLSearchParams;
  /** Parses the JSON body. `undefined` if the schema rejects it. */
  readonly read: <Schema extends z.ZodType>(schema: Schema) => z.output<Schema> | undefined;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON, or unchanged if it is a text. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Called after the response was sent. */
  readonly after?: () => Promise<unknown>;
}

export interface Route {
  /** Step of a request, for paths that serve several. */
  readonly step: Step | ((call: Call) => Step);
  /** Method and path, such as `GET /hooks/:id`. */
  readonly on: string;
  readonly handle: (call: Call) => Answer | Promise<Answer>;
}

export interface Message {
  /** Id of the delivery, equal in redeliveries. */
  readonly id: string;
  readonly payload: unknown;
  readonly event: string | undefined;
  readonly nowMs: number;
}

export interface Outgoing {
  readonly method?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Reply {
  /** 0 if there was no response. */
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Parts in which providers differ. */
export interface Provider<H extends Hook> {
  readonly routes: readonly Route[];
  /** Maximum number of webhooks. */
  readonly quota?: number;
  /** Returns the token of a request. By default, it follows `Bearer`. */
  readonly readToken?: (call: Call) => string | undefined;
  readonly unauthorized: Answer;
  /** Response to a token without the permission. */
  readonly forbidden: Answer | ((call: Call) => Answer);
  /** Response to an unknown path, and to the id of an unknown webhook unless `gone` differs. */
  readonly notFound: Answer;
  readonly gone?: (id: string) => Answer;
  readonly makeForeign: (address: string) => H;
  /** Returns whether the webhook receives events of the type. By default, its list of events decides. */
  readonly receives?: (hook: H, event: string | undefined) => boolean;
  /** Builds a signed delivery. */
  readonly sign: (hook: H, message: Message) => Outgoing | Promise<Outgoing>;
}

export interface ProviderContext<H extends Hook> {
  readonly nowMs: () => number;
  readonly origin: string;
  readonly token: string;
  readonly appSecret: string;
  /** Returns a new number for an id. */
  readonly nextNumber: () => number;
  readonly quota: () => number;
  readonly hooks: {
    /** Webhooks that have not expired, in the order of their creation. */
    readonly list: () => readonly H[];
    readonly find: (id: string | undefined) => H | undefined;
    /** Adds or replaces a webhook. */
    readonly put: (hook: H) => H;
    /** Returns whether the webhook existed. */
    readonly remove: (id: string | undefined) => boolean;
  };
  /** Handles a request about the webhook whose id is the part `id` of the path. */
  readonly withHook: (handle: (hook: H, call: Call) => Answer | Promise<Answer>) => Route["handle"];
  readonly send: (address: string, outgoing: Outgoing) => Promise<Reply>;
}
