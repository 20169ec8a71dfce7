import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://developer.calendly.com/api-docs/c1ddc06ce1f1b-create-webhook-subscription */
export const startCalendly = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createCalendly);

interface CalendlyHook extends Hook {
  readonly events: readonly string[];
  readonly organization: string;
  readonly user: string | undefined;
  readonly scope: "user" | "organization";
  readonly createdAtMs: number;
}

const EVENTS = [
  "invitee.created",
  "invitee.canceled",
  "invitee_no_show.created",
  "invitee_no_show.deleted",
  "routing_form_submission.created",
];

const createSchema = z
  .object({
    url: z.url(),
    events: z.array(z.enum(EVENTS)).min(1),
    organization: z.url(),
    user: z.url().optional(),
    scope: z.enum(["user", "organization"]),
    signing_key: z.string().min(1).optional(),
  })
  .refine(({ scope, user }) => scope === "organization" || user !== undefined, { path: ["user"] });

function createCalendly(context: ProviderContext<CalendlyHook>): Provider<CalendlyHook> {
  const { hooks, withHook, origin } = context;

  function create(call: Call): Answer {
    const body = call.read(createSchema);
    if (body === undefined) {
      return { ...error(400, "Invalid Argument", "The supplied parameters are invalid.") };
    }
    const { url: address, signing_key: secret, events, organization, user, scope } = body;
    if (hooks.list().some((hook) => hook.address === address)) {
      return error(409, "Already Exists", "Hook with this url already exists");
    }
    if (hooks.list().length >= context.quota()) {
      return error(403, "Permission Denied", "The limit of webhook subscriptions was reached.");
    }
    const hook = hooks.put({
      id: randomUUID(),
      address,
      secret,
      events,
      organization,
      user,
      scope,
      createdAtMs: context.nowMs(),
    });
    return { status: 201, body: { resource: view(hook) } };
  }

  function list({ url: { searchParams } }: Call): Answer {
    const [organization, scope] = [searchParams.get("organization"), searchParams.get("scope")];
    if (organization === null || scope === null) {
      return error(400, "Invalid Argument", "The parameters organization and scope are required.");
    }
    const found = hooks.list().filter((hook) => hook.organization === organization && hook.scope === scope);
    const pagination = { count: found.length, next_page: null, next_page_token: null };
    return { status: 200, body: { collection: found.map(view), pagination } };
  }

  const view = ({ id, address, events, organization, user, scope, createdAtMs }: CalendlyHook): object => ({
    uri: `${origin}/webhook_subscriptions/${id}`,
    callback_url: address,
    created_at: new Date(createdAtMs).toISOString(),
    updated_at: new Date(createdAtMs).toISOString(),
    retry_started_at: null,
    state: "active",
    events,
    organization,
    user: user ?? null,
    scope,
    creator: "https://api.calendly.com/users/AAAAAAAAAAAAAAAA",
  });

  return {
    unauthorized: error(401, "Unauthenticated", "The access token is invalid"),
    forbidden: error(403, "Permission Denied", "You do not have permission to access this resource."),
    notFound: error(404, "Resource Not Found", "The server could not find the requested resource."),
    routes: [
      { step: "create", on: "POST /webhook_subscriptions", handle: create },
      { step: "list", on: "GET /webhook_subscriptions", handle: list },
      {
        step: "check",
        on: "GET /webhook_subscriptions/:id",
        handle: withHook((hook) => ({ status: 200, body: { resource: view(hook) } })),
      },
      {
        step: "remove",
        on: "DELETE /webhook_subscriptions/:id",
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ],
    makeForeign: (address) => ({
      id: randomUUID(),
      address,
      secret: "key of another program",
      events: ["invitee.created"],
      organization: "https://api.calendly.com/organizations/ours",
      user: undefined,
      scope: "organization",
      createdAtMs: context.nowMs(),
    }),
    sign: build,
  };
}

function build({ secret }: CalendlyHook, { id, payload, event, nowMs }: Message): Outgoing {
  const body = JSON.stringify({
    event,
    created_at: new Date(nowMs).toISOString(),
    payload: payload ?? { uri: `https://api.calendly.com/scheduled_events/${id}`, status: "active" },
  });
  const seconds = Math.floor(nowMs / 1_000);
  return {
    headers: {
      "content-type": "application/json",
      ...(secret && {
        "calendly-webhook-signature": `t=${seconds},v1=${sign(`${seconds}.${body}`, secret)}`,
      }),
    },
    body,
  };
}

const error = (status: number, title: string, message: string): Answer => ({
  status,
  body: { title, message },
});
