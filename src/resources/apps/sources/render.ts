import type { StoredCursor } from "../../../bus/sources/source-positions.ts";
import type { PollRecord, ReconcileFacts, SourceSnapshot } from "../../../bus/sources/source-states.ts";
import type { WakeCount } from "../../../bus/sources/wakes.ts";
import type { ChannelKind } from "../../../channels/kind.ts";
import { isRecent } from "../../../channels/pull/reconcile-run.ts";
import type { DryRun, SourceEnd } from "../../../channels/source.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { ExplainedItem } from "../../../event/explained.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { MAX_EXPLAINED_ITEMS, renderExplainedItem } from "../../events/explained-item.ts";
import type { CursorEntity, DryRunEntity, PollEntity, SourceEntity } from "./schema.ts";

type Show = NonNullable<ChannelKind["cursor"]>["show"];

const formatTime = (ms: number | undefined): string | null => (ms === undefined ? null : formatTimestamp(ms));

/** Renders a source's cursor for the API. If the channel kind cannot parse the stored cursor, returns the cursor unchanged. */
function renderCursorValue(show: Show, value: string | undefined): unknown {
  if (value === undefined) return null;
  try {
    return show(value);
  } catch {
    return value;
  }
}

export const renderCursor = (show: Show, { value, version, updatedAtMs }: StoredCursor): CursorEntity => ({
  value: renderCursorValue(show, value),
  version,
  updatedAt: formatTime(updatedAtMs),
});

/**
 * Renders the state of a source, which is a channel that fetches events.
 * @param facts.isOwnerLive whether the worker that owns the source is running; if not, the source is disconnected
 */
export function renderSource(
  row: Pick<ChannelRow, "config" | "state" | "updatedAt">,
  snapshot: SourceSnapshot,
  facts: {
    readonly isOwnerLive: boolean;
    readonly isIdle: boolean;
    readonly silent: boolean;
    readonly wakes: WakeCount | undefined;
    readonly cursor: CursorEntity;
    readonly nowMs: number;
  },
): SourceEntity {
  const { isOwnerLive, isIdle, silent, wakes, cursor, nowMs } = facts;
  const stateReason = isIdle ? "noSubscription" : findReason(row.state, snapshot.state);
  const state = isIdle ? "idle" : computeState(row.state, isOwnerLive ? snapshot.state : undefined);
  const { owner, lagMs, nextAtMs } = snapshot;
  const lastError = snapshot.lastError ?? findRecent(snapshot.lastWarning, nowMs);
  const isTried =
    state === "error" || state === "needsReauth" || (state === "waiting" && row.state === "active");
  return {
    state,
    stateReason,
    health: computeHealth(state, stateReason, snapshot.lastError !== undefined),
    since: formatTimestamp(
      state === snapshot.state && snapshot.sinceMs ? snapshot.sinceMs : row.updatedAt.getTime(),
    ),
    lastEventAt: formatTime(snapshot.lastEventAtMs),
    lastError: lastError
      ? { code: lastError.code, message: lastError.message, at: formatTimestamp(lastError.atMs) }
      : null,
    lagMs: lagMs ?? null,
    owner: owner ?? null,
    nextPollAt: isTried && nextAtMs !== undefined && nextAtMs > nowMs ? formatTimestamp(nextAtMs) : null,
    wakes: wakes ? { count: wakes.count, lastAt: formatTimestamp(wakes.lastAtMs) } : null,
    silent,
    reconcile: renderReconcile(row.config.reconciles, snapshot, nowMs),
    cursor,
  };
}

function renderReconcile(
  channelUid: unknown,
  { lastReconcile, missed }: SourceSnapshot,
  nowMs: number,
): SourceEntity["reconcile"] {
  if (typeof channelUid !== "string") return null;
  return {
    channelUid,
    last: lastReconcile === undefined ? null : renderComparison(lastReconcile),
    missed:
      missed === undefined || !isRecent(missed, nowMs)
        ? null
        : {
            count: missed.count,
            oldest: formatTimestamp(missed.oldestMs),
            newest: formatTimestamp(missed.newestMs),
            foundAt: formatTimestamp(missed.atMs),
          },
  };
}

const renderComparison = ({ atMs, ...found }: ReconcileFacts) => ({ at: formatTimestamp(atMs), ...found });

function findReason(
  channel: ChannelRow["state"],
  reported: SourceSnapshot["state"],
): SourceEntity["stateReason"] {
  if (channel === "needsSetup" || channel === "needsConnection") return channel;
  // A run only reports this state if the server has ended its stream. If a person pauses the channel, the run reports `waiting`.
  return channel === "paused" && reported === "paused" ? "finished" : null;
}

/** Warnings are shown for a day, because later runs do not tell whether they are still relevant. */
const findRecent = (warning: SourceSnapshot["lastWarning"], nowMs: number): SourceSnapshot["lastWarning"] =>
  warning !== undefined && nowMs - warning.atMs < DAY_MS ? warning : undefined;

const DAY_MS = 86_400_000;

function computeHealth(
  state: SourceEntity["state"],
  stateReason: SourceEntity["stateReason"],
  hasFailed: boolean,
): SourceEntity["health"] {
  if (state === "error" || state === "needsReauth") return "failing";
  if (state === "paused" || stateReason !== null) return "stopped";
  return hasFailed ? "retrying" : "healthy";
}

function computeState(
  channel: ChannelRow["state"],
  reported: SourceSnapshot["state"],
): SourceEntity["state"] {
  switch (channel) {
    case "paused":
    case "error":
    case "needsReauth":
      return channel;
    case "needsSetup":
    case "needsConnection":
      return "waiting";
    case "active":
      return reported === "connecting" || reported === "open" ? reported : "waiting";
    default:
      return channel satisfies never;
  }
}

export const renderPoll = ({ atMs, method, status, error, ...numbers }: PollRecord): PollEntity => ({
  at: formatTimestamp(atMs),
  ...numbers,
  method: method ?? null,
  status: status ?? null,
  error: error ?? null,
});

export function renderDryRun(show: Show, run: DryRun, items: readonly ExplainedItem[]): DryRunEntity {
  return {
    request: run.request,
    response: run.response,
    items: items.slice(0, MAX_EXPLAINED_ITEMS).map(renderExplainedItem),
    total: items.length,
    known: run.known,
    cursor: run.cursor === null ? null : renderCursorValue(show, run.cursor),
    end: renderEnd(run.end),
  };
}

const renderEnd = (end: SourceEnd): DryRunEntity["end"] => ({
  kind: end.kind,
  code: "code" in end ? end.code : null,
  message: "message" in end ? end.message : null,
  notBefore: formatTime("notBeforeMs" in end ? end.notBeforeMs : undefined),
});
