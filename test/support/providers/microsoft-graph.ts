import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { DeliveryResult, Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";

export type LifecycleEvent = "reauthorizationRequired" | "subscriptionRemoved" | "missed";

export interface GraphEmulator extends Emulator {
  /** Sends a lifecycle notification to all subscriptions with a URL for it. `subscriptionRemoved` also removes them. */
  readonly notifyLifecycle: (event: LifecycleEvent) => Promise<readonly DeliveryResult[]>;
}

interface GraphHook extends Hook {
  readonly events: readonly string[];
  readonly expiresAtMs: number;
  readonly resource: string;
  readonly lifecycleAddress: string | undefined;
}

/** Maximum lifetime of subscriptions to messages, events and contacts. */
const MAX_LIFETIME_MINUTES = 4_230;
/** https://learn.microsoft.com/en-us/graph/change-notifications-overview#subscription-limits */
const MAX_SUBSCRIPTIONS = 1_000;
const CHANGE_TYPES = ["created", "updated", "deleted"];

const dateTime = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const createSchema = z.object({
  changeType: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(CHANGE_TYPES)).min(1)),
  notificationUrl: z.url(),
  lifecycleNotificationUrl: z.url().optional(),
  resource: z.string().min(1),
  expirationDateTime: dateTime,
  clientState: z.string().max(128).optional(),
});
const updateSchema = z.object({
  expirationDateTime: dateTime.optional(),
  notificationUrl: z.url().optional(),
});

/** https://learn.microsoft.com/en-us/graph/api/resources/subscription */
export async function startMicrosoftGraph(options: EmulatorOptions): Promise<GraphEmulator> {
  let notifyLifecycle: GraphEmulator["notifyLifecycle"] = async () => [];
  const emulator = await startEmulator<GraphHook>(options, (context) => {
    notifyLifecycle = async (event) => {
      const results = await Promise.all(
        context.hooks.list().map(async (hook) => {
          if (hook.lifecycleAddress === undefined) return undefined;
          if (event === "subscriptionRemoved") context.hooks.remove(hook.id);
          const outgoing = build(hook, { lifecycleEvent: event });
          return { hook, status: (await context.send(hook.lifecycleAddress, outgoing)).status };
        }),
      );
      return results.filter((result) => result !== undefined);
    };
    return createGraph(context);
  });
  return { ...emulator, notifyLifecycle };
}

function createGraph(context: ProviderContext<GraphHook>): Provider<GraphHook> {
  const { hooks, send, withHook } = context;

  /** Sends the validation token to the address, and returns the error if the address does not repeat it. */
  async function validate(address: string): Promise<Answer | undefined> {
    const validationToken = `Validation: Testing client application reachability ${randomUUID()}`;
    const { status, headers, text } = await send(address, {
      query: { validationToken },
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: "",
    });
    if (status === 0) return error(400, "ValidationError", "Subscription validation request timed out.");
    const isPlain = headers.get("content-type")?.startsWith("text/plain") === true;
    return status === 200 && isPlain && text === validationToken
      ? undefined
      : error(
          400,
          "ValidationError",
          `Subscription validation request failed. HTTP status code is '${status}'. Notification endpoint must respond with 200 OK to validation request.`,
        );
  }

  function findLifetimeError(expiresAtMs: number): Answer | undefined {
    const minutes = (expiresAtMs - context.nowMs()) / 60_000;
    if (minutes <= 0) return error(400, "InvalidRequest", "Subscription expiration must be in the future.");
    return minutes > MAX_LIFETIME_MINUTES
      ? error(
          400,
          "InvalidRequest",
          `Subscription expiration can only be ${MAX_LIFETIME_MINUTES} minutes in the future.`,
        )
      : undefined;
  }

  async function create(call: Call): Promise<Answer> {
    const body = call.read(createSchema);
    if (body === undefined) {
      const message = "Could not process subscription creation payload. A required property is missing.";
      return error(400, "InvalidRequest", message);
    }
    const { notificationUrl: address, lifecycleNotificationUrl: lifecycleAddress } = body;
    const invalid = findLifetimeError(body.expirationDateTime);
    if (invalid !== undefined) return invalid;
    if (hooks.list().length >= context.quota()) {
      return error(
        403,
        "ExtensionError",
        `The app has reached its limit of ${context.quota()} subscriptions.`,
      );
    }
    for (const target of lifecycleAddress === undefined ? [address] : [address, lifecycleAddress]) {
      const failed = await validate(target);
      if (failed !== undefined) return failed;
    }
    const hook = hooks.put({
      id: randomUUID(),
      address,
      secret: body.clientState,
      channelToken: body.clientState,
      events: body.changeType,
      expiresAtMs: body.expirationDateTime,
      resource: body.resource,
      lifecycleAddress,
    });
    return { status: 201, body: { ...view(hook), clientState: hook.channelToken ?? null } };
  }

  const update = withHook(async (hook, call) => {
    const body = call.read(updateSchema);
    if (body === undefined) return error(400, "InvalidRequest", "Invalid subscription update payload.");
    const { expirationDateTime: expiresAtMs = hook.expiresAtMs, notificationUrl: address = hook.address } =
      body;
    const failed =
      findLifetimeError(expiresAtMs) ?? (address === hook.address ? undefined : await validate(address));
    return failed ?? { status: 200, body: view(hooks.put({ ...hook, expiresAtMs, address })) };
  });

  return {
    quota: MAX_SUBSCRIPTIONS,
    unauthorized: error(401, "InvalidAuthenticationToken", "Access token is empty or invalid."),
    forbidden: error(403, "ErrorAccessDenied", "Access is denied. Check credentials and try again."),
    notFound: error(404, "ResourceNotFound", "The object was not found."),
    routes: [
      { step: "create", on: "POST /v1.0/subscriptions", handle: create },
      {
        step: "list",
        on: "GET /v1.0/subscriptions",
        handle: () => ({ status: 200, body: { value: hooks.list().map(view) } }),
      },
      {
        step: "check",
        on: "GET /v1.0/subscriptions/:id",
        handle: withHook((hook) => ({ status: 200, body: view(hook) })),
      },
      {
        step: (call) => (call.read(updateSchema)?.notificationUrl === undefined ? "renew" : "update"),
        on: "PATCH /v1.0/subscriptions/:id",
        handle: update,
      },
      {
        step: "renew",
        on: "POST /v1.0/subscriptions/:id/reauthorize",
        handle: withHook(() => ({ status: 204 })),
      },
      {
        step: "remove",
        on: "DELETE /v1.0/subscriptions/:id",
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ],
    makeForeign: (address) => ({
      id: randomUUID(),
      address,
      secret: "state of another program",
      channelToken: "state of another program",
      events: ["created"],
      expiresAtMs: context.nowMs() + MAX_LIFETIME_MINUTES * 60_000,
      resource: "me/messages",
      lifecycleAddress: undefined,
    }),
    sign: (hook, message) => build(hook, toChange(hook, message)),
  };
}

const toChange = ({ resource }: GraphHook, { id, payload, event }: Message): object => ({
  changeType: event,
  resource: `${resource}/${id}`,
  resourceData: payload ?? { "@odata.type": "#Microsoft.Graph.Message", id },
});

function build({ id, expiresAtMs, channelToken }: GraphHook, notification: object): Outgoing {
  const common = {
    subscriptionId: id,
    subscriptionExpirationDateTime: new Date(expiresAtMs).toISOString(),
    tenantId: "84bd8158-6d4d-4958-8b9f-9d6445542f95",
    ...(channelToken && { clientState: channelToken }),
  };
  return {
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify({ value: [{ ...common, ...notification }] }),
  };
}

/** Responses never contain the client state, except the one to the request that creates the subscription. */
const view = ({ id, address, events, expiresAtMs, resource, lifecycleAddress }: GraphHook): object => ({
  id,
  resource,
  changeType: events.join(","),
  clientState: null,
  notificationUrl: address,
  lifecycleNotificationUrl: lifecycleAddress ?? null,
  expirationDateTime: new Date(expiresAtMs).toISOString(),
});

const error = (status: number, code: string, message: string): Answer => ({
  status,
  body: { error: { code, message, innerError: { "request-id": randomUUID() } } },
});
