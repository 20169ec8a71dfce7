import { Hono, type MiddlewareHandler } from "hono";
import { type AuthenticateDeps, authenticate } from "../http/callers/authenticate.ts";
import { permissionCatalog } from "../http/callers/authorize.ts";
import type { ApiEnv } from "../http/context.ts";
import { createDoOnce } from "../http/idempotency.ts";
import { type ShowLimitsDeps, showLimits } from "../http/limits.ts";
import { countRejections, requestLog, requestMetrics } from "../http/request.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { type AppDeps, apps } from "./apps/apps/routes.ts";
import { appUpgrades } from "./apps/apps/upgrade.ts";
import { artifacts } from "./apps/artifacts/routes.ts";
import { type BlueprintDeps, blueprints } from "./apps/blueprints/routes.ts";
import {
  type CatalogDeps,
  channelKindCatalog,
  presetCatalog,
  verificationSchemeCatalog,
} from "./apps/catalog/routes.ts";
import { channelLife } from "./apps/channels/life.ts";
import { type ChannelDeps, channels } from "./apps/channels/routes.ts";
import { connectionCallback } from "./apps/connections/callback.ts";
import { type ConnectionsDeps, connections } from "./apps/connections/routes.ts";
import { type ExplainDeps, explanations } from "./apps/explain.ts";
import { type SourcesDeps, sources } from "./apps/sources/routes.ts";
import { type TestEventsDeps, testEvents } from "./apps/test-events.ts";
import { collections } from "./collections/collections.ts";
import { collectionFields } from "./collections/fields/routes.ts";
import { collectionRecords } from "./collections/records.ts";
import { agents } from "./conversation/agents.ts";
import { conversationMessages } from "./conversation/conversations/messages.ts";
import { conversations } from "./conversation/conversations/routes.ts";
import { knowledgeBases } from "./conversation/knowledge-bases.ts";
import { roomMessages } from "./conversation/rooms/messages.ts";
import { participants } from "./conversation/rooms/participants.ts";
import { rooms } from "./conversation/rooms/routes.ts";
import { tasks } from "./conversation/tasks/routes.ts";
import { type DeadLettersDeps, deadLetters } from "./events/dead-letters/routes.ts";
import type { PreviewDeps } from "./events/deliveries/preview.ts";
import type { ReadingsDeps } from "./events/deliveries/readings.ts";
import { deliveries } from "./events/deliveries/routes.ts";
import type { EventsDeps } from "./events/events/queries.ts";
import { events } from "./events/events/routes.ts";
import { type EventStreamDeps, eventStream } from "./events/events/stream.ts";
import { type OverviewDeps, overview } from "./events/overview.ts";
import { type ProblemsDeps, problems } from "./events/problems/routes.ts";
import type { QuarantineDeps } from "./events/quarantine/redrive.ts";
import { quarantine } from "./events/quarantine/routes.ts";
import { subscriptionLife } from "./events/subscriptions/life.ts";
import { type ReadersDeps, subscriptionReaders } from "./events/subscriptions/readers.ts";
import { type ReplayDeps, replays } from "./events/subscriptions/replay.ts";
import { type SubscriptionsDeps, subscribe, subscriptions } from "./events/subscriptions/routes.ts";
import { type TopicsDeps, topics } from "./events/topics/routes.ts";
import { forms } from "./forms/forms.ts";
import { accounts } from "./iam/accounts.ts";
import { apiKeys } from "./iam/api-keys.ts";
import { type AuditDeps, audit } from "./iam/audit.ts";
import { type AuthDeps, auth } from "./iam/auth.ts";
import { groups } from "./iam/groups.ts";
import { identities } from "./iam/identities.ts";
import { memberships } from "./iam/memberships.ts";
import { type LimitsDeps, organizationLimits } from "./iam/organization-limits.ts";
import { organizations } from "./iam/organizations.ts";
import { permissions } from "./iam/permissions.ts";
import { roles } from "./iam/roles.ts";
import { spaces } from "./iam/spaces.ts";
import { collectRoutes, isRead, type MountedRoute, mountRoute } from "./kit/mount.ts";
import { createDocument } from "./kit/openapi/document.ts";
import { openApi } from "./kit/openapi/routes.ts";
import type { Resource } from "./kit/resource.ts";
import { states } from "./states/states.ts";
import { stateVariables, type VariableDeps } from "./states/variables/routes.ts";
import { storeCategories } from "./store/categories.ts";
import { storeOrders } from "./store/orders/routes.ts";
import { storePricingPlans } from "./store/pricing-plans.ts";
import { storeReviews } from "./store/reviews.ts";
import { stores } from "./store/stores.ts";
import { type PhoneNumberDeps, phoneNumbers } from "./telephony/phone-numbers/routes.ts";
import { type SipTrunkDeps, sipTrunks } from "./telephony/sip-trunks.ts";

export type ApiDeps = BlueprintDeps &
  AppDeps &
  ChannelDeps &
  CatalogDeps &
  ConnectionsDeps &
  SourcesDeps &
  ExplainDeps &
  TestEventsDeps &
  SubscriptionsDeps &
  ReplayDeps &
  DeadLettersDeps &
  QuarantineDeps &
  PreviewDeps &
  ReadingsDeps &
  ReadersDeps &
  OverviewDeps &
  TopicsDeps &
  EventsDeps &
  EventStreamDeps &
  ProblemsDeps &
  AuditDeps &
  SipTrunkDeps &
  PhoneNumberDeps &
  VariableDeps &
  AuthDeps &
  LimitsDeps &
  AuthenticateDeps &
  ShowLimitsDeps & {
    readonly log: Log;
    readonly metrics: Metrics;
    /** Resolves when this process has applied all configuration changes that were committed earlier. */
    readonly readChanges: () => Promise<void>;
  };

/** Information about all routes, for resources whose responses contain it. */
export interface RouteFacts {
  /** Names of all permissions, starting with `*`. */
  readonly permissionNames: () => readonly string[];
  readonly routes: () => readonly MountedRoute[];
}

/** Add new resources here. */
const RESOURCES: readonly Resource<ApiDeps & RouteFacts>[] = [
  auth,
  organizations,
  organizationLimits,
  spaces,
  roles,
  permissions,
  accounts,
  identities,
  memberships,
  groups,
  apiKeys,
  blueprints,
  apps,
  appUpgrades,
  channels,
  channelLife,
  explanations,
  testEvents,
  sources,
  channelKindCatalog,
  verificationSchemeCatalog,
  presetCatalog,
  stores,
  storeCategories,
  artifacts,
  connections,
  connectionCallback,
  storePricingPlans,
  storeReviews,
  storeOrders,
  agents,
  knowledgeBases,
  rooms,
  participants,
  roomMessages,
  conversations,
  conversationMessages,
  tasks,
  sipTrunks,
  phoneNumbers,
  states,
  stateVariables,
  forms,
  collections,
  collectionFields,
  collectionRecords,
  subscribe,
  subscriptions,
  subscriptionLife,
  subscriptionReaders,
  replays,
  deadLetters,
  overview,
  deliveries,
  quarantine,
  topics,
  events,
  eventStream,
  problems,
  audit,
  openApi,
];

export type DescribedFacts = Pick<ApiDeps, "channelKinds" | "presets" | "sipProviders" | "hooksUrl">;

/** Creates the OpenAPI document without a running gateway. Code generators and the documentation use it. */
export function describeApi(facts: DescribedFacts): ReturnType<typeof createDocument> {
  // The missing dependencies are used by handlers only, and this function runs no handler.
  const deps = { ...facts, permissionNames: () => [], routes: () => [] } as unknown as ApiDeps & RouteFacts;
  const routes = collectRoutes(RESOURCES, deps);
  return createDocument({ routes, hooksUrl: facts.hooksUrl, kinds: facts.channelKinds });
}

/**
 * Creates the management API, to be mounted below the version prefix. Requests are authenticated and authorized before
 * a handler runs, and the outer app handles errors.
 */
export function createApi(deps: ApiDeps): Hono<ApiEnv> {
  const facts: RouteFacts = { permissionNames: () => permissionNames, routes: () => routes };
  const routes: readonly MountedRoute[] = collectRoutes(RESOURCES, { ...deps, ...facts });
  const permissionNames = permissionCatalog(
    routes.flatMap(({ permission, reveals = null }) => [permission, reveals]),
  );
  const api = new Hono<ApiEnv>();
  api.use(requestMetrics(deps.metrics));
  api.use(requestLog(deps));
  api.use(showLimits(deps));
  api.use(countRejections(deps.refusals));
  const doOnce = createDoOnce(deps);
  // Routes registered before `authenticate` require no token.
  for (const route of routes.filter(({ isPublic }) => isPublic)) mountRoute(api, route, doOnce);
  api.use(authenticate(deps));
  api.use(seeOwnWrites(deps));
  for (const route of routes.filter(({ isPublic }) => !isPublic)) mountRoute(api, route, doOnce);
  return api;
}

/**
 * Delays the response to a write until this worker has applied the change, so that clients see their own writes. Other
 * workers apply it within two seconds.
 */
function seeOwnWrites({ readChanges, log }: ApiDeps): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    await next();
    if (isRead(c.req.method, c.req.path) || !c.res.ok) return;
    await readChanges().catch((error: unknown) =>
      log.debug(
        { event: "changes.read_late", err: error },
        "could not read configuration changes; the next check retries",
      ),
    );
  };
}
