import { Hono, type MiddlewareHandler } from "hono";
import { findApiKey } from "../data/api-keys.ts";
import { authenticate } from "../http/authenticate.ts";
import { authorize } from "../http/authorize.ts";
import type { ApiEnv } from "../http/context.ts";
import { refuseUnfitText } from "../http/refuse-unfit-text.ts";
import { requestLog } from "../http/request-log.ts";
import { requestMetrics } from "../http/request-metrics.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { type AppDeps, apps } from "./apps/routes.ts";
import { type BlueprintDeps, blueprints } from "./blueprints/routes.ts";
import { type ChannelDeps, channels } from "./channels/routes.ts";
import type { EventsDeps } from "./events/queries.ts";
import { events } from "./events/routes.ts";
import { type QuarantineDeps, quarantine } from "./quarantine/routes.ts";
import type { Resource } from "./resource.ts";
import { type SubscriptionsDeps, subscribe, subscriptions } from "./subscriptions/routes.ts";
import { type TopicsDeps, topics } from "./topics/routes.ts";

/** What the resources need, all of them together. */
export type ApiDeps = BlueprintDeps &
  AppDeps &
  ChannelDeps &
  SubscriptionsDeps &
  QuarantineDeps &
  TopicsDeps &
  EventsDeps & {
    readonly log: Log;
    readonly metrics: Metrics;
    /** Resolves when what was committed before the call is in force in this process. */
    readonly readChanges: () => Promise<void>;
  };

/** All resources; a new one is its folder and its line here. */
const RESOURCES: readonly Resource<ApiDeps>[] = [
  blueprints,
  apps,
  channels,
  subscribe,
  subscriptions,
  quarantine,
  topics,
  events,
];

/**
 * The management API, to be mounted below the version. Every request is known and allowed before a route runs; errors are
 * left to the app that it is mounted on.
 */
export function createApi(deps: ApiDeps): Hono<ApiEnv> {
  const { db, clock } = deps;
  const api = new Hono<ApiEnv>();
  api.use(requestMetrics(deps.metrics));
  api.use(requestLog(deps));
  api.use(authenticate({ findKey: (token) => findApiKey(db, token, clock()) }));
  const nouns = new Set(RESOURCES.map(({ path }) => path.split("/").slice(0, 2).join("/")));
  for (const noun of nouns) api.use(`${noun}/*`, authorize(noun));
  api.use(refuseUnfitText());
  api.use(seeOwnWrites(deps));
  for (const { path, create } of RESOURCES) api.route(path, create(deps));
  return api;
}

/** Others have a change in force within two seconds; whoever made it finds it so at once, on this worker. */
function seeOwnWrites({ readChanges, log }: ApiDeps): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    await next();
    if (c.req.method === "GET" || !c.res.ok) return;
    await readChanges().catch((error: unknown) =>
      log.debug({ err: error }, "changes are read at the next beat"),
    );
  };
}
