import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { StaleSourceError } from "../errors.ts";
import { computeSlot, cursorKey } from "../keys.ts";
import { parseOptionalNumber } from "./source-states.ts";

/** A pull source on the bus. */
export interface SourceRef {
  /** Its channel's number. */
  readonly number: number;
  /** All topics that were ever written for it, those that it no longer publishes to included: a run of before may. */
  readonly topics: readonly string[];
}

/** A source just taken over, as its new owner begins with it. */
export interface AcquiredSource {
  readonly kind: "acquired";
  /** True where Redis knew nothing of the source: it is the very first time, or what it knew is lost. */
  readonly isFirst: boolean;
  /** The fencing token: all that is written under a lower one is refused from now on. */
  readonly epoch: number;
  readonly version: number;
  /** The cursor; undefined at the very first, and after a reset. */
  readonly value: string | undefined;
  /** When the source began to be one, or was reset, by Redis time. */
  readonly startedAtMs: number;
  /** Runs that failed in a row before. */
  readonly failures: number;
}

/** The source is to be left alone: it failed, or its sender said so; or the interval since its last run began is not over. */
export interface BackoffPending {
  readonly kind: "backoff" | "interval";
  readonly waitMs: number;
}

/** How soon after the beginning of a source's last run the next one may begin, at the earliest. */
export interface RunSpacing {
  readonly intervalMs: number;
  /** After a run that did not come to its end, or when a person has changed something since. */
  readonly retryMs: number;
}

export interface TakeOverOptions {
  /** A person has changed something: what failed before counts no longer. */
  readonly skipBackoff?: boolean;
  /** Absent: runs keep no interval. */
  readonly spacing?: RunSpacing | undefined;
}

/** How long a source is left alone after a run, and why. */
export interface RunEnding {
  readonly failures: number;
  /** Its sender wants no calls for so long; 0: it said nothing. */
  readonly notBeforeMs: number;
  /** It failed, and waits for so long; a person who mends what was wrong ends this wait. */
  readonly retryInMs: number;
  /** `done`: it came to its end; `more`: it did, and goes on at once with the rest. Default: neither. */
  readonly progress?: "done" | "more" | undefined;
  /** Its sender refused it, and when refusals count as lasting; `none`: it was good, and earlier ones count no longer. Default: neither. */
  readonly refusal?: RejectionThreshold | "none" | undefined;
}

/** Refusals of so many runs in a row, over so long, are no passing mistake: the source is left alone for longer then. */
export interface RejectionThreshold {
  readonly count: number;
  readonly forMs: number;
  readonly retryInMs: number;
}

export type SourcePositions = ReturnType<typeof createSourcePositions>;
export type StoredCursor = Awaited<ReturnType<SourcePositions["read"]>>;

const MAX_TAKE_OVERS = 4;

/** Where pull sources stand, and who may move them. Each method throws UnavailableError when Redis cannot tell. */
export function createSourcePositions({ redis }: { readonly redis: RedisBus }) {
  const runTakeOver = luaScript(redis, new URL("./source-take-over.lua", import.meta.url));
  const runStamp = luaScript(redis, new URL("./source-stamp.lua", import.meta.url));
  const runSet = luaScript(redis, new URL("./source-set.lua", import.meta.url));
  const runEnd = luaScript(redis, new URL("./source-end.lua", import.meta.url));
  const { isSlotted } = redis.writes;

  /** With the topics where one script may touch them all. */
  const keysOf = ({ number, topics }: SourceRef) => [cursorKey(number), ...(isSlotted ? [] : topics)];

  /** Cluster: stamps the topics, slot by slot; answers the highest epoch that any of them had seen. */
  async function stamp({ number, topics }: SourceRef, epoch: number): Promise<number> {
    const seen = await Promise.all(
      [...Map.groupBy(topics, computeSlot).values()].map((keys) => runStamp(keys, [number, epoch])),
    );
    return Math.max(0, ...seen.map(Number));
  }

  /** Cluster: the cursor may have moved before the last topic was stamped. */
  async function rereadCursor(number: number, epoch: number): Promise<Omit<AcquiredSource, "isFirst">> {
    const row = await redis.call("hmget", [cursorKey(number), "e", "v", "s", "f", "c"]);
    const [held, ...rest] = row as (string | null)[];
    if (Number(held) !== epoch) {
      throw new StaleSourceError("epoch", `the cursor is held under epoch ${held ?? "none"}`);
    }
    return readAcquired(epoch, rest);
  }

  return {
    /**
     * Makes the caller the one owner of a source: a new epoch, stamped on all its topics before the cursor is read.
     *
     * @throws StaleSourceError when another has taken it over at the same moment.
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
        // A run that it began itself is none to keep a distance from.
        const waits = isRetry ? [0, 0] : [intervalMs, retryMs];
        const args = [source.number, minEpoch, skipBackoff ? "1" : "0", ...waits];
        const reply = await runTakeOver(keysOf(source), args);
        const [kind, first, ...rest] = reply as [string, string | number, ...(string | null)[]];
        if (kind === "backoff" || kind === "interval") return { kind, waitMs: Number(first) };
        const epoch = Number(first);
        isFirst ||= kind === "begun";
        if (!isSlotted) return { ...readAcquired(epoch, rest), isFirst };
        const seen = await stamp(source, epoch);
        if (seen <= epoch) return { ...(await rereadCursor(source.number, epoch)), isFirst };
        minEpoch = seen + 1;
        isRetry = true;
      }
      throw new StaleSourceError("epoch", "the topics are stamped by another again and again");
    },
    /** The cursor as it stands: `version` 0 where it was never written; times of a source that never ran are undefined. */
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
    /** How many of its last runs in a row have failed. */
    async failures(channelNumber: number): Promise<number> {
      return Number((await redis.call("hget", [cursorKey(channelNumber), "f"])) ?? 0);
    },
    /**
     * Sets the cursor; undefined begins anew. Its runner is fenced, and it is left alone no longer. Answers the new
     * version, or undefined where the cursor is at another than the given one.
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
    /** Writes down how a run ended; `gone`: the source is another's by now; `lasting`: refusals have come to last. */
    async end(
      channelNumber: number,
      epoch: number,
      ending: RunEnding,
    ): Promise<"gone" | "written" | "lasting"> {
      const { failures, notBeforeMs, retryInMs, progress = "", refusal } = ending;
      const args = [epoch, failures, Math.ceil(notBeforeMs), Math.ceil(retryInMs), progress];
      const { count, forMs, retryInMs: slowMs } = typeof refusal === "object" ? refusal : NO_REJECTION;
      const refused = refusal === undefined ? "" : refusal === "none" ? "0" : "1";
      const reply = await runEnd([cursorKey(channelNumber)], [...args, refused, count, forMs, slowMs]);
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
