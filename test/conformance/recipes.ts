import type { OpenApi } from "../support/documented.ts";
import { until } from "../support/until.ts";
import type { Recipes, Scope } from "./fixtures.ts";

const INTAKE_TOKEN = "token-of-an-intake";

/** Makes values unique that may exist only once. */
let made = 0;

/** Facts that the document's examples do not contain. No other part of these tests knows resources by name. */
export const RECIPES: Recipes = {
  ids: {
    organizationId: async ({ organizationId }) => organizationId,
    // The oldest account belongs to the organization's first key.
    ownAccountId: async (scope) => (await scope.call("GET", "/iam/accounts"))[0].id,
    membershipId: async (scope) => (await membershipOf(scope, await scope.idOf("accountId"))).id,
    permissionId: async (scope) => (await scope.call("GET", "/iam/permissions"))[0].id,
    appId: async (scope) =>
      (await scope.call("POST", "/apps/install", { blueprintId: await scope.idOf("blueprintId") })).id,
    // A blueprint with an intake.
    blueprintId: async (scope) => {
      const events = [{ type: "push", idPath: "$.id", schema: { type: "object" } }];
      const channels = [{ uid: "main", kind: "webhook", events }];
      const { id } = await scope.call("POST", "/blueprints", { title: "Example", channels });
      const verification = { scheme: "token", in: "body", name: "$.token" };
      const config = { verification, secrets: [{ value: INTAKE_TOKEN }] };
      await scope.call("PUT", `/blueprints/${id}/intake`, {
        channel: "main",
        routeBy: ["$.team_id"],
        config,
      });
      return id;
    },
    channelId: async (scope) => {
      const [channel] = await scope.call("GET", `/apps/${await scope.idOf("appId")}/channels`);
      return channel.id;
    },
    sourceChannelId: async (scope) =>
      (
        await scope.call("POST", `/apps/${await scope.idOf("appId")}/channels`, {
          uid: "feed",
          kind: "polling",
          // No server exists at this address, whichever test calls it.
          config: {
            request: { url: "https://feed.example.invalid/" },
            discriminator: { by: "sequence", path: "$.n" },
            retry: { attempts: 0 },
          },
          events: [{ type: "push" }],
        })
      ).id,
    reconcilingChannelId: async (scope) =>
      (
        await scope.call("POST", `/apps/${await scope.idOf("appId")}/channels`, {
          uid: "missed",
          kind: "polling",
          config: {
            request: { url: "https://feed.example.invalid/" },
            discriminator: { by: "timestamp", path: "$.at" },
            reconciles: "main",
          },
        })
      ).id,
    registeredChannelId: async (scope) =>
      (
        await scope.call(
          "POST",
          `/apps/${await scope.idOf("appId")}/channels`,
          registeredChannel(await scope.idOf("connectionId")),
        )
      ).id,
    subscriptionId: async (scope) =>
      (
        await scope.call("POST", `/apps/${await scope.idOf("appId")}/events/subscribe`, {
          eventUid: "main:push",
        })
      ).id,
    pausedSubscriptionId: async (scope) => {
      const path = `/apps/${await scope.idOf("appId")}`;
      const { id } = await scope.call("POST", `${path}/events/subscribe`, { eventUid: "main:push" });
      await scope.call("POST", `${path}/subscriptions/${id}/pause`, {});
      return id;
    },
    handledSubscriptionId: async (scope) =>
      (
        await scope.call("POST", `/apps/${await scope.idOf("appId")}/events/subscribe`, {
          eventUid: "main:push",
          // No server exists at this address, whichever test calls it.
          handler: { url: "https://handler.example.invalid/" },
        })
      ).id,
    // The registration of a deleted channel that the provider has not removed.
    registrationId: async (scope) => scope.plant.leftover(await scope.idOf("connectionId")),
    deadLetterId: async (scope) => scope.plant.deadLetter(await scope.idOf("subscriptionId")),
    problemId: (scope) => scope.plant.problem(),
    agentSubscriptionId: async (scope) => {
      const appId = await scope.idOf("appId");
      const events = [{ type: "e", agents: true }];
      await scope.call("POST", `/apps/${appId}/channels`, {
        uid: "agents",
        kind: "webhook",
        config: {},
        events,
      });
      return scope.plant.agentSubscription(appId);
    },
    // A connection that a person authorizes, because it supports every operation. No operation calls its token endpoint.
    connectionId: async (scope) =>
      (
        await scope.call("POST", "/connections", {
          name: "Example",
          kind: "oauth2",
          config: {
            grant: "authorizationCode",
            tokenEndpoint: "https://id.example.com/token",
            authorizationEndpoint: "https://id.example.com/authorize",
            clientId: "inlet",
            clientSecret: "secret",
          },
          allowedOrigins: ["https://api.example.com"],
        })
      ).id,
    itemId: async (scope) => {
      const { quarantine } = await scope.deliver(await scope.idOf("channelId"), { nothing: true });
      return quarantine[0].id;
    },
    // An item that no install receives.
    intakeItemId: async (scope) => {
      const path = `/blueprints/${await scope.idOf("blueprintId")}`;
      const { url } = await scope.call("GET", `${path}/intake`);
      await scope.deliver(url.slice(url.lastIndexOf("/") + 1), { token: INTAKE_TOKEN, team_id: "unknown" });
      return (await scope.call("GET", `${path}/quarantine`))[0].id;
    },
    deliveryId: async (scope) => {
      const path = `/apps/${await scope.idOf("appId")}/deliveries`;
      await scope.deliver(await scope.idOf("channelId"), { id: "seen" });
      await until(async () => (await scope.call("GET", path)).length > 0);
      return (await scope.call("GET", path))[0].id;
    },
    entityId: (scope) => scope.idOf("blueprintId"),
    phoneNumberId: registered,
    variableId: async (scope) => {
      const variables = `/states/${await scope.idOf("stateId")}/variables`;
      await scope.call("POST", variables, [{ name: `kept ${++made}` }]);
      return (await scope.call("GET", variables))[0].id;
    },
    // A task other than the one that is moved.
    parentId: async (scope) => (await scope.call("POST", "/tasks", { title: "Parent" })).id,
    topic: async (scope) => (await published(scope)).topic,
    entryId: async (scope) => (await published(scope)).entryId,
  },
  bodies: {
    createMembership: async (scope) => {
      const { id } = await scope.call("POST", "/iam/accounts", { name: "Example" });
      await scope.call("DELETE", `/iam/memberships/${(await membershipOf(scope, id)).id}`);
      return { accountId: id, permissions: [], roleIds: [] };
    },
    // A channel kind that may have a connection, or one with a registration.
    createChannel: async (scope, fields) =>
      fields.some((field) => field.includes("registration"))
        ? registeredChannel(await scope.idOf("connectionId"))
        : {
            uid: "second",
            kind: "sse",
            config: { url: "https://api.example.com/events", connection: "optional" },
            events: [{ type: "push" }],
          },
    approveArtifact: async (scope) => {
      const path = `/stores/artifacts/${await scope.idOf("artifactId")}/reject`;
      await scope.send({ method: "POST", path, body: {} });
      return {};
    },
    payOrder: async () => ({ transactionId: "tx" }),
    refundOrder: async (scope) => {
      const path = `/stores/orders/${await scope.idOf("orderId")}/pay`;
      await scope.send({ method: "POST", path, body: {} });
      return {};
    },
    registerPhoneNumber: phoneNumber,
    addVariables: async () => [{ name: `added ${++made}` }],
    assignPhoneNumber: async (scope) => {
      const phoneNumberId = await registered(scope);
      await scope.call("POST", "/telephony/phone-numbers/unassign", { phoneNumberId });
      return { phoneNumberId };
    },
    endTask: started,
    cancelTask: started,
    // An address among the connection's allowed origins.
    subscribe: async () => ({ eventUid: "main:*", handler: { url: "https://api.example.com/events" } }),
    dryRunSource: async () => ({}),
    recoverSource: async () => ({}),
    replaySubscription: async (scope) => ({ entries: [await published(scope)].map(placeOf) }),
  },
};

/** A channel whose registration calls an origin that the connection allows. No server exists there. */
const registeredChannel = (connectionId: string) => ({
  uid: `registered${++made}`,
  kind: "webhook",
  config: {
    preset: "github",
    registration: {
      connectionId,
      params: { owner: "acme", repo: "shop" },
      baseUrl: "https://api.example.com",
    },
  },
});

/** Returns an unused phone number, because a number can only be registered once per cluster. */
async function phoneNumber(scope: Scope): Promise<object> {
  return {
    countryCode: "GB",
    phoneNumber: `07400 ${100_000 + ++made}`,
    sipProvider: "sip_provider_1",
    sipTrunkId: await scope.idOf("sipTrunkId"),
  };
}

async function registered(scope: Scope): Promise<string> {
  const body = await phoneNumber(scope);
  return (await scope.call("POST", "/telephony/phone-numbers/register", body)).id;
}

/** Starts the task, because only a running task can end. The task may already be running. */
async function started(scope: Scope): Promise<object> {
  await scope.send({ method: "POST", path: `/tasks/${await scope.idOf("taskId")}/start`, body: {} });
  return {};
}

/** Finds the membership of an account in the organization that created it. */
async function membershipOf(scope: Scope, accountId: string): Promise<{ readonly id: string }> {
  const members: OpenApi[] = await scope.call("GET", "/iam/memberships?limit=200");
  return members.find((one) => one.accountId === accountId);
}

async function published(scope: Scope): Promise<{ readonly topic: string; readonly entryId: string }> {
  const { events } = await scope.deliver(await scope.idOf("channelId"), { id: "1" });
  return events[0];
}

const placeOf = ({ topic, entryId }: { readonly topic: string; readonly entryId: string }) => ({
  topic,
  entryId,
});

/** Fields that end like ids but name no entity of Inlet. A name after an operation applies to that operation only. */
export const OPAQUE: ReadonlySet<string> = new Set([
  "clientId",
  "logoAssetId",
  "profilePictureAssetId",
  "platformIdentityId",
  "projectId",
  "iamId",
  "tenantId",
  "scopeId",
  "transactionId",
  ...["assetId", "postId", "customAvatarId", "toolId", "targetId"],
  "sectionId",
  // Filters for deliveries by values of the sender.
  ...["requestId", "eventId"],
  // A position in a server-sent event stream.
  "lastEventId",
  // The path to an item's id in a polling channel.
  ...["createBlueprint itemId", "updateBlueprint itemId", "createChannel itemId"],
  ...["assignPhoneNumber channelId", "updatePhoneNumber channelId"],
  ...["addVariables groupId", "updateVariable groupId"],
]);

/** The kinds of ids that a public store opens to everyone, by operation. They are not treated like random ids. */
export const OPEN_TO_ALL: Readonly<Record<string, readonly string[]>> = {
  getStore: ["storeId"],
  getCategory: ["categoryId"],
  getArtifact: ["artifactId"],
  getReview: ["reviewId"],
  getPricingPlan: ["artifactId", "pricingPlanId"],
  listPricingPlans: ["artifactId"],
  listCategories: ["storeId"],
  listArtifacts: ["storeId", "categoryId"],
  listReviews: ["storeId", "artifactId"],
  // Operations that use the readable entities.
  createArtifact: ["storeId"],
  updateArtifact: ["storeId"],
  createOrder: ["artifactId"],
  createReview: ["artifactId"],
  installApp: ["artifactId"],
  // Rejected for all but the reviewer and the store's organization.
  updateReview: ["reviewId"],
  deleteReview: ["reviewId"],
};

/** The statuses that a buyer gets for operations on its own order. Everyone else gets 404. */
export const OPEN_TO_BUYER: Readonly<Record<string, number>> = {
  getOrder: 200,
  cancelOrder: 200,
  deleteOrder: 200,
  updateOrder: 403,
  payOrder: 403,
  refundOrder: 403,
  expireOrder: 403,
};
