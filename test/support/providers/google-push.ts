import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Outgoing, Provider, ProviderContext, Route } from "./provider.ts";

/** https://developers.google.com/workspace/drive/api/guides/push */
export const startGoogleDrive = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator<GoogleHook>(options, (context) => createGoogle(context, DRIVE));

/** https://developers.google.com/workspace/calendar/api/guides/push */
export const startGoogleCalendar = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator<GoogleHook>(options, (context) => createGoogle(context, CALENDAR));

interface Api {
  /** Start of the API's paths. */
  readonly base: string;
  readonly watchPath: string;
  readonly defaultLifetimeMs: number;
  readonly maxLifetimeMs: number;
  readonly requiredParameter?: string;
  /** State of the resource in notifications of a change. */
  readonly changeState: string;
}

const DAY_MS = 86_400_000;
const DRIVE: Api = {
  base: "/drive/v3",
  watchPath: "/drive/v3/changes/watch",
  defaultLifetimeMs: DAY_MS / 24,
  maxLifetimeMs: 7 * DAY_MS,
  requiredParameter: "pageToken",
  changeState: "change",
};
const CALENDAR: Api = {
  base: "/calendar/v3",
  watchPath: "/calendar/v3/calendars/:calendar/events/watch",
  defaultLifetimeMs: 7 * DAY_MS,
  maxLifetimeMs: 30 * DAY_MS,
  changeState: "exists",
};

interface GoogleHook extends Hook {
  readonly expiresAtMs: number;
  readonly resourceId: string;
  readonly resourceUri: string;
}

const watchSchema = z.object({
  id: z.string().regex(/^[A-Za-z0-9\-_+/=]{1,64}$/),
  type: z.literal("web_hook"),
  address: z.url(),
  token: z.string().max(256).optional(),
  expiration: z.coerce.number().optional(),
  params: z.object({ ttl: z.coerce.number().optional() }).default({}),
});
const stopSchema = z.object({ id: z.string(), resourceId: z.string() });

function createGoogle(context: ProviderContext<GoogleHook>, api: Api): Provider<GoogleHook> {
  const { hooks, send, nowMs } = context;
  const usedIds = new Set<string>();
  let messages = 0;

  function watch(call: Call): Answer {
    const { requiredParameter } = api;
    if (requiredParameter !== undefined && !call.url.searchParams.get(requiredParameter)) {
      return error(400, "required", `Required parameter: ${requiredParameter}`);
    }
    const body = call.read(watchSchema);
    if (body === undefined) return error(400, "required", "Channel id, type and address are required.");
    if (usedIds.has(body.id)) return error(400, "channelIdNotUnique", `Channel id ${body.id} not unique`);
    if (hooks.list().length >= context.quota()) {
      return error(403, "rateLimitExceeded", "Rate limit exceeded: too many subscribers.");
    }
    usedIds.add(body.id);
    const { expiration, params } = body;
    const requestedMs =
      expiration === undefined ? (params.ttl ?? api.defaultLifetimeMs / 1_000) * 1_000 : expiration - nowMs();
    const hook = hooks.put({
      id: body.id,
      address: body.address,
      secret: body.token,
      channelToken: body.token,
      expiresAtMs: nowMs() + Math.min(requestedMs, api.maxLifetimeMs),
      resourceId: randomBytes(20).toString("base64url"),
      resourceUri: `https://www.googleapis.com${call.url.pathname.replace(/\/watch$/, "")}?alt=json`,
    });
    const { id, resourceId, resourceUri, channelToken, expiresAtMs } = hook;
    return {
      status: 200,
      body: {
        kind: "api#channel",
        id,
        resourceId,
        resourceUri,
        ...(channelToken && { token: channelToken }),
        expiration: String(expiresAtMs),
      },
      after: () => send(hook.address, build(hook, "sync", 1)),
    };
  }

  function stop(call: Call): Answer {
    const body = call.read(stopSchema);
    if (body === undefined) return error(400, "required", "Channel id and resource id are required.");
    const hook = hooks.find(body.id);
    if (hook?.resourceId !== body.resourceId) {
      return error(404, "notFound", `Channel '${body.id}' not found for project '636397034666'`);
    }
    hooks.remove(body.id);
    return { status: 204 };
  }

  const startPageToken: Route = {
    step: "check",
    on: "GET /drive/v3/changes/startPageToken",
    handle: () => ({
      status: 200,
      body: { kind: "drive#startPageToken", startPageToken: String(context.nextNumber()) },
    }),
  };

  return {
    unauthorized: error(401, "authError", "Request had invalid authentication credentials."),
    forbidden: error(403, "insufficientPermissions", "Request had insufficient authentication scopes."),
    notFound: error(404, "notFound", "Not Found"),
    routes: [
      { step: "create", on: `POST ${api.watchPath}`, handle: watch },
      { step: "remove", on: `POST ${api.base}/channels/stop`, handle: stop },
      ...(api.requiredParameter === "pageToken" ? [startPageToken] : []),
    ],
    makeForeign: (address) => ({
      id: `foreign-${context.nextNumber()}`,
      address,
      secret: "token of another program",
      channelToken: "token of another program",
      expiresAtMs: nowMs() + api.maxLifetimeMs,
      resourceId: randomBytes(20).toString("base64url"),
      resourceUri: "https://www.googleapis.com/foreign",
    }),
    sign: (hook) => build(hook, api.changeState, ++messages),
  };
}

/** Notifications have no body. */
const build = (hook: GoogleHook, state: string, messageNumber: number): Outgoing => ({
  headers: {
    "content-type": "application/json; utf-8",
    "user-agent": "APIs-Google; (+https://developers.google.com/webmasters/APIs-Google.html)",
    "x-goog-channel-id": hook.id,
    "x-goog-channel-expiration": new Date(hook.expiresAtMs).toUTCString(),
    "x-goog-message-number": String(messageNumber),
    "x-goog-resource-id": hook.resourceId,
    "x-goog-resource-state": state,
    "x-goog-resource-uri": hook.resourceUri,
    ...(hook.channelToken && { "x-goog-channel-token": hook.channelToken }),
  },
});

const error = (code: number, reason: string, message: string): Answer => ({
  status: code,
  body: { error: { code, message, errors: [{ domain: "global", reason, message }] } },
});
