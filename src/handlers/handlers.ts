import type { JobQueue } from "../bus/jobs/job-queue.ts";
import type { Job } from "../bus/jobs/job-worker.ts";
import type { AppendedListeners } from "../bus/publish/publish.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { Database } from "../data/database.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import { insertDeadLetter, isDeletedEvent } from "../data/subscriptions/dead-letters.ts";
import {
  findHandled,
  type HandledSubscription,
  listHandled,
  pauseGone,
  setHandlerError,
  setHandlerFailing,
} from "../data/subscriptions/handlers.ts";
import type { HandlerAttempt, PendingRetry } from "../event/handler.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { backoffMs } from "../lib/backoff.ts";
import { startLoop } from "../lib/loop.ts";
import type { Agents } from "./agents.ts";
import { type Lane, type LaneDeps, startLane } from "./lane.ts";

export interface HandlersDeps
  extends Pick<
    LaneDeps,
    "redis" | "attempt" | "filter" | "retries" | "observe" | "onIgnored" | "clock" | "log"
  > {
  readonly db: Database["db"];
  readonly changes: ChangeSubscriptions;
  /** Reports each event that this gateway publishes, so that it is delivered to handlers without delay. */
  readonly appended: Pick<AppendedListeners, "subscribe">;
  readonly keyring: Keyring;
  readonly agents: Pick<Agents, "reportGap" | "watchGaps" | "end">;
  readonly queue: Pick<JobQueue<PendingRetry>, "work">;
  readonly timing?: Partial<HandlersTiming>;
}

export type HandlersTiming = typeof TIMING;

/** Delivers events to the handlers of all subscriptions. Disposal waits for attempts in flight. */
export type Handlers = AsyncDisposable;

const TIMING = {
  firstRetryMs: 5_000,
  mostRetryMs: 3_600_000,
  /** Time in ms after which an undelivered event is given up and becomes a dead letter. */
  giveUpAfterMs: 86_400_000,
  breakerMs: 5_000,
  deadAfterMs: 30_000,
  /** Lock duration of a retry job, in ms. If a gateway dies, its running retries are delayed by up to twice this time. */
  jobLockMs: 15_000,
  sweepEveryMs: 60_000,
};
const TICK_MS = 1_000;
const RETRIES_AT_ONCE = 64;
/** Delay in ms of a retry if the subscription's maximum number of concurrent attempts is reached. */
const BUSY_MS = 500;
const PAUSED_MS = 30_000;
/** Delay in ms of a retry after an internal error, for example because the database is unavailable. */
const STUCK_MS = 1_000;
/**
 * Number of gateway crashes during an event's retries after which the event is dropped. It is practically unlimited, so that no event is
 * lost.
 */
const MAX_DEATHS = 1_000_000;

export function startHandlers(deps: HandlersDeps): Handlers {
  const { db, keyring, queue, retries, clock, log } = deps;
  const timing = { ...TIMING, ...deps.timing };
  const lanes = new Map<string, Lane>();
  /** Deliveries per subscription, grouped by app id, because a new event concerns all subscriptions of its app. */
  const lanesOfApp = new Map<string, Set<Lane>>();
  const changed = new Set<string>();
  let everything = true;
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  const backoff = (attempts: number): number =>
    backoffMs(
      { initialMs: timing.firstRetryMs, maxMs: timing.mostRetryMs, factor: 2, jitter: 0.5 },
      attempts,
      Math.random,
    );

  async function storeDeadLetter(
    { id }: HandledSubscription,
    { topic, entryId, fields }: DeliveredEvent,
    attempts: readonly HandlerAttempt[],
  ): Promise<void> {
    const last = attempts.at(-1);
    const reason = formatReason(last);
    const type = fields[fields.indexOf("type") + 1] ?? "";
    const letter = { subscriptionId: id, topic, entryId, type, fields, attempts, reason };
    await insertDeadLetter(db, letter, clock());
    const facts = { subscription: id, topic, entryId, reason, attempts: attempts.length };
    log.warn({ event: "handler.dead_letter", ...facts }, "an event became a dead letter");
  }

  const laneDeps: LaneDeps = {
    ...deps,
    timing,
    backoffMs: backoff,
    onDead: storeDeadLetter,
    onFailing({ id }, failing) {
      setHandlerFailing(db, id, failing).catch((err: unknown) => {
        log.warn(
          { event: "handler.state_not_written", err, subscription: id },
          "the state of a handler could not be stored",
        );
      });
    },
    writeError: (id, attempt) => setHandlerError(db, id, attempt),
    onLost({ agent }, { entryIds }) {
      const after = entryIds.at(-1);
      if (agent !== undefined && after !== undefined)
        deps.agents.reportGap(agent, { after, appended: undefined });
    },
    watchGaps: ({ agent }) => agent && deps.agents.watchGaps(agent),
    async onGone(subscription) {
      if (subscription.agent !== undefined) return deps.agents.end(subscription, "gone");
      if (!(await pauseGone(db, subscription, clock()))) return;
      const facts = { event: "handler.gone", subscription: subscription.id };
      log.warn(facts, "a handler responded 410 Gone; its subscription was paused");
    },
  };

  async function replace(id: string, subscription: HandledSubscription | undefined): Promise<void> {
    const lane = lanes.get(id);
    if (lane !== undefined && subscription !== undefined && isSame(lane.subscription, subscription)) return;
    if (lane !== undefined) await end(lane);
    if (subscription === undefined || loop.signal.aborted) return;
    const { appId } = subscription;
    const started = startLane(subscription, laneDeps);
    lanes.set(id, started);
    lanesOfApp.set(appId, (lanesOfApp.get(appId) ?? new Set()).add(started));
  }

  async function end(lane: Lane): Promise<void> {
    const { id, appId } = lane.subscription;
    lanes.delete(id);
    const others = lanesOfApp.get(appId);
    others?.delete(lane);
    if (others?.size === 0) lanesOfApp.delete(appId);
    await lane[Symbol.asyncDispose]();
  }

  async function loadAll(): Promise<void> {
    const found = new Set<string>();
    for await (const subscription of listHandled(db, keyring)) {
      if (loop.signal.aborted) return;
      found.add(subscription.id);
      await replace(subscription.id, subscription);
    }
    for (const id of [...lanes.keys()]) if (!found.has(id)) await replace(id, undefined);
  }

  async function reconcile(): Promise<void> {
    if (everything || performance.now() - sweptAtMs > timing.sweepEveryMs) {
      everything = false;
      changed.clear();
      await loadAll();
      sweptAtMs = performance.now();
    }
    for (const id of changed) {
      changed.delete(id);
      await replace(id, await findHandled(db, keyring, id));
    }
  }

  const loop = startLoop({
    everyMs: TICK_MS,
    step: () =>
      reconcile().catch((error: unknown) => {
        everything = true;
        throw error;
      }),
    onFailing: (err) => log.warn({ event: "handlers.failing", err }, "the list of handlers cannot be read"),
    onRecovered: () => log.info({ event: "handlers.recovered" }, "the list of handlers is read again"),
  });

  /** Sends a failed event again. Returns a delay if the job must run again. */
  async function retry(
    { data }: Job<PendingRetry>,
    options: { readonly signal: AbortSignal },
  ): Promise<undefined | { readonly postponeMs: number }> {
    const lane = lanes.get(data.subscriptionId);
    if (lane === undefined) {
      const found = await findHandled(db, keyring, data.subscriptionId);
      return found === undefined ? undefined : { postponeMs: BUSY_MS };
    }
    const { subscription, breaker } = lane;
    if (subscription.state === "paused") return { postponeMs: PAUSED_MS };
    if (breaker.waitMs() > 0) return { postponeMs: breaker.waitMs() + BUSY_MS * Math.random() };
    if (lane.sending() >= subscription.handler.concurrency) return { postponeMs: BUSY_MS };
    if (await isDeletedEvent(db, data.topic, data.entryId)) return undefined;
    const result = await lane.send(data, options);
    if (result.kind === "taken" || result.kind === "ignored") return undefined;
    const nowMs = clock();
    const attempts = [...data.attempts, result.attempt];
    if (result.kind === "undecided") {
      await storeDeadLetter(subscription, data, attempts);
      return undefined;
    }
    const delayMs = Math.max(backoff(attempts.length), (result.notBeforeMs ?? 0) - nowMs);
    if (nowMs + delayMs - data.firstAtMs > timing.giveUpAfterMs)
      await storeDeadLetter(subscription, data, attempts);
    else await retries.add({ ...data, attempts }, delayMs);
    return undefined;
  }

  /**
   * Sends a failed event again, and postpones the job after any error. The job must not be dropped, because it may hold the only copy of
   * the event.
   */
  async function retryOrKeep(
    job: Job<PendingRetry>,
    options: { readonly signal: AbortSignal },
  ): Promise<undefined | { readonly postponeMs: number }> {
    try {
      return await retry(job, options);
    } catch (error) {
      const facts = { event: "handler.retry_put_off", err: error, subscription: job.data.subscriptionId };
      log.debug(facts, "the retry of an event was postponed");
      return { postponeMs: STUCK_MS };
    }
  }

  deps.changes.subscribe({
    onChange({ kind, key }) {
      if (kind !== "subscription") return;
      changed.add(key);
      loop.wake();
    },
    onReset() {
      everything = true;
      loop.wake();
    },
  });
  deps.appended.subscribe((topic) => {
    if (lanes.size === 0) return;
    for (const lane of lanesOfApp.get(topic.split(".")[5] ?? "") ?? []) lane.wake();
  });
  const worker = queue.work(retryOrKeep, {
    concurrency: RETRIES_AT_ONCE,
    lockMs: timing.jobLockMs,
    maxDeaths: MAX_DEATHS,
  });
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all([loop[Symbol.asyncDispose](), worker[Symbol.asyncDispose]()]);
      await Promise.all([...lanes.values()].map((lane) => lane[Symbol.asyncDispose]()));
    },
  };
}

function formatReason(last: HandlerAttempt | undefined): string {
  if (last?.code === "rejectedInBatch") return "listed as failed in the response to its batch";
  if (last?.code === "filterFailed") return "`when` could not be evaluated";
  return last?.status == null ? `no response: ${last?.code ?? "unknown"}` : `HTTP ${last.status}`;
}

const isSame = (a: HandledSubscription, b: HandledSubscription): boolean =>
  a.state === b.state &&
  a.secret === b.secret &&
  JSON.stringify([a.handler, a.agent]) === JSON.stringify([b.handler, b.agent]);
