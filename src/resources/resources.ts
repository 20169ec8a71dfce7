import { Hono, type MiddlewareHandler } from "hono";
import { type AuthenticateDeps, authenticate } from "../http/callers/authenticate.ts";
import { permissionCatalog } from "../http/callers/authorize.ts";
import type { ApiEnv } from "../http/context.ts";
import { ApiError } from "../http/errors.ts";
import { createDoOnce } from "../http/idempotency.ts";
import { type ShowLimitsDeps, showLimits } from "../http/limits.ts";
import { countRejections, requestLog, requestMetrics } from "../http/request.ts";
import type { Metrics } from "../metrics.ts";
import { apps } from "./apps/apps/routes.ts";
import { appUpgrades } from "./apps/apps/upgrade.ts";
import { artifacts } from "./apps/artifacts/routes.ts";
import { blueprints } from "./apps/blueprints/routes.ts";
import { catalog } from "./apps/catalog.ts";
import { channelLife } from "./apps/channels/life.ts";
import { channels } from "./apps/channels/routes.ts";
import { connectionCallback } from "./apps/connections/callback.ts";
import { oauthProviders } from "./apps/connections/oauth-providers.ts";
import { connections } from "./apps/connections/routes.ts";
import { explanations } from "./apps/explain.ts";
import { intakeExplanations } from "./apps/intakes/explain.ts";
import { intakeInstalls } from "./apps/intakes/installs.ts";
import { intakes } from "./apps/intakes/routes.ts";
import { intakeTests } from "./apps/intakes/test-event.ts";
import { registrations } from "./apps/registrations.ts";
import { schemaVersions } from "./apps/schema-versions.ts";
import { sources } from "./apps/sources/routes.ts";
import { testEvents } from "./apps/test-events.ts";
import { collections } from "./collections/collections.ts";
import { collectionFields } from "./collections/fields.ts";
import { collectionRecords } from "./collections/records.ts";
import { agents } from "./conversation/agents.ts";
import { conversationMessages } from "./conversation/conversations/messages.ts";
import { conversations } from "./conversation/conversations/routes.ts";
import { knowledgeBases } from "./conversation/knowledge-bases.ts";
import { roomMessages } from "./conversation/rooms/messages.ts";
import { participants } from "./conversation/rooms/participants.ts";
import { rooms } from "./conversation/rooms/routes.ts";
import { tasks } from "./conversation/tasks/routes.ts";
import { agentSubscriptions } from "./events/agent-subscriptions.ts";
import { eventCatalog } from "./events/catalog/routes.ts";
import { deadLetters } from "./events/dead-letters.ts";
import { deliveries } from "./events/deliveries/routes.ts";
import { events } from "./events/events/routes.ts";
import { eventStream } from "./events/events/stream.ts";
import { inferences } from "./events/infer/routes.ts";
import { lookup } from "./events/lookup/routes.ts";
import { overview } from "./events/overview.ts";
import { problems } from "./events/problems/routes.ts";
import { intakeQuarantine } from "./events/quarantine/intake-quarantine.ts";
import { recoveries } from "./events/quarantine/recover.ts";
import { quarantine } from "./events/quarantine/routes.ts";
import { series } from "./events/series.ts";
import { subscriptionLife } from "./events/subscriptions/life.ts";
import { subscriptionReaders } from "./events/subscriptions/readers.ts";
import { replays } from "./events/subscriptions/replay.ts";
import { subscriptions } from "./events/subscriptions/routes.ts";
import { topics } from "./events/topics.ts";
import { forms } from "./forms/forms.ts";
import { accounts } from "./iam/accounts.ts";
import { apiKeys } from "./iam/api-keys.ts";
import { audit } from "./iam/audit.ts";
import { auth } from "./iam/auth.ts";
import { groups } from "./iam/groups.ts";
import { identities } from "./iam/identities.ts";
import { memberships } from "./iam/memberships.ts";
import { organizationLimits } from "./iam/organization-limits.ts";
import { organizations } from "./iam/organizations.ts";
import { permissions } from "./iam/permissions.ts";
import { roles } from "./iam/roles.ts";
import { spaces } from "./iam/spaces.ts";
import type { Deps } from "./kit/deps.ts";
import { explainMissingPath } from "./kit/missing-path.ts";
import { collectRoutes, isRead, type MountedRoute, mountRoute } from "./kit/mount.ts";
import { createDocument } from "./kit/openapi/document.ts";
import { openApi } from "./kit/openapi/routes.ts";
import type { Resource } from "./kit/resource.ts";
import { states } from "./states/states.ts";
import { stateVariables } from "./states/variables.ts";
import { storeCategories } from "./store/categories.ts";
import { storeOrders } from "./store/orders/routes.ts";
import { storePricingPlans } from "./store/pricing-plans.ts";
import { storeReviews } from "./store/reviews.ts";
import { stores } from "./store/stores.ts";
import { phoneNumbers } from "./telephony/phone-numbers/routes.ts";
import { sipTrunks } from "./telephony/sip-trunks.ts";

/** Dependencies of the API. The names of permissions and the OpenAPI document follow from its routes. */
export type ApiDeps = Omit<Deps, "permissionNames" | "openApiText"> &
  AuthenticateDeps &
  ShowLimitsDeps & {
    readonly metrics: Metrics;
    /** Resolves when this process has applied all configuration changes that were committed earlier. */
    readonly readChanges: () => Promise<void>;
  };

/** Add new resources here. */
const RESOURCES: readonly Resource[] = [
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
  intakes,
  intakeExplanations,
  intakeTests,
  intakeInstalls,
  intakeQuarantine,
  apps,
  appUpgrades,
  channels,
  channelLife,
  explanations,
  inferences,
  schemaVersions,
  testEvents,
  sources,
  recoveries,
  registrations,
  catalog,
  stores,
  storeCategories,
  artifacts,
  connections,
  oauthProviders,
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
  subscriptions,
  agentSubscriptions,
  subscriptionLife,
  subscriptionReaders,
  replays,
  deadLetters,
  lookup,
  overview,
  series,
  deliveries,
  quarantine,
  topics,
  eventCatalog,
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
  return createDocument(collectRoutes(RESOURCES, facts as Deps), facts);
}

/**
 * Creates the management API, to be mounted below the version prefix. Requests are authenticated and authorized before
 * a handler runs, and the outer app handles errors.
 */
export function createApi(deps: ApiDeps): Hono<ApiEnv> {
  let text: string | undefined;
  const routes: readonly MountedRoute[] = collectRoutes(RESOURCES, {
    ...deps,
    permissionNames: () => permissionNames,
    openApiText: () => {
      text ??= JSON.stringify(createDocument(routes, deps));
      return text;
    },
  });
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
  api.all("/:first{.+}", (c, next) => {
    const message = explainMissingPath(`/${c.req.param("first")}`, routes);
    if (message !== undefined) throw new ApiError("not_found", message);
    return next();
  });
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
