import { randomUUID } from "node:crypto";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { Queryable } from "../data/database.ts";
import type { HeldKey, RouteTargets } from "../data/intakes/route-targets.ts";
import { claimLease, releaseLease } from "../data/leases.ts";
import type { CompiledChannel } from "../ingest/compile-channel.ts";
import type { DrainPaused } from "../ingest/drain-paused.ts";
import type { BufferWhilePaused } from "../ingest/pause-buffer.ts";
import { toRouted } from "../ingest/route/deliver-group.ts";
import type { FindInstall } from "../ingest/route/find-install.ts";
import { startLoop } from "../lib/loop.ts";
import { mapBounded } from "../lib/map-bounded.ts";
import type { Log } from "../log.ts";

export interface HoldDrainerDeps {
  readonly db: Queryable;
  readonly changes: ChangeSubscriptions;
  readonly quarantine: Pick<QuarantineStore, "find" | "delete" | "listHeld" | "hasHeld">;
  readonly routeTargets: Pick<RouteTargets, "listHeld" | "endHold">;
  readonly findInstall: FindInstall;
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly bufferWhilePaused: BufferWhilePaused;
  readonly drainPaused: DrainPaused;
  readonly log: Log;
  readonly holdTiming?: Partial<typeof TIMING>;
}

const TIMING = {
  /** Interval at which held keys are searched for, in ms. A change to a channel starts a search immediately. */
  tickMs: 1_000,
  /** Lock duration of the gateway that publishes the items of a key, in ms. If it dies, another gateway continues after this time. */
  leaseMs: 15_000,
  /**
   * Time in ms for which no items of a key must be held before the hold ends. Must exceed the time in which all gateways learn that an install
   * has claimed the key, because a gateway may hold items until then.
   */
  lingerMs: 15_000,
};
const KEYS_AT_ONCE = 4;
const PAGE = 100;
/** Number of items of a key that are read and published together. */
const ITEMS_AT_ONCE = 50;
/** Number of pages after which other keys get their turn. Otherwise, a few keys with constant traffic could block all others. */
const PAGES_PER_TURN = 20;
const CALLS_AT_ONCE = 16;

/**
 * Publishes the items that intakes hold for the route keys of installs, in order of arrival. Such items arrived before an install claimed
 * the key, while the quarantine of its organization was full, or could not be validated in time. One gateway at a time processes a key.
 */
export function startHoldDrainer(deps: HoldDrainerDeps): AsyncDisposable {
  const { db, quarantine, routeTargets, drainPaused, log } = deps;
  const timing = { ...TIMING, ...deps.holdTiming };
  const holder = randomUUID();
  /** Time at which each key was first found without held items. It comes from a monotonic clock. */
  const emptySinceMs = new Map<string, number>();
  const failing = new Set<string>();

  /** Publishes held deliveries in order. Returns false if no install owns the key any more. */
  async function sendAll(intake: CompiledChannel, key: string, ids: readonly string[]): Promise<boolean> {
    const { organizationId } = intake.identity;
    const install = await deps.findInstall(intake, key);
    if (install === undefined) return false;
    const channel = toRouted(install.channel);
    const found = await mapBounded(ids, CALLS_AT_ONCE, (id) => quarantine.find(organizationId, id));
    const held = found.flatMap((item) => (item ? [{ id: item.record.id, delivery: item.delivery }] : []));
    const { signal } = loop;
    // The ids of events are derived from the record, so that a repetition after a crash publishes no event twice, unless the
    // install's deduplication is off.
    const onDone = async (done: readonly string[]) => {
      await mapBounded(done, CALLS_AT_ONCE, (id) => quarantine.delete(organizationId, id));
    };
    if (channel.pause === undefined) await drainPaused.all(channel, held, { signal, onDone });
    else
      for (const one of held) {
        const buffered = await deps.bufferWhilePaused(channel, one.delivery, { signal });
        if (buffered === undefined) await drainPaused.one(channel, one, { signal });
        await onDone([one.id]);
      }
    return true;
  }

  async function drain(held: HeldKey): Promise<void> {
    const { key } = held;
    const name = nameOf(held);
    const facts = { channel: held.number, organizationId: held.organizationId };
    const claim = { name: `hold.${name}`, holder, ttlMs: timing.leaseMs };
    try {
      for (let page = 0; page < PAGES_PER_TURN; page++) {
        loop.signal.throwIfAborted();
        if (!(await claimLease(db, claim))) return;
        const intake = await deps.findCompiledChannel(held.number);
        if (intake === undefined) return;
        const ids = await quarantine.listHeld(intake.identity, key, ITEMS_AT_ONCE);
        if (ids.length === 0) return await linger(held);
        emptySinceMs.delete(name);
        if (!(await sendAll(intake, key, ids))) return;
        if (failing.delete(name))
          log.info({ event: "hold.recovered", ...facts }, "items of an intake are published again");
      }
      loop.wake();
    } catch (err) {
      if (loop.signal.aborted || failing.has(name)) return;
      failing.add(name);
      log.warn({ event: "hold.failing", err, ...facts }, "items of an intake cannot be published");
    } finally {
      await releaseLease(db, claim).catch(() => {});
    }
  }

  async function linger(held: HeldKey): Promise<void> {
    const name = nameOf(held);
    const sinceMs = emptySinceMs.get(name) ?? performance.now();
    emptySinceMs.set(name, sinceMs);
    if (performance.now() - sinceMs < timing.lingerMs) return;
    await routeTargets.endHold(held, () => quarantine.hasHeld(held, held.key));
    emptySinceMs.delete(name);
  }

  async function drainAll(): Promise<void> {
    let after = { blueprintId: "", key: "" };
    const names = new Set<string>();
    for (;;) {
      const page = await routeTargets.listHeld(after, PAGE);
      for (const held of page) names.add(nameOf(held));
      await mapBounded(page, KEYS_AT_ONCE, drain);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = last;
    }
    for (const name of emptySinceMs.keys()) if (!names.has(name)) emptySinceMs.delete(name);
    for (const name of failing) if (!names.has(name)) failing.delete(name);
  }

  const loop = startLoop({
    step: drainAll,
    everyMs: timing.tickMs,
    onFailing: (err) => log.warn({ event: "hold_drainer.failing", err }, "held route keys cannot be listed"),
    onRecovered: () => log.info({ event: "hold_drainer.recovered" }, "held route keys are listed again"),
  });
  deps.changes.subscribe({
    onChange({ kind }) {
      if (kind === "channel") loop.wake();
    },
    onReset: () => loop.wake(),
  });
  return loop;
}

const nameOf = ({ blueprintId, key }: HeldKey): string => `${blueprintId}.${key}`;
