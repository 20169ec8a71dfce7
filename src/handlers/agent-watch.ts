import type { ChangeSubscriptions } from "../data/changes.ts";
import type { Database } from "../data/database.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import { expireConfirmations } from "../data/subscriptions/agent-callbacks.ts";
import { listEnded } from "../data/subscriptions/agent-subscriptions.ts";
import type { Clock } from "../lib/clock.ts";
import { startLoop } from "../lib/loop.ts";
import type { Log } from "../log.ts";
import type { Agents } from "./agents.ts";
import type { HandlersTiming } from "./handlers.ts";

export interface AgentWatchDeps {
  readonly db: Database["db"];
  readonly keyring: Keyring;
  readonly changes: ChangeSubscriptions;
  readonly agents: Pick<Agents, "end">;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: Pick<Partial<HandlersTiming>, "sweepEveryMs">;
}

const TICK_MS = 1_000;
/** Minimum time in ms between two checks, because a check after a change reads all subscriptions of agents. */
const GAP_MS = 500;
/** Interval in ms at which all subscriptions are checked without a change, for example for keys that expire. */
const SWEEP_EVERY_MS = 30_000;

/** Changes after which a caller may have lost access, or an event type may be closed to agents. */
const RELEVANT: ReadonlySet<string> = new Set(["access", "channel", "app"]);

/**
 * Starts to end the subscriptions of agents that expire, or whose caller or event type no longer permits them. Several gateways can do this
 * at the same time.
 */
export function startAgentWatch({
  db,
  keyring,
  changes,
  agents,
  clock,
  log,
  timing: { sweepEveryMs = SWEEP_EVERY_MS } = {},
}: AgentWatchDeps): AsyncDisposable {
  let everything = true;
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  async function step(): Promise<void> {
    const nowMs = clock();
    const isSweep = performance.now() - sweptAtMs > sweepEveryMs;
    const all = everything || isSweep;
    everything = false;
    const ended = await listEnded(db, keyring, { nowMs, all });
    for (const { id, organizationId, reason, callback } of ended)
      await agents.end({ id, organizationId, agent: callback }, reason);
    // There may be more than one call returns. A change during the call has set `everything` already.
    if (all && ended.length > 0) everything = true;
    if (!isSweep) return;
    await expireConfirmations(db, nowMs);
    sweptAtMs = performance.now();
  }

  const loop = startLoop({
    everyMs: TICK_MS,
    gapMs: GAP_MS,
    step: () =>
      step().catch((error: unknown) => {
        everything = true;
        throw error;
      }),
    onFailing: (err) =>
      log.warn({ event: "agent_watch.failing", err }, "the subscriptions of agents cannot be checked"),
    onRecovered: () =>
      log.info({ event: "agent_watch.recovered" }, "the subscriptions of agents are checked again"),
  });
  const recheck = (): void => {
    everything = true;
    loop.wake();
  };
  changes.subscribe({
    onChange: ({ kind }) => {
      if (RELEVANT.has(kind)) recheck();
    },
    onReset: recheck,
  });
  return loop;
}
