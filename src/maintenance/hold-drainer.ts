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
  readonly quarantine: Pick<QuarantineStore, "find" | "delete" | "listHeld">;
  readonly routeTargets: Pick<RouteTargets, "listHeld" | "endHold">;
  readonly findInstall: FindInstall;
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly bufferWhilePaused: BufferWhilePaused;
  readonly drainPaused: Pick<DrainPaused, "one">;
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

/**
 * Publishes the items that intakes hold for the route keys of installs, in order of arrival. Such items arrived before an install claimed
 * the key, while the quarantine of its organization was full, or could not be validated in time. One gateway at a time processes a key.
 */
export function startHoldDrainer(deps: HoldDrainerDeps): AsyncDisposable {
  const { db, quarantine, routeTargets, log } = deps;
  const timing = { ...TIMING, ...deps.holdTiming };
  const holder = randomUUID();
  /** Time at which each key was first found without held items. It comes from a monotonic clock. */
  const emptySinceMs = new Map<string, number>();
  const failing = new Set<string>();

  /** Publishes one held delivery. Returns false if no install owns the key any more. */
  async function sendOne(intake: CompiledChannel, key: string, id: string): Promise<boolean> {
    const { organizationId } = intake.identity;
    const found = await quarantine.find(organizationId, id);
    if (found === undefined) return true;
    const install = await deps.findInstall(intake, key);
    if (install === undefined) return false;
    const channel = toRouted(install.channel);
    const { delivery } = found;
    const options = { signal: loop.signal };
    const buffered = await deps.bufferWhilePaused(channel, delivery, options);
    // The ids of events are derived from the record, so that a repetition after a crash publishes no event twice.
    if (buffered === undefined) await deps.drainPaused.one(channel, { id, delivery }, options);
    await quarantine.delete(organizationId, id);
    return true;
  }

  async function drain(held: HeldKey): Promise<void> {
    const { key } = held;
    const name = nameOf(held);
    const claim = { name: `hold.${name}`, holder, ttlMs: timing.leaseMs };
    if (!(await claimLease(db, claim))) return;
    let claimedAtMs = performance.now();
    try {
      const intake = await deps.findCompiledChannel(held.number);
      if (intake === undefined) return;
      for (;;) {
        const ids = await quarantine.listHeld(intake.identity, key, PAGE);
        if (ids.length === 0) break;
        emptySinceMs.delete(name);
        for (const id of ids) {
          loop.signal.throwIfAborted();
          if (performance.now() - claimedAtMs > timing.leaseMs / 3) {
            if (!(await claimLease(db, claim))) return;
            claimedAtMs = performance.now();
          }
          if (!(await sendOne(intake, key, id))) return;
        }
      }
      failing.delete(name);
      await linger(held);
    } catch (err) {
      if (loop.signal.aborted || failing.has(name)) return;
      failing.add(name);
      const { number: channel, organizationId } = held;
      log.warn(
        { event: "hold.failing", err, channel, organizationId },
        "items of an intake cannot be published",
      );
    } finally {
      await releaseLease(db, claim).catch(() => {});
    }
  }

  async function linger(held: HeldKey): Promise<void> {
    const name = nameOf(held);
    const sinceMs = emptySinceMs.get(name) ?? performance.now();
    emptySinceMs.set(name, sinceMs);
    if (performance.now() - sinceMs < timing.lingerMs) return;
    await routeTargets.endHold(held);
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
