import type { ChannelHandle, IngestResult } from "../event/ingest.ts";
import type { Values } from "../event/values.ts";
import type { Finding } from "../lib/errors.ts";
import type { Result } from "../lib/result.ts";
import type { Credentials } from "../net/credentials.ts";

/** One stream frame or poll page that the gateway fetched. Secrets are already removed. */
export interface FetchedDelivery {
  /** Headers that the channel's rules can read and quarantine records store. Their names are lowercase. */
  readonly headers: Values;
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** Event id to use if `idPath` finds none. */
  readonly deliveryId?: string;
}

/**
 * One run of a source: one stream connection or one poll. All writes are fenced. When another worker takes the source over or someone sets
 * its cursor, `ingest` and `moveTo` throw `StaleSourceError` and the run ends.
 */
export interface SourceRun {
  readonly channel: ChannelHandle;
  /** The channel's `config` with decrypted secrets, as the kind's schema parsed it. */
  readonly settings: unknown;
  readonly credentials: Credentials | undefined;
  /** `undefined` on the first run and after a reset. */
  readonly cursor: string | undefined;
  /** When the source first ran or its cursor was last reset, in ms since the Unix epoch. `startAt: "now"` refers to this time. */
  readonly startedAtMs: number;
  /**
   * Publishes a delivery and moves the cursor to `cursor` in the same write. Without `cursor`, the stored cursor does not change. May be
   * called before earlier calls resolve. Writes keep the order of the calls, and after one fails, all later ones fail.
   * @throws UnavailableError when the result of the write is unknown. The run must end. The next run starts at the stored cursor.
   * @throws StaleSourceError
   */
  readonly ingest: (
    delivery: FetchedDelivery,
    options: { readonly cursor?: string; readonly signal: AbortSignal },
  ) => Promise<IngestResult>;
  /** Moves the cursor without publishing a delivery. Throws the same errors as `ingest`. */
  readonly moveTo: (cursor: string, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** Must be called by the channel kind when the stream is open or the poll has its response. */
  readonly opened: () => void;
  /** Reports a problem that does not stop the source, such as a gap or a truncated page. */
  readonly warn: (code: string, message: string) => void;
  /** Aborts when the run must end: the source is paused or handed over, or the gateway shuts down. */
  readonly signal: AbortSignal;
}

export interface StreamRun extends SourceRun {
  /**
   * Publishes deliveries in order with as few writes as possible. Each write also moves the cursor past the deliveries in it. In all other
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
 * - `broken`: no valid request can be built from the channel's settings.
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
      /** The channel state to set if rejections persist. Defaults to `error`. */
      readonly stateIfPersistent?: "needsReauth";
    }
  | { readonly kind: "finished"; readonly message: string }
  | { readonly kind: "broken"; readonly code: string; readonly message: string }
  | { readonly kind: "needsReauth"; readonly message: string };

/** How long to wait between the connections of a stream. The wait grows with each failure. */
export interface ReconnectPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** Fraction of each wait that is random, from 0 to 1. */
  readonly jitter: number;
  /** A stream that stays open for this long resets the wait to `initialMs`. */
  readonly resetAfterMs: number;
}

/** A source with a long-lived connection. The worker that holds the source's lease calls `runConnection` in a loop. */
export interface StreamSource {
  readonly reconnect: (settings: unknown) => ReconnectPolicy;
  /** Runs one connection until it ends. Server errors are returned as a `SourceEnd`, never thrown. */
  readonly runConnection: (run: StreamRun) => Promise<SourceEnd>;
}

export type PollSchedule =
  | { readonly everySeconds: number; readonly jitter: number }
  | { readonly cron: string; readonly timezone: string; readonly jitter: number };

/** A dry run publishes no events and does not move the cursor. */
export interface DryRun {
  /** The request as sent, with secrets removed. */
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: Values;
    readonly body: string | null;
  };
  readonly response: { readonly status: number; readonly headers: Values; readonly bytes: number } | null;
  readonly deliveries: readonly FetchedDelivery[];
  readonly cursor: string | null;
  readonly end: SourceEnd;
}

export interface PolledSource {
  readonly schedule: (settings: unknown) => PollSchedule;
  /** Returns the origin (scheme, host and port) that the polls call. The number of concurrent polls is limited per origin. */
  readonly origin: (settings: unknown) => string;
  readonly poll: (run: SourceRun) => Promise<SourceEnd>;
  /** Runs a poll of at most one page without publishing. `cursor` replaces the stored cursor. */
  readonly dryRun: (
    run: Pick<SourceRun, "channel" | "settings" | "credentials" | "cursor" | "startedAtMs" | "signal">,
  ) => Promise<DryRun>;
}

export interface CursorFormat {
  readonly show: (cursor: string) => unknown;
  /** Parses a cursor set through the API. Each finding names the invalid field. */
  readonly parse: (value: unknown, settings: unknown) => Result<string, readonly Finding[]>;
}
