import type { RouteMemory } from "../../bus/publish/route-memory.ts";
import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import type { ExplainedPath } from "../../event/explained.ts";
import { type QuarantineReason, tooManyItemsFailure } from "../../event/outcome.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import { type ExplainedRoute, explainRoutes } from "../../normalize/explain-routes.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import type { Routes } from "./compile-routing.ts";
import type { FindInstall } from "./find-install.ts";
import { REPLAYED_DETAIL, toBehindHeld, toNoInstall } from "./hold-failures.ts";

/** Predicted result for an item of an intake's delivery. */
export interface RoutedItem {
  /** Index of the item. `null` for the delivery as a whole. */
  readonly item: number | null;
  readonly routeKey: string | null;
  /** The path that yields the route key. */
  readonly path: string | null;
  readonly paths: readonly ExplainedPath[];
  readonly result: "routed" | QuarantineReason;
  /** Why the intake would hold the item. */
  readonly detail: string | null;
  /** App that owns the route key. */
  readonly appId: string | null;
}

export interface ExplainedRouting {
  readonly received: number;
  readonly items: readonly RoutedItem[];
}

export type ExplainRouting = ReturnType<typeof createExplainRouting>;

/**
 * Creates a function that shows how an intake would route the items of a delivery. It writes nothing and reads no data of installs.
 *
 * @throws UnavailableError
 */
export function createExplainRouting(deps: {
  readonly findInstall: FindInstall;
  readonly quarantine: Pick<QuarantineStore, "hasHeld">;
  readonly memory: Pick<RouteMemory, "wouldReplay">;
}) {
  async function toRoutedItem(intake: CompiledChannel, route: ExplainedRoute): Promise<RoutedItem> {
    const { item, key, path = null, paths, failure } = route;
    const shown = { item, routeKey: key ?? null, path, paths, appId: null };
    if (failure !== undefined) return { ...shown, result: failure.reason, detail: failure.detail };
    if (key === undefined) throw new Error("an explained item has neither a route key nor a failure");
    const install = await deps.findInstall(intake, key);
    const { reason, detail } = toNoInstall(key);
    if (install === undefined) return { ...shown, result: reason, detail };
    const { appId } = install.channel.identity;
    if (install.isHeld && (await deps.quarantine.hasHeld(intake.identity, key)))
      return { ...shown, appId, result: reason, detail: toBehindHeld(key).detail };
    return { ...shown, appId, result: "routed", detail: null };
  }

  async function isReplay(
    { identity }: CompiledChannel,
    { remembersKeys }: Routes,
    { boundTo }: VerifiedDelivery,
    items: readonly ExplainedRoute[],
  ): Promise<boolean> {
    if (!remembersKeys || boundTo === undefined) return false;
    // One key per group, as the router remembers them.
    const groups = new Map(
      items.map(({ key, failure }) => [key === undefined ? failure?.reason : `=${key}`, key ?? ""]),
    );
    return deps.memory.wouldReplay(identity.number, boundTo, [...groups.values()].sort());
  }

  /** @param maxItems maximum number of items to return */
  return async (
    intake: CompiledChannel,
    routes: Routes,
    delivery: VerifiedDelivery,
    maxItems: number,
  ): Promise<ExplainedRouting> => {
    const explained = explainRoutes(intake.rules, routes.paths, delivery, maxItems);
    if (explained.kind === "tooManyItems") {
      const { reason, detail } = tooManyItemsFailure(explained.limit);
      const whole = { item: null, routeKey: null, path: null, paths: [], appId: null };
      return { received: 1, items: [{ ...whole, result: reason, detail }] };
    }
    const { received, items } = explained;
    const shown: RoutedItem[] = [];
    for (const route of items.slice(0, maxItems)) shown.push(await toRoutedItem(intake, route));
    if (!(await isReplay(intake, routes, delivery, items))) return { received, items: shown };
    const replayed = { result: "replayed", detail: REPLAYED_DETAIL } as const;
    return { received, items: shown.map((item) => ({ ...item, ...replayed })) };
  };
}
