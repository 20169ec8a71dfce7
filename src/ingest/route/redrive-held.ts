import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import {
  QUARANTINE_LIMITS,
  type QuarantinedItem,
  type QuarantineRecord,
} from "../../bus/quarantine/quarantine-record.ts";
import type { RouteTargets } from "../../data/intakes/route-targets.ts";
import { createDeliveryFailure, type ItemFailure, type QuarantineReceipt } from "../../event/outcome.ts";
import type { RouteGroup } from "../../normalize/route-items.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import { toQuarantineReceipts } from "../write.ts";
import type { Routes } from "./compile-routing.ts";
import { toDistinct } from "./deliver-group.ts";
import type { FindInstall } from "./find-install.ts";
import { hideCredentials } from "./hide-credentials.ts";
import { getKeep, toNoInstall, toNoRoute, toRedriven } from "./hold-failures.ts";
import type { RouterDeps } from "./router.ts";

export interface RedriveHeldDeps extends Pick<RouterDeps, "routeItems" | "newDeliveryId"> {
  readonly findInstall: FindInstall;
  readonly targets: Pick<RouteTargets, "markHeld" | "hasOwner">;
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly clock: () => number;
}

export type RedrivenHeld =
  | {
      readonly kind: "redriven";
      /** Number of items whose route key an install owns. They wait for the drainer, which publishes them. */
      readonly routed: number;
      /** Number of items that stay held. */
      readonly held: number;
      /** Records of the items that stay held. */
      readonly quarantine: readonly QuarantineReceipt[];
    }
  | { readonly kind: "tooManyItems"; readonly limit: number };

export type RedriveHeld = ReturnType<typeof createRedriveHeld>;

interface Placed {
  readonly group: RouteGroup;
  /** Route key for which the items wait. `undefined` if a later claim of their key must not publish them. */
  readonly key: string | undefined;
  readonly isRouted: boolean;
  readonly failure: ItemFailure;
}

/**
 * Maximum age in ms of a record that keeps its time of arrival in a redrive. Items that wait for an install expire by that time, so an older
 * record could expire before the install gets its key.
 */
const MAX_AGE_MS = QUARANTINE_LIMITS.keepMs / 2;

/**
 * Creates a function that routes a held delivery by the current settings of its intake.
 *
 * The function publishes nothing. It stores the items under their new route keys with their former time of arrival, so that the drainer
 * publishes them in order with the other items of the key. The last write also removes the former record. Event ids are derived from the
 * delivery, so that a repetition after a crash publishes no event twice, unless the install's deduplication is off.
 *
 * @throws UnavailableError if the quarantine is full or the result of a write is unknown. A repetition is safe.
 */
export function createRedriveHeld(deps: RedriveHeldDeps) {
  const { findInstall, targets, quarantine } = deps;

  const hasOwner = async ({ identity }: CompiledChannel, key: string | undefined): Promise<boolean> =>
    key !== undefined && (await targets.hasOwner(identity.appId, key));

  async function place(
    intake: CompiledChannel,
    { reason }: QuarantineRecord,
    group: RouteGroup,
  ): Promise<Placed> {
    const { key } = group;
    if (key !== undefined && group.failure === undefined && (await findInstall(intake, key)) !== undefined)
      return { group, key, isRouted: true, failure: toRedriven(key) };
    const failure = group.failure ?? (key === undefined ? toNoRoute() : toNoInstall(key));
    if (reason !== "replayed") return { group, key, isRouted: false, failure };
    // With another reason, the blueprint's owner could read data that arrived for an install.
    const kept = createDeliveryFailure(reason, failure.detail);
    return { group, key: undefined, isRouted: false, failure: kept };
  }

  async function markAll(intake: CompiledChannel, keys: readonly (string | undefined)[]): Promise<void> {
    const { number, appId: blueprintId } = intake.identity;
    for (const key of keys) if (key !== undefined) await targets.markHeld({ number, blueprintId }, key);
  }

  return async (
    intake: CompiledChannel,
    routes: Routes,
    { record, delivery }: QuarantinedItem,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<RedrivenHeld> => {
    const routed = await deps.routeItems(intake, routes, delivery);
    if (routed.kind === "tooManyItems") return routed;
    // Once an install owns the key, the items are no longer the blueprint owner's to move.
    if (await hasOwner(intake, record.routeKey)) {
      await markAll(intake, [record.routeKey]);
      return { kind: "redriven", routed: routed.received, held: 0, quarantine: [] };
    }
    const { id, reason } = record;
    // The items arrived for an install that has lost its key, so no other install may get them.
    if (reason === "over_limit")
      return { kind: "redriven", routed: 0, held: routed.received, quarantine: [{ id, reason }] };
    // Under the current settings, the delivery has no items.
    if (routed.groups.length === 0)
      return { kind: "redriven", routed: 0, held: 0, quarantine: [{ id, reason }] };
    const groups = hideCredentials(intake, delivery, routed.groups);
    const placed = await Promise.all(groups.map((group) => place(intake, record, group)));
    const keys = placed.map(({ key }) => key);
    // Before the writes too, so that the drainer finds the items even if the gateway stops after the last write.
    await markAll(intake, keys);
    const isOld = deps.clock() - record.firstAtMs > MAX_AGE_MS;
    const receipts: QuarantineReceipt[] = [];
    for (const [index, { group, key, isRouted, failure }] of placed.entries()) {
      const isSame = placed.length === 1 && failure.reason === record.reason && key === record.routeKey;
      const ids = isSame
        ? [record.id]
        : await quarantine.put(
            intake.identity,
            {
              delivery: toDistinct(group.delivery, deps.newDeliveryId),
              items: [{ failure, keep: getKeep(failure) }],
              routeKey: key,
              redriven: isOld ? undefined : record.id,
            },
            { signal, ...(index === placed.length - 1 && { release: [record.id] }) },
          );
      if (!isRouted) receipts.push(...toQuarantineReceipts([failure], ids));
    }
    await markAll(intake, keys);
    const count = (wanted: boolean): number =>
      placed.reduce((sum, { isRouted, group }) => sum + (isRouted === wanted ? group.items : 0), 0);
    return { kind: "redriven", routed: count(true), held: count(false), quarantine: receipts };
  };
}
