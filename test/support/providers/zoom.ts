import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://developers.zoom.us/docs/api/marketplace/#tag/app/post/marketplace/app/event_subscription */
export const startZoom = (options: EmulatorOptions): Promise<Emulator> => startEmulator(options, createZoom);

interface ZoomHook extends Hook {
  readonly secret: string;
  readonly events: readonly string[];
  readonly name: string;
}

const MAX_SUBSCRIPTIONS = 20;

const createSchema = z.object({
  events: z.array(z.string()).min(1),
  event_subscription_name: z.string().optional(),
  event_webhook_url: z.url(),
  user_ids: z.array(z.string()).default([]),
  subscription_scope: z.enum(["user", "account", "master_account"]).default("user"),
  account_id: z.string().optional(),
});

function createZoom(context: ProviderContext<ZoomHook>): Provider<ZoomHook> {
  const { hooks, withHook, appSecret, nowMs } = context;

  const make = (address: string, events: readonly string[], name = ""): ZoomHook => ({
    id: randomBytes(16).toString("base64url"),
    address,
    secret: appSecret,
    events,
    name,
  });

  /** Returns whether the address repeats the token with its HMAC. */
  async function isValid(address: string): Promise<boolean> {
    const plainToken = randomBytes(16).toString("base64url");
    const content = { event: "endpoint.url_validation", event_ts: nowMs(), payload: { plainToken } };
    const { status, text } = await context.send(address, build(content, appSecret, nowMs()));
    const reply = JSON.stringify({ plainToken, encryptedToken: sign(plainToken, appSecret) });
    return status === 200 && text === reply;
  }

  async function create(call: Call): Promise<Answer> {
    const body = call.read(createSchema);
    if (body === undefined) return error(400, 300, "Validation Failed.");
    if (hooks.list().length >= context.quota()) {
      return error(400, 4_700, `The app has reached the limit of ${context.quota()} event subscriptions.`);
    }
    const { event_webhook_url: address, event_subscription_name: name, events } = body;
    if (!(await isValid(address))) return error(400, 300, "URL validation failed. Try again later.");
    const hook = hooks.put(make(address, events, name));
    return {
      status: 201,
      body: { event_subscription_id: hook.id, event_subscription_name: hook.name, events: hook.events },
    };
  }

  const view = ({ id, address, events, name }: ZoomHook): object => ({
    event_subscription_id: id,
    event_subscription_name: name,
    event_webhook_url: address,
    events,
  });

  const collection = "/v2/marketplace/app/event_subscription";
  return {
    quota: MAX_SUBSCRIPTIONS,
    unauthorized: error(401, 124, "Invalid access token."),
    forbidden: error(400, 4_711, "Invalid access token, does not contain scopes."),
    notFound: error(404, 404, "Event subscription does not exist."),
    routes: [
      { step: "create", on: `POST ${collection}`, handle: create },
      {
        step: "list",
        on: `GET ${collection}`,
        handle: () => ({ status: 200, body: { event_subscriptions: hooks.list().map(view) } }),
      },
      {
        step: "remove",
        on: `DELETE ${collection}/:id`,
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ],
    makeForeign: (address) => make(address, ["meeting.started"], "another program"),
    sign: ({ secret }, { id, payload, event, nowMs: atMs }) => {
      const object = payload ?? { uuid: id, topic: "Planning" };
      return build({ event, event_ts: atMs, payload: { account_id: "ours", object } }, secret, atMs);
    },
  };
}

function build(content: object, secret: string, nowMs: number): Outgoing {
  const body = JSON.stringify(content);
  const timestamp = String(Math.floor(nowMs / 1_000));
  return {
    headers: {
      "content-type": "application/json; charset=utf-8",
      "x-zm-request-timestamp": timestamp,
      "x-zm-signature": `v0=${sign(`v0:${timestamp}:${body}`, secret)}`,
    },
    body,
  };
}

const error = (status: number, code: number, message: string): Answer => ({
  status,
  body: { code, message },
});
