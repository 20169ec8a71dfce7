import type { ChannelHandle, IngestResult } from "../event/ingest.ts";
import type { Reconciled } from "../event/received.ts";
import type { Values } from "../event/values.ts";
import type { Finding } from "../lib/errors.ts";
import type { Result } from "../lib/result.ts";
import type { Credentials } from "../net/credentials.ts";

/** One event or page that the gateway fetched from a server. Secrets are already removed. */
export interface FetchedDelivery {
  /** Headers that rules can read, with lowercase names. They are stored if the delivery is quarantined. */
  readonly headers: Values;
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** Event id for deliveries in which `idPath` finds no id. */
  readonly deliveryId?: string;
  /** Query parameters of a delivery that stands for a request. */
  readonly query?: Values;
  /** `traceparent` of the poll, if it is sampled. */
  readonly fetchedBy?: string;
  /** Set if the delivery stands for a webhook that its channel may have missed. */
  readonly reconciled?: Reconciled;
}

/**
 * One connection or poll of a source. Its writes throw `StaleSourceError` after another worker has taken over or someone has set the
 * cursor.
 */
export interface SourceRun {
  readonly channel: ChannelHandle;
  /** Settings of the channel as parsed by its kind, with decrypted secrets. */
  readonly config: unknown;
  readonly credentials: Credentials | undefined;
  /** Stored read position. `undefined` on the first run and after a reset. */
  readonly cursor: string | undefined;
  /** When the source first ran or its cursor was last reset, in ms since the Unix epoch. `startAt: "now"` means this time. */
  readonly startedAtMs: number;
  /**
   * Publishes a delivery and moves the cursor to `cursor` in the same write. May be called before earlier calls resolve. Writes keep the
   * order of the calls, and after one fails, all later ones fail.
   * @throws UnavailableError when the result of the write is unknown. The run must end. The next run starts at the stored cursor.
   * @throws StaleSourceError
   */
  readonly ingest: (
    delivery: FetchedDelivery,
    options: { readonly cursor: string; readonly signal: AbortSignal },
  ) => Promise<IngestResult>;
  /** Stores a new cursor without publishing. Throws the same errors as `ingest`. */
  readonly moveTo: (cursor: string, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** The channel kind must call this when the stream is open or the poll has received its response. */
  readonly opened: () => void;
  /** Adds the requests of a poll to its record. Called once, when the poll has ended. */
  readonly notePoll?: (facts: PollFacts) => void;
  /** Reports a problem that does not stop the source, such as a gap in a stream or a truncated page. */
  readonly warn: (code: string, message: string) => void;
  /** Set if the source reconciles another channel that exists. */
  readonly reconcile?: ReconcileRun | undefined;
  /** Aborts when this run must end, because the source was paused, another worker takes over, or the gateway stops. */
  readonly signal: AbortSignal;
}

/** The requests of a poll. */
export interface PollFacts {
  readonly requests: number;
  /** Method and status of the last request. `undefined` if there was none, or no response. */
  readonly method: string | undefined;
  readonly status: number | undefined;
  /** Number of items in the responses. */
  readonly items: number;
}

/** Result of comparing a provider's items with a webhook channel, in items. */
export interface ReconcileFindings {
  readonly items: number;
  /** Items whose events the channel had received. */
  readonly known: number;
  /** Items whose missed events were published. */
  readonly recovered: number;
  /** Items that are older than the dedupe window, and were only listed. */
  readonly listed: number;
  /** Items in quarantine for another reason. */
  readonly failed: number;
  /** Period of the recovered and listed items. `undefined` if there are none. */
  readonly missed:
    | { readonly count: number; readonly oldestMs: number; readonly newestMs: number }
    | undefined;
}

/** The part of a run that publishes items as deliveries of another channel, to find the events that the channel missed. */
export interface ReconcileRun {
  /** Uid of the webhook channel. */
  readonly channelUid: string;
  /** Hash of the webhook channel's settings that decide which ids its events get. */
  readonly idRules: string;
  /** Returns whether the webhook channel may have received an event of this time and forgotten its id. Both times are in ms. */
  readonly isForgotten: (atMs: number, nowMs: number) => boolean;
  /** Whether the webhook channel is paused or still publishes the deliveries of a pause. Items cannot be compared meanwhile. */
  readonly isPaused: boolean;
  /**
   * Compares deliveries with the events that the channel knows, without publishing.
   * @param options.sinceMs time of the oldest delivery, in ms since the Unix epoch
   * @throws UnavailableError
   */
  readonly compare: (
    deliveries: readonly FetchedDelivery[],
    options: { readonly sinceMs: number },
  ) => Promise<{
    /** Whether an event of the deliveries is known. */
    readonly isKnown: boolean;
    /** When the channel received the first event of the same types since then. `undefined` if it received none, or if an event is known. */
    readonly firstReceivedMs: number | undefined;
  }>;
  readonly ingestAll: StreamRun["ingestAll"];
  /** Adds findings to the visible state of the source. */
  readonly report: (findings: ReconcileFindings) => Promise<void>;
}

export interface StreamRun extends SourceRun {
  /**
   * Publishes deliveries in order, in as few writes as possible. Each write also stores a cursor after its last delivery. In all other
   * respects it behaves like `ingest`, and both share one write order.
   * @param options.cursorAfter returns the cursor to store after the delivery at index `n`, counted from 0
   */
  readonly ingestAll: (
    deliveries: readonly FetchedDelivery[],
    options: { readonly cursorAfter: (n: number) => string; readonly signal: AbortSignal },
  ) => Promise<readonly IngestResult[]>;
}

/**
 * How a run ended.
 * - `done`: the source continues on schedule, but not before `notBeforeMs`.
 * - `failed`: the source continues after a growing wait. If failures with `isRejection` last for minutes, the channel's state becomes
 * `stateIfPersistent`.
 * - `finished`: the server announced the end (HTTP 204 or `stopOn`). Only a person can resume the source.
 * - `broken`: no valid request can be built from the channel's config, or the data contradicts the config.
 * - `needsReauth`: the OAuth grant is no longer valid, so there are no credentials.
 * In the channel states `error` and `needsReauth`, the source is retried at long intervals and recovers automatically.
 */
export type SourceEnd =
  | { readonly kind: "done"; readonly notBeforeMs?: number }
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly message: string;
      readonly notBeforeMs?: number;
      readonly isRejection?: true;
      /** State of the channel after repeated rejections. Defaults to `error`. */
      readonly stateIfPersistent?: "needsReauth";
    }
  | { readonly kind: "finished"; readonly message: string }
  | { readonly kind: "broken"; readonly code: string; readonly message: string }
  | { readonly kind: "needsReauth"; readonly message: string };

/** Backoff between connections of a stream. The wait grows with each failure. */
export interface ReconnectPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** Fraction of each wait that is random, from 0 to 1. */
  readonly jitter: number;
  /** Duration in ms after which an open stream resets the wait to `initialMs`. */
  readonly resetAfterMs: number;
}

/** A source with a long-lived connection. One worker at a time calls `runConnection` in a loop. */
export interface StreamSource {
  readonly reconnect: (config: unknown) => ReconnectPolicy;
  /** Runs one connection until it ends. Server errors are returned as a `SourceEnd`, never thrown. */
  readonly runConnection: (run: StreamRun) => Promise<SourceEnd>;
}

export type PollSchedule =
  | { readonly everySeconds: number; readonly jitter: number }
  | { readonly cron: string; readonly timezone: string; readonly jitter: number };

/** Result of a test poll, which publishes no events and does not store a cursor. */
export interface DryRun {
  /** The request that was sent, without secrets. */
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: Values;
    readonly body: string | null;
  };
  readonly response: { readonly status: number; readonly headers: Values; readonly bytes: number } | null;
  readonly deliveries: readonly FetchedDelivery[];
  /** Number of items in the response that are not new. */
  readonly known: number;
  readonly cursor: string | null;
  readonly end: SourceEnd;
}

export interface PolledSource {
  readonly schedule: (config: unknown) => PollSchedule;
  /** Returns the origin (scheme, host and port) that the polls call. The number of concurrent polls is limited per origin. */
  readonly origin: (config: unknown) => string;
  readonly poll: (run: SourceRun) => Promise<SourceEnd>;
  /** Polls at most one page without publishing its items. `cursor` replaces the stored cursor. */
  readonly dryRun: (
    run: Pick<SourceRun, "channel" | "config" | "credentials" | "cursor" | "startedAtMs" | "signal"> & {
      readonly reconcile?: Pick<ReconcileRun, "channelUid" | "isForgotten"> | undefined;
    },
  ) => Promise<DryRun>;
}

export interface CursorFormat {
  readonly show: (cursor: string) => unknown;
  /** Converts a cursor from the API to its stored form. Each error names the invalid field. */
  readonly parse: (value: unknown, config: unknown) => Result<string, readonly Finding[]>;
}
