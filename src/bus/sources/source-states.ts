import { parseJson } from "../../event/parse-json.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { cursorKey, sourcePollsKey, sourceStateKey } from "../keys.ts";

export const SOURCE_STATES = ["connecting", "open", "waiting", "paused", "error", "needsReauth"] as const;
export type SourceState = (typeof SOURCE_STATES)[number];

export interface SourceError {
  readonly code: string;
  readonly message: string;
  readonly atMs: number;
}

/** Result of the last comparison with another channel, in items. */
export interface ReconcileFacts {
  readonly atMs: number;
  readonly items: number;
  readonly known: number;
  readonly recovered: number;
  readonly listed: number;
  readonly failed: number;
}

/** Deliveries that another channel missed. Those of one day are added up. */
export interface MissedFacts {
  readonly count: number;
  readonly oldestMs: number;
  readonly newestMs: number;
  /** When the last of them was found. */
  readonly atMs: number;
}

/** A poll that has ended. */
export interface PollRecord {
  readonly atMs: number;
  readonly durationMs: number;
  /** Number of HTTP requests. */
  readonly requests: number;
  /** Method and status of the last request. `undefined` if the poll sent none, or if the server did not respond. */
  readonly method: string | undefined;
  readonly status: number | undefined;
  /** Number of items in the responses. */
  readonly items: number;
  /** Number of events that the poll published. */
  readonly published: number;
  /** Code of the error that ended the poll. `undefined` after a success. */
  readonly error: string | undefined;
}

/** Changes to the visible state of a pull source. Missing fields keep their value, and `null` removes a field. */
export interface SourceFacts {
  readonly state?: SourceState;
  /** Worker that runs the pull source now, or that ran it last. */
  readonly owner?: string;
  readonly lastEventAtMs?: number;
  /** Failure of the last run. `null` after a success. */
  readonly lastError?: SourceError | null;
  /** Last problem that did not end a run, such as a gap in a stream. */
  readonly lastWarning?: SourceError;
  readonly lagMs?: number;
  readonly nextAtMs?: number | null;
  readonly lastReconcile?: ReconcileFacts;
  readonly missed?: MissedFacts;
  /** Is added to the newest polls. */
  readonly poll?: PollRecord;
}

/** Last known state of a pull source. The worker that wrote it may have died since. */
export type SourceSnapshot = Awaited<ReturnType<SourceStates["read"]>>;

export type SourceStates = ReturnType<typeof createSourceStates>;

/** All methods throw UnavailableError if Redis is unavailable. */
export function createSourceStates({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./source-state.lua", import.meta.url));
  return {
    /** Writes the state of a pull source. Returns false and writes nothing if another run has taken over. */
    async write(channelNumber: number, epoch: number, facts: SourceFacts, nowMs: number): Promise<boolean> {
      const args: (string | number)[] = [epoch, "at", nowMs];
      for (const [name, value] of Object.entries(facts)) {
        if (value === undefined) continue;
        if (value === null) args.push(name, "");
        else args.push(name, typeof value === "object" ? JSON.stringify(value) : value);
      }
      const keys = [cursorKey(channelNumber), sourceStateKey(channelNumber), sourcePollsKey(channelNumber)];
      return (await runLua(keys, args)) === 1;
    },
    /** Returns the newest polls, newest first. */
    async listPolls(channelNumber: number): Promise<readonly PollRecord[]> {
      const texts = await redis.call("lrange", [sourcePollsKey(channelNumber), 0, -1]);
      return (texts as readonly string[]).map((text) => parseJson(text) as PollRecord);
    },
    async read(channelNumber: number) {
      const names = [
        "state",
        "since",
        "owner",
        "lastEventAtMs",
        "lastError",
        "lastWarning",
        "lagMs",
        "nextAtMs",
        "lastReconcile",
        "missed",
      ];
      const row = await redis.call("hmget", [sourceStateKey(channelNumber), ...names]);
      const [state, since, owner, lastEventAt, lastError, lastWarning, lag, nextAt, reconcile, missed] =
        row as (string | null)[];
      return {
        state: SOURCE_STATES.find((known) => known === state),
        sinceMs: parseOptionalNumber(since),
        owner: owner ?? undefined,
        lastEventAtMs: parseOptionalNumber(lastEventAt),
        lastError: parseFacts<SourceError>(lastError),
        lastWarning: parseFacts<SourceError>(lastWarning),
        lagMs: parseOptionalNumber(lag),
        nextAtMs: parseOptionalNumber(nextAt),
        lastReconcile: parseFacts<ReconcileFacts>(reconcile),
        missed: parseFacts<MissedFacts>(missed),
      };
    },
  };
}

const parseFacts = <T>(text: string | null | undefined): T | undefined =>
  text == null ? undefined : (parseJson(text) as T);

/** Parses the value of a Redis hash field. Returns `undefined` if the field does not exist. */
export const parseOptionalNumber = (text: string | null | undefined): number | undefined =>
  text == null ? undefined : Number(text);
