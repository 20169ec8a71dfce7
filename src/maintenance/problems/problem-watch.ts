import type { Publish } from "../../bus/publish/publish.ts";
import { ensureSystemApps, findSystemChannel, type SystemChannel } from "../../data/apps/system-app.ts";
import type { NewChannel } from "../../data/channels/channels.ts";
import type { Queryable } from "../../data/database.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import {
  deletePublishedChange,
  expireProblems,
  listOpenProblems,
  listUnpublishedChanges,
  MOST_OPEN,
  openProblem,
  recordChecks,
  refreshProblems,
  resolveProblem,
  type Sighting,
  type UnpublishedChange,
} from "../../data/problems/problems.ts";
import { isMuted } from "../../data/problems/render-problem.ts";
import { PROBLEM_KINDS, type ProblemKind } from "../../event/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import type { Log } from "../../log.ts";
import { createSystemEvent } from "../../normalize/entry.ts";
import type { Check } from "./checks.ts";
import { createTransitions } from "./transitions.ts";

export interface ProblemWatchDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly publish: Publish;
  readonly checks: readonly Check[];
  /** Channel for problem events, with settings that the channel kind has already parsed. Every system app must have this channel. */
  readonly channel: NewChannel;
  readonly dedupeWindowMs: number;
  /** Returns whether this gateway does the housekeeping. Only that gateway checks for problems. */
  readonly isHolder: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Partial<ProblemTiming>;
}

export type ProblemTiming = typeof TIMING;

export interface ProblemCount {
  readonly kind: ProblemKind;
  readonly state: (typeof COUNTED_STATES)[number];
  readonly count: number;
}

const TIMING = {
  everyMs: 10_000,
  /** Interval between slow checks, in ms. Slow checks need many Redis queries. */
  slowEveryMs: 30_000,
  openAfterMs: 20_000,
  resolveAfterMs: 60_000,
};
/** Interval at which a gateway tests whether it must check for problems, in ms. */
const TICK_MS = 1_000;
const EXPIRE_EVERY_MS = 3_600_000;
const EVENTS_AT_ONCE = 200;
/** Number of organizations with failed writes after which publishing stops until the next check. */
const MOST_FAILING = 8;
/** States of open problems in metrics. A muted problem counts only as `muted`. */
const COUNTED_STATES = ["opened", "acknowledged", "muted"] as const;

/**
 * Starts periodic checks, which compare the problems found with the open ones. Disposal waits for the check in flight.
 *
 * A state change and its event are written in one transaction. The event is deleted from the database once it is published. Its id is
 * derived from the problem and the change, so publishing it twice after a crash has no effect. While Redis is unavailable, events wait, and
 * problems that only Redis can reveal are neither opened nor resolved.
 */
export function startProblemWatch(deps: ProblemWatchDeps) {
  const { db, keyring, checks, isHolder, clock, log } = deps;
  const timing = { ...TIMING, ...deps.timing };
  const decide = createTransitions(timing);
  const checkedAtMs = new Map<ProblemKind, number>();
  const failing = new Set<ProblemKind>();
  let counted: readonly ProblemCount[] = [];
  let dueSlowMs = Number.NEGATIVE_INFINITY;
  let expiredAtMs = Number.NEGATIVE_INFINITY;

  function noteFailure(kinds: readonly ProblemKind[], err: unknown): void {
    const first = kinds.filter((kind) => !failing.has(kind));
    for (const kind of kinds) failing.add(kind);
    if (first.length > 0)
      log.warn(
        { event: "problems.not_evaluated", kinds, err },
        "the check for problems of the listed kinds failed",
      );
  }

  function noteSuccess(kinds: readonly ProblemKind[]): void {
    const again = kinds.filter((kind) => failing.delete(kind));
    if (again.length > 0)
      log.info(
        { event: "problems.evaluated_again", kinds },
        "the check for problems of the listed kinds works again",
      );
    for (const kind of kinds) checkedAtMs.set(kind, performance.now());
  }

  async function look(signal: AbortSignal): Promise<void> {
    const isSlowToo = performance.now() >= dueSlowMs;
    if (isSlowToo) dueSlowMs = performance.now() + timing.slowEveryMs;
    const sightings: Sighting[] = [];
    const done: ProblemKind[] = [];
    const failed: ProblemKind[] = [];
    for (const check of checks) {
      if (check.isSlow && !isSlowToo) continue;
      try {
        const found = await check.look(signal);
        if (found !== undefined) {
          sightings.push(...found);
          done.push(...check.kinds);
          noteSuccess(check.kinds);
        } else if (check.kinds.some((kind) => checkedAtMs.has(kind))) {
          // The data was available before, so the component that collects it has stopped.
          failed.push(...check.kinds);
          noteFailure(check.kinds, undefined);
        }
      } catch (error) {
        signal.throwIfAborted();
        failed.push(...check.kinds);
        noteFailure(check.kinds, error);
      }
      if (!isHolder()) return;
    }
    const nowMs = clock();
    const open = await listOpenProblems(db);
    counted = countByState(open.map((one) => ({ ...one, state: isMuted(one, nowMs) ? "muted" : one.state })));
    const { opened, seen, resolved } = decide({ kinds: new Set(done), sightings, open, nowMs });
    await refreshProblems(db, seen, nowMs);
    const counts = new Map<string, number>();
    for (const { organizationId } of open) counts.set(organizationId, (counts.get(organizationId) ?? 0) + 1);
    for (const { seenSinceMs, ...sighting } of opened) {
      if ((counts.get(sighting.organizationId) ?? 0) >= MOST_OPEN) continue;
      const row = await openProblem(db, sighting, { seenSince: new Date(seenSinceMs), nowMs });
      if (!row) continue;
      counts.set(row.organizationId, (counts.get(row.organizationId) ?? 0) + 1);
      const { id, organizationId, kind, subject, message } = row;
      const facts = { problem: id, organization: organizationId, kind, subject, reason: message };
      log.warn({ event: "problem.opened", ...facts }, "a problem was opened");
    }
    for (const { id } of resolved) {
      const row = await resolveProblem(db, id, nowMs);
      if (!row) continue;
      const { organizationId, kind, subject } = row;
      const facts = { problem: id, organization: organizationId, kind, subject };
      log.info({ event: "problem.resolved", ...facts }, "a problem was resolved");
    }
    await recordChecks(db, { done, failed }, nowMs);
  }

  /**
   * Publishes pending events, in order within each organization. Failed events stay for the next check without blocking other
   * organizations, because a Redis Cluster may have lost the node of only some organizations' topics.
   *
   * @throws UnavailableError
   */
  async function tell(signal: AbortSignal): Promise<void> {
    const channels = new Map<string, SystemChannel | undefined>();
    const failures = new Map<string, unknown>();
    for (let after = 0; ; ) {
      const page = await listUnpublishedChanges(db, { after, limit: EVENTS_AT_ONCE });
      for (const change of page) {
        if (signal.aborted || !isHolder()) return;
        const { organizationId } = change;
        if (!channels.has(organizationId))
          channels.set(organizationId, await findSystemChannel(db, organizationId));
        const channel = channels.get(organizationId);
        const topic = channel?.topics.get(change.type);
        after = change.number;
        if (!channel || topic === undefined || failures.has(organizationId)) continue;
        try {
          await publishChange(channel, topic, change, signal);
        } catch (error) {
          failures.set(organizationId, error);
          if (failures.size === MOST_FAILING) throw error;
          continue;
        }
        await deletePublishedChange(db, change.number);
      }
      if (page.length === EVENTS_AT_ONCE) continue;
      for (const error of failures.values()) throw error;
      return;
    }
  }

  async function publishChange(
    channel: SystemChannel,
    topic: string,
    { problemId, type, data, createdAt, subject }: UnpublishedChange,
    signal: AbortSignal,
  ): Promise<void> {
    const { retention } = deps.channel;
    // The id is unique because each problem is opened once and resolved once.
    const id = `${problemId}.${type.slice(type.lastIndexOf(".") + 1)}`;
    const event = createSystemEvent({ channel, topic, type, id, atMs: createdAt.getTime(), subject, data });
    await deps.publish(
      {
        channel,
        events: [event],
        policy: {
          dedupeWindowMs: deps.dedupeWindowMs,
          conflict: "duplicate",
          maxEntries: retention.maxEntries,
          maxBytes: retention.maxBytes,
        },
      },
      { signal },
    );
  }

  async function step(signal: AbortSignal): Promise<void> {
    if (!isHolder()) {
      checkedAtMs.clear();
      counted = [];
      return;
    }
    await ensureSystemApps(db, deps.channel, { keyring, nowMs: clock(), signal });
    await look(signal);
    await tell(signal);
    if (performance.now() - expiredAtMs < EXPIRE_EVERY_MS) return;
    await expireProblems(db, clock());
    expiredAtMs = performance.now();
  }

  const loop = startLoop({
    step,
    everyMs: () => (isHolder() ? timing.everyMs : Math.min(TICK_MS, timing.everyMs)),
    onFailing: (err) =>
      log.warn({ event: "problems.failing", err }, "problems cannot be stored or published"),
    onRecovered: () => log.info({ event: "problems.recovered" }, "problems are stored and published again"),
  });
  return {
    /** Seconds since the last successful check, by problem kind. Empty if another gateway checks for problems. */
    ages: (): ReadonlyMap<ProblemKind, number> =>
      new Map([...checkedAtMs].map(([kind, atMs]) => [kind, (performance.now() - atMs) / 1_000])),
    /** Number of open problems by kind and state, as of the last check. Empty if another gateway checks for problems. */
    counts: () => counted,
    [Symbol.asyncDispose]: loop[Symbol.asyncDispose],
  };
}

/** Counts open problems by kind and state. Includes zeros, because an alert rule cannot use a missing metric. */
const countByState = (
  open: readonly { readonly kind: ProblemKind; readonly state: string }[],
): readonly ProblemCount[] =>
  PROBLEM_KINDS.flatMap((kind) =>
    COUNTED_STATES.map((state) => ({
      kind,
      state,
      count: open.filter((one) => one.kind === kind && one.state === state).length,
    })),
  );
