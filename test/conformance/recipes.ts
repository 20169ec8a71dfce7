import type { OpenApi } from "../support/documented.ts";
import { until } from "../support/until.ts";
import type { Recipes, Scope } from "./fixtures.ts";

/** Tells apart what may be there once only. */
let made = 0;

/** What the document's examples do not tell: the only part of these tests that knows resources by name. */
export const RECIPES: Recipes = {
  ids: {
    organizationId: async ({ organizationId }) => organizationId,
    // The oldest is that of the organization's first key.
    ownAccountId: async (scope) => (await scope.call("GET", "/iam/accounts"))[0].id,
    membershipId: async (scope) => (await membershipOf(scope, await scope.idOf("accountId"))).id,
    permissionId: async (scope) => (await scope.call("GET", "/iam/permissions"))[0].id,
    appId: async (scope) =>
      (await scope.call("POST", "/apps/install", { blueprintId: await scope.idOf("blueprintId") })).id,
    channelId: async (scope) => {
      const [channel] = await scope.call("GET", `/apps/${await scope.idOf("appId")}/channels`);
      return channel.id;
    },
    sourceChannelId: async (scope) =>
      (
        await scope.call("POST", `/apps/${await scope.idOf("appId")}/channels`, {
          uid: "feed",
          kind: "polling",
          // Nobody is there, whoever asks.
          config: {
            request: { url: "https://feed.example.invalid/" },
            discriminator: { by: "sequence", path: "$.n" },
            retry: { attempts: 0 },
          },
          events: [{ type: "push" }],
        })
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
          // Nobody is there, whoever asks.
          handler: { url: "https://handler.example.invalid/" },
        })
      ).id,
    deadLetterId: async (scope) => scope.bury(await scope.idOf("subscriptionId")),
    problemId: (scope) => scope.raise(),
    // One that a person authorizes, as all that is done to connections can be done to it; nobody is called for that.
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
    // Another one than that which is moved.
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
    // Of a kind that may have a connection.
    createChannel: async () => ({
      uid: "second",
      kind: "sse",
      config: { url: "https://api.example.com/events", connection: "optional" },
      events: [{ type: "push" }],
    }),
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
    // Where the connection may go.
    subscribe: async () => ({ eventUid: "main:*", handler: { url: "https://api.example.com/events" } }),
    dryRunSource: async () => ({}),
    replaySubscription: async (scope) => ({ entries: [await published(scope)].map(placeOf) }),
  },
};

/** One that nobody has: a number is registered once in all. */
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

/** Only a task that runs comes to an end; it may run already. */
async function started(scope: Scope): Promise<object> {
  await scope.send({ method: "POST", path: `/tasks/${await scope.idOf("taskId")}/start`, body: {} });
  return {};
}

/** An account is a member of the organization that makes it. */
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

/** Fields that end like ids and name nothing that Inlet keeps: stored as given; after an operation, where they do so there only. */
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
  // By which deliveries are searched: a sender's own, both.
  ...["requestId", "eventId"],
  // A place in a stream of server-sent events.
  "lastEventId",
  // Where a polling channel finds the id of an item.
  ...["createBlueprint itemId", "updateBlueprint itemId", "createChannel itemId"],
  ...["assignPhoneNumber channelId", "updatePhoneNumber channelId"],
  ...["addVariables groupId", "updateVariable groupId"],
]);

/** What a public store opens to everybody, by operation: the kinds of ids that are not as ids of nobody. */
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
  // What others do with what they read.
  createArtifact: ["storeId"],
  updateArtifact: ["storeId"],
  createOrder: ["artifactId"],
  createReview: ["artifactId"],
  installApp: ["artifactId"],
  // Refused to all but the reviewer, and the store's organization.
  updateReview: ["reviewId"],
  deleteReview: ["reviewId"],
};

/** What each side of an order is answered about it; to all others there is none. */
export const OPEN_TO_BUYER: Readonly<Record<string, number>> = {
  getOrder: 200,
  cancelOrder: 200,
  deleteOrder: 200,
  updateOrder: 403,
  payOrder: 403,
  refundOrder: 403,
  expireOrder: 403,
};
