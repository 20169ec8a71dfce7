import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { StaleSourceError } from "../errors.ts";
import { computeSlot, cursorKey } from "../keys.ts";
import { parseOptionalNumber } from "./source-states.ts";

export interface SourceRef {
  /** Internal channel id. */
  readonly number: number;
  /** All topics that the pull source has ever written to. Former topics are included, because an earlier run may still write to them. */
  readonly topics: readonly string[];
}

export interface AcquiredSource {
  readonly kind: "acquired";
  /** Whether Redis had no data about the pull source, because this is its first run or because Redis lost its data. */
  readonly isFirst: boolean;
  /** Fencing token of this run. Redis rejects writes with a lower token from now on. */
  readonly epoch: number;
  readonly version: number;
  /** The stored cursor. `undefined` at the first run and after a reset. */
  readonly value: string | undefined;
  /** Redis time in ms when the pull source was created or last reset. */
  readonly startedAtMs: number;
  /** Number of consecutive failures before this run. */
  readonly failures: number;
}

/**
 * A required wait before the next run of a pull source. `backoff` follows a failure or a request of the sender, `interval` a run
 * that started too recently.
 */
export interface BackoffPending {
  readonly kind: "backoff" | "interval";
  readonly waitMs: number;
}

/** Minimum time between the starts of two runs of a pull source. */
export interface RunSpacing {
  readonly intervalMs: number;
  /** Minimum time if the last run did not finish, or if a user has changed the configuration since. Replaces `intervalMs`. */
  readonly retryMs: number;
}

export interface TakeOverOptions {
  /** Whether to ignore earlier failures and their delay, because a user has changed the configuration. */
  readonly skipBackoff?: boolean;
  /** `undefined` if runs need no minimum interval. */
  readonly spacing?: RunSpacing | undefined;
  /**
   * Minimum time since the start of the last run, in ms, for a run that a webhook requested. Replaces `spacing` for this run. The next run
   * counts its interval from this one.
   */
  readonly wakeSpacingMs?: number | undefined;
}

/** Result of a run of a pull source, and the wait before the next run. */
export interface RunEnding {
  readonly failures: number;
  /** Delay requested by the sender; 0 for none. */
  readonly notBeforeMs: number;
  /** Delay in ms after a failure, 0 for none. A change of the configuration ends the delay. */
  readonly retryInMs: number;
  /** `done` if the run finished, `more` if the next run must start at once to fetch the rest. Default: the run did not finish. */
  readonly progress?: "done" | "more" | undefined;
  /**
   * Threshold for persistent rejections if the sender rejected the run. `none` resets the count after success. Default: the count
   * stays the same.
   */
  readonly refusal?: RejectionThreshold | "none" | undefined;
}

/** Number and period in ms of consecutive rejections after which they count as persistent. The pull source then waits for `retryInMs`. */
export interface RejectionThreshold {
  readonly count: number;
  readonly forMs: number;
  readonly retryInMs: number;
}

export type SourcePositions = ReturnType<typeof createSourcePositions>;
export type StoredCursor = Awaited<ReturnType<SourcePositions["read"]>>;

const MAX_TAKE_OVERS = 4;

/**
 * Stores the cursors of pull sources. Rejects writes of a worker after another worker has taken over.
 *
 * All methods throw UnavailableError if Redis is unavailable.
 */
export function createSourcePositions({ redis }: { readonly redis: RedisBus }) {
  const runTakeOver = luaScript(redis, new URL("./source-take-over.lua", import.meta.url));
  const runStamp = luaScript(redis, new URL("./source-stamp.lua", import.meta.url));
  const runSet = luaScript(redis, new URL("./source-set.lua", import.meta.url));
  const runEnd = luaScript(redis, new URL("./source-end.lua", import.meta.url));
  const { isSlotted } = redis.writes;

  /** Leaves out the topics in a Cluster, because their keys are in other slots than the cursor. */
  const keysOf = ({ number, topics }: SourceRef) => [cursorKey(number), ...(isSlotted ? [] : topics)];

  /**
   * Writes the fencing token (epoch) to all topics, with one call per Cluster slot. Returns the highest token that the topics had
   * before.
   */
  async function stamp({ number, topics }: SourceRef, epoch: number): Promise<number> {
    const seen = await Promise.all(
      [...Map.groupBy(topics, computeSlot).values()].map((keys) => runStamp(keys, [number, epoch])),
    );
    return Math.max(0, ...seen.map(Number));
  }

  /** Reads the cursor again in a Cluster. The previous owner may have moved it before the last topic got the new fencing token. */
  async function rereadCursor(number: number, epoch: number): Promise<Omit<AcquiredSource, "isFirst">> {
    const row = await redis.call("hmget", [cursorKey(number), "e", "v", "s", "f", "c"]);
    const [held, ...rest] = row as (string | null)[];
    if (Number(held) !== epoch) {
      throw new StaleSourceError("epoch", `the epoch of the cursor is now ${held ?? "none"}`);
    }
    return readAcquired(epoch, rest);
  }

  return {
    /**
     * Makes this worker the only one that can write for a pull source. Writes a new fencing token to all topics, then reads the
     * cursor.
     *
     * @throws StaleSourceError if another worker takes over at the same time
     */
    async takeOver(
      source: SourceRef,
      { skipBackoff = false, spacing, wakeSpacingMs }: TakeOverOptions = {},
    ): Promise<AcquiredSource | BackoffPending> {
      const { intervalMs, retryMs } = spacing ?? { intervalMs: 0, retryMs: 0 };
      let minEpoch = 0;
      let isRetry = false;
      let isFirst = false;
      for (let attempt = 0; attempt < MAX_TAKE_OVERS; attempt++) {
        // Do not wait again on a retry, because the previous attempt has already recorded the start of this run.
        const waits = isRetry ? [0, 0, ""] : [intervalMs, retryMs, wakeSpacingMs ?? ""];
        const args = [source.number, minEpoch, skipBackoff ? "1" : "0", ...waits];
        const reply = await runTakeOver(keysOf(source), args);
        const [kind, first, ...rest] = reply as [string, string | number, ...(string | null)[]];
        if (kind === "backoff" || kind === "interval") return { kind, waitMs: Number(first) };
        const epoch = Number(first);
        isFirst ||= kind === "first";
        if (!isSlotted) return { ...readAcquired(epoch, rest), isFirst };
        const seen = await stamp(source, epoch);
        if (seen <= epoch) return { ...(await rereadCursor(source.number, epoch)), isFirst };
        minEpoch = seen + 1;
        isRetry = true;
      }
      throw new StaleSourceError("epoch", "another worker keeps taking over the source");
    },
    /** Reads the stored cursor. `version` is 0 if the cursor was never written. Times are `undefined` if the pull source never ran. */
    async read(channelNumber: number) {
      const row = await redis.call("hmget", [cursorKey(channelNumber), "c", "v", "u", "s"]);
      const [value, version, updatedAtMs, startedAtMs] = row as (string | null)[];
      return {
        value: value ?? undefined,
        version: Number(version ?? 0),
        updatedAtMs: parseOptionalNumber(updatedAtMs),
        startedAtMs: parseOptionalNumber(startedAtMs),
      };
    },
    async failures(channelNumber: number): Promise<number> {
      return Number((await redis.call("hget", [cursorKey(channelNumber), "f"])) ?? 0);
    },
    /**
     * Sets the cursor, or resets it if `value` is `undefined`. Redis then rejects writes of the current run, and all waits end.
     *
     * Returns the new version, or `undefined` if the cursor no longer has the given version.
     */
    async set(
      source: SourceRef,
      value: string | undefined,
      { version }: { readonly version?: number } = {},
    ): Promise<number | undefined> {
      const args = [source.number, version ?? "", value === undefined ? "" : `>${value}`];
      const written = Number(await runSet(keysOf(source), args));
      return written < 0 ? undefined : written;
    },
    /**
     * Stores the result of a run. Returns `gone` if another run has taken over, and `lasting` if the rejections now count as
     * persistent.
     */
    async end(
      channelNumber: number,
      epoch: number,
      ending: RunEnding,
    ): Promise<"gone" | "written" | "lasting"> {
      const { failures, notBeforeMs, retryInMs, progress = "", refusal } = ending;
      const args = [epoch, failures, Math.ceil(notBeforeMs), Math.ceil(retryInMs), progress];
      const { count, forMs, retryInMs: slowMs } = typeof refusal === "object" ? refusal : NO_REJECTION;
      const rejectionFlag = refusal === undefined ? "" : refusal === "none" ? "0" : "1";
      const reply = await runEnd([cursorKey(channelNumber)], [...args, rejectionFlag, count, forMs, slowMs]);
      return reply === 0 ? "gone" : reply === 2 ? "lasting" : "written";
    },
  };
}

const NO_REJECTION: RejectionThreshold = { count: 0, forMs: 0, retryInMs: 0 };

function readAcquired(
  epoch: number,
  row: readonly (string | null | undefined)[],
): Omit<AcquiredSource, "isFirst"> {
  const [version, startedAtMs, failures, value] = row;
  return {
    kind: "acquired",
    epoch,
    version: Number(version ?? 0),
    value: value ?? undefined,
    startedAtMs: Number(startedAtMs),
    failures: Number(failures ?? 0),
  };
}
