import { type QuarantineReason, tooManyItemsFailure } from "../../event/outcome.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import type { RouteGroup } from "../../normalize/route-items.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import type { PublishTest } from "../write.ts";
import type { Routes } from "./compile-routing.ts";
import type { FindInstall } from "./find-install.ts";
import { hideCredentials } from "./hide-credentials.ts";
import { toNoInstall, toNoRoute } from "./hold-failures.ts";
import type { RouterDeps } from "./router.ts";

/** Result for the items of a test delivery with the same route key. */
export interface TestedGroup {
  readonly routeKey: string | null;
  readonly items: number;
  readonly result: "routed" | QuarantineReason;
  readonly detail: string | null;
  /** App that owns the route key. */
  readonly appId: string | null;
  /** Number of published test events and of items that failed. `null` if the items were not published, for the reason in `detail`. */
  readonly published: number | null;
  readonly failed: number | null;
}

export interface TestedRouting {
  readonly received: number;
  readonly groups: readonly TestedGroup[];
}

export type TestRouting = ReturnType<typeof createTestRouting>;

/**
 * Creates a function that routes a delivery and publishes its events as test events. Does not store failed items. Only installs of the
 * caller's organization get events, because callers of the API must not write into the topics of another organization.
 *
 * @throws UnavailableError
 */
export function createTestRouting(
  deps: Pick<RouterDeps, "routeItems"> & {
    readonly findInstall: FindInstall;
    readonly publishTest: PublishTest;
  },
) {
  async function testGroup(
    intake: CompiledChannel,
    { key, delivery, items, failure }: RouteGroup,
    { organizationId, signal }: TestOptions,
  ): Promise<TestedGroup> {
    const shown = { routeKey: key ?? null, items, appId: null, published: null, failed: null };
    const install = key === undefined || failure ? undefined : await deps.findInstall(intake, key);
    if (install === undefined) {
      const { reason, detail } = failure ?? (key === undefined ? toNoRoute() : toNoInstall(key));
      return { ...shown, result: reason, detail };
    }
    const { identity, state } = install.channel;
    const routed = { ...shown, appId: identity.appId, result: "routed" } as const;
    if (identity.organizationId !== organizationId)
      return { ...routed, detail: "the app belongs to another organization, so no test event was published" };
    if (state === "paused")
      return { ...routed, detail: "the channel of the app is paused, so no test event was published" };
    const { events, failures } = await deps.publishTest(install.channel, delivery, { signal });
    return { ...routed, detail: null, published: events.length, failed: failures.length };
  }

  return async (
    intake: CompiledChannel,
    routes: Routes,
    delivery: VerifiedDelivery,
    options: TestOptions,
  ): Promise<TestedRouting> => {
    const routed = await deps.routeItems(intake, routes, delivery);
    const all =
      routed.kind === "tooManyItems"
        ? [{ key: undefined, delivery, items: 1, failure: tooManyItemsFailure(routed.limit) }]
        : hideCredentials(intake, delivery, routed.groups);
    const groups: TestedGroup[] = [];
    for (const group of all) groups.push(await testGroup(intake, group, options));
    return { received: routed.kind === "routed" ? routed.received : 1, groups };
  };
}

interface TestOptions {
  readonly organizationId: string;
  readonly signal: AbortSignal;
}
