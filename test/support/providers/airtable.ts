import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://airtable.com/developers/web/api/webhooks-overview */
export const startAirtable = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createAirtable);

interface AirtableHook extends Hook {
  /** The `macSecretBase64`. */
  readonly secret: string;
  readonly expiresAtMs: number;
  readonly base: string;
  readonly specification: object;
}

const LIFETIME_MS = 7 * 86_400_000;
const MAX_WEBHOOKS_PER_BASE = 10;
const MAX_PAYLOADS = 50;

const specificationSchema = z.looseObject({
  options: z.looseObject({
    filters: z.looseObject({
      dataTypes: z.array(z.enum(["tableData", "tableFields", "tableMetadata"])).min(1),
    }),
  }),
});
const createSchema = z.object({
  notificationUrl: z.url().nullish(),
  specification: specificationSchema,
});

function createAirtable(context: ProviderContext<AirtableHook>): Provider<AirtableHook> {
  const { hooks, withHook, nowMs } = context;
  /** Changes by webhook. The first has the cursor 1. */
  const changes = new Map<string, unknown[]>();
  const changesOf = ({ id }: Hook): readonly unknown[] => changes.get(id) ?? [];

  const make = (base: string, address: string, specification: object): AirtableHook => ({
    id: `ach${String(context.nextNumber()).padStart(14, "0")}`,
    address,
    secret: randomBytes(32).toString("base64"),
    expiresAtMs: nowMs() + LIFETIME_MS,
    base,
    specification,
  });
  const inBase = (base: string | undefined): readonly AirtableHook[] =>
    hooks.list().filter((hook) => hook.base === base);

  function create(call: Call): Answer {
    const body = call.read(createSchema);
    const { base = "" } = call.params;
    if (body === undefined) return error(422, "INVALID_REQUEST_UNKNOWN", "Invalid request: check the data.");
    if (inBase(base).length >= context.quota()) {
      return error(
        403,
        "TOO_MANY_WEBHOOKS_IN_BASE",
        `A base can have at most ${context.quota()} webhooks created by users.`,
      );
    }
    const hook = hooks.put(make(base, body.notificationUrl ?? "", body.specification));
    return {
      status: 200,
      body: { id: hook.id, macSecretBase64: hook.secret, expirationTime: toIso(hook.expiresAtMs) },
    };
  }

  const refresh = withHook((hook) => {
    const { expiresAtMs } = hooks.put({ ...hook, expiresAtMs: nowMs() + LIFETIME_MS });
    return { status: 200, body: { expirationTime: toIso(expiresAtMs) } };
  });

  const listPayloads = withHook((hook, { url }) => {
    const payloads = changesOf(hook);
    const cursor = Number(url.searchParams.get("cursor") ?? 1);
    const limit = Math.min(Number(url.searchParams.get("limit") ?? MAX_PAYLOADS), MAX_PAYLOADS);
    const page = payloads.slice(cursor - 1, cursor - 1 + limit);
    const next = cursor + page.length;
    return {
      status: 200,
      body: { payloads: page, cursor: next, mightHaveMore: next <= payloads.length, payloadFormat: "v0" },
    };
  });

  function build(hook: AirtableHook, { id, payload, nowMs: atMs }: Message): Outgoing {
    const change = { timestamp: toIso(atMs), payloadFormat: "v0", id };
    changes.set(hook.id, [...changesOf(hook), payload ?? change]);
    const body = JSON.stringify({
      base: { id: hook.base },
      webhook: { id: hook.id },
      timestamp: toIso(atMs),
    });
    return {
      headers: {
        "content-type": "application/json",
        "x-airtable-content-mac": `hmac-sha256=${sign(body, Buffer.from(hook.secret, "base64"))}`,
      },
      body,
    };
  }

  const collection = "/v0/bases/:base/webhooks";
  return {
    quota: MAX_WEBHOOKS_PER_BASE,
    unauthorized: error(401, "AUTHENTICATION_REQUIRED", "Authentication required"),
    forbidden: error(
      403,
      "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND",
      "Invalid permissions, or the requested model was not found.",
    ),
    notFound: { status: 404, body: { error: "NOT_FOUND" } },
    routes: [
      { step: "create", on: `POST ${collection}`, handle: create },
      {
        step: "list",
        on: `GET ${collection}`,
        handle: ({ params }) => ({
          status: 200,
          body: { webhooks: inBase(params.base).map((hook) => view(hook, changesOf(hook).length + 1)) },
        }),
      },
      { step: "renew", on: `POST ${collection}/:id/refresh`, handle: refresh },
      { step: "check", on: `GET ${collection}/:id/payloads`, handle: listPayloads },
      {
        step: "remove",
        on: `DELETE ${collection}/:id`,
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 200 : 404, body: {} })),
      },
    ],
    makeForeign: (address) => make("app00000000000000", address, {}),
    sign: build,
  };
}

const view = (
  { id, address, expiresAtMs, specification }: AirtableHook,
  cursorForNextPayload: number,
): object => ({
  id,
  type: "client",
  isHookEnabled: true,
  notificationUrl: address,
  areNotificationsEnabled: true,
  cursorForNextPayload,
  lastSuccessfulNotificationTime: null,
  lastNotificationResult: null,
  expirationTime: toIso(expiresAtMs),
  specification,
});

const toIso = (ms: number): string => new Date(ms).toISOString();

const error = (status: number, type: string, message: string): Answer => ({
  status,
  body: { error: { type, message } },
});
