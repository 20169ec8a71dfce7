import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { StaleSourceError } from "../errors.ts";
import { computeSlot, cursorKey } from "../keys.ts";
import { parseOptionalNumber } from "./source-states.ts";

export interface SourceRef {
  /** Internal channel id. */
  readonly number: number;
  /** All topics that the source has ever written to. Includes former topics, because an earlier run may still write to them. */
  readonly topics: readonly string[];
}

export interface AcquiredSource {
  readonly kind: "acquired";
  /** Whether Redis had no data about the source, because this is its first run or the data was lost. */
  readonly isFirst: boolean;
  /** Fencing token. Writes with a lower epoch are rejected from now on. */
  readonly epoch: number;
  readonly version: number;
  /** The stored cursor; `undefined` at the first run and after a reset. */
  readonly value: string | undefined;
  /** Redis time at which the source was created or reset. */
  readonly startedAtMs: number;
  /** Number of consecutive failures before this run. */
  readonly failures: number;
}

/**
 * The source must wait before its next run. The reason is `backoff` if a run failed or the sender requested a delay. It is `interval` if
 * the last run started too recently.
 */
export interface BackoffPending {
  readonly kind: "backoff" | "interval";
  readonly waitMs: number;
}

/** Minimum time between the starts of two runs of a source. */
export interface RunSpacing {
  readonly intervalMs: number;
  /** Applies instead of `intervalMs` if the last run did not finish, or if a user has changed the configuration since. */
  readonly retryMs: number;
}

export interface TakeOverOptions {
  /** Whether to ignore earlier failures and the resulting delay, because a user has changed the configuration. */
  readonly skipBackoff?: boolean;
  /** `undefined` if runs need no minimum interval. */
  readonly spacing?: RunSpacing | undefined;
}

/** Result of a run, including how long the source must wait afterwards. */
export interface RunEnding {
  readonly failures: number;
  /** Delay requested by the sender; 0 for none. */
  readonly notBeforeMs: number;
  /** Delay after a failure; 0 for none. If a user changes the configuration, the delay ends. */
  readonly retryInMs: number;
  /** `done` if the run finished, `more` if it finished but the source continues at once with the rest. Default: the run did not finish. */
  readonly progress?: "done" | "more" | undefined;
  /**
   * The threshold for persistent rejections if the sender rejected the run. `none` if the run succeeded, which resets the count of
   * rejections. Default: the count does not change.
   */
  readonly refusal?: RejectionThreshold | "none" | undefined;
}

/** After `count` consecutive rejections over at least `forMs`, they count as persistent, and the source waits for `retryInMs`. */
export interface RejectionThreshold {
  readonly count: number;
  readonly forMs: number;
  readonly retryInMs: number;
}

export type SourcePositions = ReturnType<typeof createSourcePositions>;
export type StoredCursor = Awaited<ReturnType<SourcePositions["read"]>>;

const MAX_TAKE_OVERS = 4;

/**
 * Stores the cursors of pull sources, and makes Redis reject writes of former owners. All methods throw UnavailableError if Redis is
 * unavailable.
 */
export function createSourcePositions({ redis }: { readonly redis: RedisBus }) {
  const runTakeOver = luaScript(redis, new URL("./source-take-over.lua", import.meta.url));
  const runStamp = luaScript(redis, new URL("./source-stamp.lua", import.meta.url));
  const runSet = luaScript(redis, new URL("./source-set.lua", import.meta.url));
  const runEnd = luaScript(redis, new URL("./source-end.lua", import.meta.url));
  const { isSlotted } = redis.writes;

  /** In a Cluster the topics are left out, because their keys are in other slots. */
  const keysOf = ({ number, topics }: SourceRef) => [cursorKey(number), ...(isSlotted ? [] : topics)];

  /** Writes the epoch to all topics, with one call per Cluster slot. Returns the highest epoch that the topics had before. */
  async function stamp({ number, topics }: SourceRef, epoch: number): Promise<number> {
    const seen = await Promise.all(
      [...Map.groupBy(topics, computeSlot).values()].map((keys) => runStamp(keys, [number, epoch])),
    );
    return Math.max(0, ...seen.map(Number));
  }

  /**
   * In a Cluster, the previous owner may have moved the cursor before the last topic received the new epoch, so the cursor is read again.
   */
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
     * Makes the caller the only owner of a source. Writes a new epoch to all its topics, then reads the cursor.
     *
     * @throws StaleSourceError when another worker takes the source over at the same time.
     */
    async takeOver(
      source: SourceRef,
      { skipBackoff = false, spacing }: TakeOverOptions = {},
    ): Promise<AcquiredSource | BackoffPending> {
      const { intervalMs, retryMs } = spacing ?? { intervalMs: 0, retryMs: 0 };
      let minEpoch = 0;
      let isRetry = false;
      let isFirst = false;
      for (let attempt = 0; attempt < MAX_TAKE_OVERS; attempt++) {
        // The previous attempt has already recorded a run, so a retry must not wait for the interval again.
        const waits = isRetry ? [0, 0] : [intervalMs, retryMs];
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
    /** `version` is 0 if the cursor was never written. Times are `undefined` if the source never ran. */
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
     * Sets the cursor, or resets it if `value` is `undefined`. Fences the current run and ends all waits. Returns the new version, or
     * `undefined` if the cursor is no longer at the given version.
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
     * Stores the result of a run. Returns `gone` if another run owns the source, and `lasting` if the rejections now count as persistent.
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
