import type { RouteMemory } from "../../bus/publish/route-memory.ts";
import type { QuarantineStore } from "../../bus/quarantine/quarantine.ts";
import type { RouteTargets } from "../../data/intakes/route-targets.ts";
import type { CompiledChannel } from "../compile-channel.ts";
import { type ItemRouter, MAX_CHECK_MS } from "../normalizer.ts";
import type { RulesCache } from "../rules-cache.ts";
import type { PublishTest } from "../write.ts";
import { createDeliverGroup, type DeliverGroupDeps } from "./deliver-group.ts";
import { createExplainRouting } from "./explain-routing.ts";
import { createFindInstall } from "./find-install.ts";
import { createRedriveHeld } from "./redrive-held.ts";
import { createRouter, type RouterDeps } from "./router.ts";
import { createTestRouting } from "./test-routing.ts";

export interface RoutingDeps
  extends DeliverGroupDeps,
    Pick<RouterDeps, "metrics" | "countHeld" | "newDeliveryId"> {
  readonly quarantine: Pick<QuarantineStore, "put" | "hasHeld">;
  readonly routeItems: ItemRouter;
  readonly targets: RouteTargets;
  readonly findChannel: RulesCache["find"];
  readonly publishTest: PublishTest;
  readonly clock: () => number;
  readonly memory: RouteMemory;
}

/** Time in ms for which an intake remembers signed bytes if its deduplication is turned off. */
const DEFAULT_WINDOW_MS = 86_400_000;

/** Creates the functions that route the deliveries of intakes. */
export function openRouting(deps: RoutingDeps) {
  const { maxCheckMs = MAX_CHECK_MS } = deps;
  const { find: findInstall, forgetUnheld } = createFindInstall(deps);
  const shared: Pick<RouterDeps, "routeItems" | "findInstall"> = {
    findInstall,
    routeItems: ({ rules }, { paths }, delivery) => deps.routeItems(rules, paths, delivery, maxCheckMs),
  };
  const route = createRouter({
    ...deps,
    ...shared,
    async markHeld(intake, key) {
      const { number, appId: blueprintId } = intake.identity;
      await deps.targets.markHeld({ number, blueprintId }, key);
      forgetUnheld(intake, key);
    },
    deliverGroup: createDeliverGroup(deps),
    isReplay: ({ identity, config }, signedBytes, keys) =>
      deps.memory.isReplay(identity.number, signedBytes, keys, getWindowMs(config)),
  });
  return {
    route,
    findInstall,
    redriveHeld: createRedriveHeld({ ...deps, ...shared }),
    explainRouting: createExplainRouting({ ...deps, findInstall }),
    testRouting: createTestRouting({ ...deps, ...shared }),
  };
}

const getWindowMs = ({ dedupe }: CompiledChannel["config"]): number =>
  dedupe.windowSeconds === 0 ? DEFAULT_WINDOW_MS : dedupe.windowSeconds * 1000;
