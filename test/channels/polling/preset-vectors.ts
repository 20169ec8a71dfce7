import { readdirSync, readFileSync } from "node:fs";

/** A response of the provider. Its own origin in texts and headers is replaced by that of the test's server. */
export interface VectorResponse {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, or as it is if it is a text. */
  readonly body?: unknown;
}

export interface VectorExchange {
  /** Method and address with decoded query parameters in any order, such as `GET /items?since=2026-01-01T00:00:00Z`. */
  readonly request: string;
  /** Headers that the request must have. */
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON body that the request must have. */
  readonly body?: unknown;
  readonly response: VectorResponse;
}

/** Polls until no more items are available at once. */
export interface VectorPoll {
  readonly title: string;
  /** Time of the poll. Defaults to one interval after the previous one. */
  readonly at?: string;
  readonly exchanges: readonly VectorExchange[];
  /** Ids of the events that the poll publishes, in order. */
  readonly published: readonly string[];
  /** Kind of the poll's end, with its code if it failed. Defaults to `done`. */
  readonly end?: string;
  readonly warnings?: readonly string[];
  /** The cursor after the poll, as the API shows it. */
  readonly cursor?: unknown;
}

/** Responses of a provider to the polls of one stream, and the resulting events. */
export interface PollingVector {
  readonly preset: string;
  readonly stream: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The provider's origin. */
  readonly origin: string;
  /** Settings of the channel, such as a small page size. By default, the channel starts at the earliest item. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly polls: readonly VectorPoll[];
  /** Items and the webhooks of the same events. Required if the stream can find missed events. */
  readonly reconciled?: readonly VectorPair[];
}

export interface VectorPair {
  readonly title: string;
  readonly webhook: { readonly headers?: Readonly<Record<string, string>>; readonly body: unknown };
  readonly item: unknown;
}

const FOLDER = new URL("../../vectors/polling/", import.meta.url);

export const readPollingVectors = (): readonly PollingVector[] =>
  readdirSync(FOLDER)
    .filter((file) => file.endsWith(".json"))
    .map((file) => JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")));
