import type { ChannelHandle, IngestResult } from "../event/ingest.ts";
import type { Values } from "../event/values.ts";
import type { Finding } from "../lib/errors.ts";
import type { Result } from "../lib/result.ts";
import type { Credentials } from "../net/credentials.ts";

/** One frame or page that the gateway fetched itself. What of it is secret was taken out before. */
export interface FetchedDelivery {
  /** Seen by its rules and its quarantine record; names in lower case. */
  readonly headers: Values;
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** Names the delivery where no `idPath` does. */
  readonly deliveryId?: string;
}

/**
 * The arguments of one run of a source: one connection of a stream, one poll. Everything in it is fenced: once another worker
 * has taken the source over, or its cursor was set by hand, `ingest` and `moveTo` refuse with `StaleSourceError`, and the run ends.
 */
export interface SourceRun {
  readonly channel: ChannelHandle;
  /** The channel's `config` with its opened secrets, as the kind's schema gave it. */
  readonly settings: unknown;
  readonly credentials: Credentials | undefined;
  /** Where the source stands: what was last moved to; undefined at the very first, and after a reset. */
  readonly cursor: string | undefined;
  /** When the source began to be one, or its cursor was reset, in ms: what `startAt: "now"` means. */
  readonly startedAtMs: number;
  /**
   * Publishes a delivery, with the cursor moved to `cursor` in the same write (not moved where it is absent). May be called
   * again before the last call has resolved: writes keep the order of the calls, and once one has failed all later ones do.
   *
   * @throws UnavailableError when what became of it is not certain: the run must end; the next one begins at the stored cursor.
   * @throws StaleSourceError
   */
  readonly ingest: (
    delivery: FetchedDelivery,
    options: { readonly cursor?: string; readonly signal: AbortSignal },
  ) => Promise<IngestResult>;
  /** Moves the cursor alone. Throws as `ingest` does. */
  readonly moveTo: (cursor: string, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** The stream is open, or the poll's answer is there: what was wrong is over. */
  readonly opened: () => void;
  /** Something happened that a person should see though the source goes on: a gap, a page that was cut. */
  readonly warn: (code: string, message: string) => void;
  /** Aborts when the run must end: the source is paused, handed over, or the gateway stops. */
  readonly signal: AbortSignal;
}

/** One connection of a stream. */
export interface StreamRun extends SourceRun {
  /**
   * Publishes deliveries in their order, in as few writes as may be; each write moves the cursor past those that it brings.
   * Otherwise as `ingest`, and in one order with it.
   *
   * @param options.cursorAfter where the source stands after the `n`th of them, from 0
   */
  readonly ingestAll: (
    deliveries: readonly FetchedDelivery[],
    options: { readonly cursorAfter: (n: number) => string; readonly signal: AbortSignal },
  ) => Promise<readonly IngestResult[]>;
}

/**
 * How a run ended. `done`: go on by the plan (a stream reconnects, a poll comes when it is due), not before `notBeforeMs`.
 * `failed`: the same after a growing wait; where it `isRefusal` again and again over some minutes (a wrong content type, a request
 * or credentials that the sender refuses) the channel shows `lastingState`. `finished`: the sender said that there will be no
 * more (HTTP 204, `stopOn`): not again before a person resumes it. `broken`: the channel's own settings make no sound request.
 * `needsReauth`: there are no credentials, as their grant is dead. After an error, or a `needsReauth`, the source is tried now and
 * then, and goes on by itself once that succeeds.
 */
export type SourceEnd =
  | { readonly kind: "done"; readonly notBeforeMs?: number }
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly message: string;
      readonly notBeforeMs?: number;
      readonly isRejection?: true;
      /** Default: `error`. */
      readonly stateIfPersistent?: "needsReauth";
    }
  | { readonly kind: "finished"; readonly message: string }
  | { readonly kind: "broken"; readonly code: string; readonly message: string }
  | { readonly kind: "needsReauth"; readonly message: string };

/** How a stream that ended is opened again. */
export interface ReconnectPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** 0 to 1: the part of each wait that is left to chance. */
  readonly jitter: number;
  /** After so long an open stream the wait begins at `initialMs` again. */
  readonly resetAfterMs: number;
}

/** A source that is kept open: one worker holds it under a lease and runs `runConnection` again and again. */
export interface StreamSource {
  readonly reconnect: (settings: unknown) => ReconnectPolicy;
  /** One connection, until it ends; never throws for what the sender did. */
  readonly runConnection: (run: StreamRun) => Promise<SourceEnd>;
}

/** When a source is polled. */
export type PollSchedule =
  | { readonly everySeconds: number; readonly jitter: number }
  | { readonly cron: string; readonly timezone: string; readonly jitter: number };

/** The result of a dry run: nothing was published, and no cursor moved. */
export interface DryRun {
  /** As it was sent, secrets replaced. */
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

/** A source that is asked now and then, by any worker. */
export interface PolledSource {
  readonly schedule: (settings: unknown) => PollSchedule;
  /** For limits on calls to one server: scheme, host and port. */
  readonly origin: (settings: unknown) => string;
  readonly poll: (run: SourceRun) => Promise<SourceEnd>;
  /** Does as the next poll would, with `cursor` in place of the stored one. At most one page. */
  readonly dryRun: (
    run: Pick<SourceRun, "channel" | "settings" | "credentials" | "cursor" | "startedAtMs" | "signal">,
  ) => Promise<DryRun>;
}

/** How a pull kind reads and shows its cursors. */
export interface CursorFormat {
  /** As the API shows it: JSON. */
  readonly show: (cursor: string) => unknown;
  /** Reads what a person has set; findings name the field. */
  readonly parse: (value: unknown, settings: unknown) => Result<string, readonly Finding[]>;
}
