import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { readBearer, startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://developers.hubspot.com/docs/api-reference/legacy/webhooks/guide. An app has one target URL for all its subscriptions. */
export const startHubSpot = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createHubSpot);

interface HubSpotHook extends Hook {
  readonly secret: string;
  readonly maxConcurrentRequests: number;
  readonly createdAtMs: number;
}

interface Subscription {
  readonly id: string;
  readonly eventType: string;
  readonly propertyName?: string | undefined;
  readonly active: boolean;
}

/** Id of the only target URL. */
const ID = "settings";

const settingsSchema = z.object({
  targetUrl: z.url(),
  throttling: z.object({ maxConcurrentRequests: z.int().min(5), period: z.string().optional() }),
});
const subscriptionSchema = z.object({
  eventType: z.string().min(1),
  propertyName: z.string().optional(),
  active: z.boolean().default(false),
});

function createHubSpot(context: ProviderContext<HubSpotHook>): Provider<HubSpotHook> {
  const { hooks, nowMs, appSecret } = context;
  const subscriptions = new Map<string, Subscription>();

  function save(call: Call): Answer {
    const body = call.read(settingsSchema);
    if (body === undefined)
      return error(400, "VALIDATION_ERROR", "Invalid input JSON: targetUrl is required");
    const hook = hooks.put({
      id: ID,
      address: body.targetUrl,
      secret: appSecret,
      maxConcurrentRequests: body.throttling.maxConcurrentRequests,
      createdAtMs: hooks.find(ID)?.createdAtMs ?? nowMs(),
    });
    return { status: 200, body: view(hook) };
  }

  function check(): Answer {
    const hook = hooks.find(ID);
    return hook === undefined ? NOT_FOUND : { status: 200, body: view(hook) };
  }

  function subscribe(call: Call): Answer {
    const body = call.read(subscriptionSchema);
    if (body === undefined)
      return error(400, "VALIDATION_ERROR", "Invalid input JSON: eventType is required");
    const subscription = { id: String(context.nextNumber()), ...body };
    subscriptions.set(subscription.id, subscription);
    return { status: 201, body: { ...subscription, createdAt: new Date(nowMs()).toISOString() } };
  }

  const settings = "/webhooks/v3/:app/settings";
  const collection = "/webhooks/v3/:app/subscriptions";
  return {
    readToken: (call) => call.url.searchParams.get("hapikey") ?? readBearer(call),
    unauthorized: error(401, "INVALID_AUTHENTICATION", "Authentication credentials not found."),
    forbidden: error(403, "MISSING_SCOPES", "This app hasn't been granted all required scopes."),
    notFound: NOT_FOUND,
    routes: [
      {
        step: () => (hooks.find(ID) === undefined ? "create" : "update"),
        on: `PUT ${settings}`,
        handle: save,
      },
      { step: "check", on: `GET ${settings}`, handle: check },
      {
        step: "remove",
        on: `DELETE ${settings}`,
        handle: () => (hooks.remove(ID) ? { status: 204 } : NOT_FOUND),
      },
      { step: "create", on: `POST ${collection}`, handle: subscribe },
      {
        step: "list",
        on: `GET ${collection}`,
        handle: () => ({ status: 200, body: { results: [...subscriptions.values()] } }),
      },
      {
        step: "remove",
        on: `DELETE ${collection}/:id`,
        handle: ({ params: { id = "" } }) => (subscriptions.delete(id) ? { status: 204 } : NOT_FOUND),
      },
    ],
    makeForeign: (address) => ({
      id: ID,
      address,
      secret: appSecret,
      maxConcurrentRequests: 10,
      createdAtMs: nowMs(),
    }),
    sign: (hook, message) => build(hook, message, context.nextNumber()),
  };
}

function build(
  { address, secret }: HubSpotHook,
  { id, payload, event, nowMs }: Message,
  batch: number,
): Outgoing {
  const change = {
    eventId: Number.parseInt(id.slice(0, 8), 16),
    subscriptionId: batch,
    portalId: 62_515,
    appId: 1,
    occurredAt: nowMs,
    subscriptionType: event ?? "contact.creation",
    attemptNumber: 0,
    objectId: 123,
  };
  const body = JSON.stringify([payload ?? change]);
  const options = { encoding: "base64" } as const;
  return {
    headers: {
      "content-type": "application/json",
      "x-hubspot-request-timestamp": String(nowMs),
      "x-hubspot-signature-v3": sign(`POST${address}${body}${nowMs}`, secret, options),
    },
    body,
  };
}

const view = ({ address, maxConcurrentRequests, createdAtMs }: HubSpotHook): object => ({
  targetUrl: address,
  throttling: { maxConcurrentRequests, period: "SECONDLY" },
  createdAt: new Date(createdAtMs).toISOString(),
  updatedAt: new Date(createdAtMs).toISOString(),
});

const error = (status: number, category: string, message: string): Answer => ({
  status,
  body: { status: "error", message, category, correlationId: "aeb5f871-7f07-4993-9211-075dc63e7cbf" },
});

const NOT_FOUND = error(404, "OBJECT_NOT_FOUND", "Webhook settings not found");
