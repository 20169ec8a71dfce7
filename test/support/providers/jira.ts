import { createHash } from "node:crypto";
import { SignJWT } from "jose";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { readBasic, readBearer, startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext, Route } from "./provider.ts";
import { sign } from "./signatures.ts";

/** Webhooks of an OAuth app, and of administrators: https://developer.atlassian.com/cloud/jira/platform/webhooks/ */
export const startJira = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator<JiraHook>(options, (context) => createJira(context));

interface JiraHook extends Hook {
  readonly events: readonly string[];
  /** Webhooks of apps expire and are signed with the app's secret. Webhooks of administrators have their own secret. */
  readonly kind: "app" | "admin";
  readonly name: string;
  readonly jqlFilter: string;
}

const LIFETIME_MS = 30 * 86_400_000;
const MAX_APP_WEBHOOKS = 100;

const appSchema = z.object({
  url: z.url(),
  webhooks: z.array(z.object({ events: z.array(z.string()).min(1), jqlFilter: z.string() })).min(1),
});
const idsSchema = z.object({ webhookIds: z.array(z.number()).min(1) });
const adminSchema = z.object({
  name: z.string().min(1),
  url: z.url(),
  events: z.array(z.string()).min(1),
  secret: z.string().optional(),
  filters: z.record(z.string(), z.string()).default({}),
});

function createJira(context: ProviderContext<JiraHook>): Provider<JiraHook> {
  const { hooks, nowMs, origin, appSecret } = context;
  const of = (kind: JiraHook["kind"]): readonly JiraHook[] =>
    hooks.list().filter((hook) => hook.kind === kind);
  const withAdminHook = (handle: (hook: JiraHook, call: Call) => Answer): Route["handle"] =>
    context.withHook((hook, call) => (hook.kind === "admin" ? handle(hook, call) : NOT_FOUND));

  function register(call: Call): Answer {
    const body = call.read(appSchema);
    if (body === undefined) return invalid("Invalid request payload. Refer to the REST API documentation.");
    const other = of("app").find(({ address }) => address !== body.url);
    if (other !== undefined) {
      return invalid(
        `Only a single URL per app is allowed to be registered via REST API. Currently used URL is ${other.address}`,
      );
    }
    const results = body.webhooks.map(({ events, jqlFilter }) => {
      if (of("app").length >= context.quota())
        return { errors: [`The limit of ${context.quota()} webhooks per app has been reached.`] };
      const hook = hooks.put({
        id: String(context.nextNumber()),
        address: body.url,
        secret: appSecret,
        events,
        expiresAtMs: nowMs() + LIFETIME_MS,
        kind: "app",
        name: "",
        jqlFilter,
      });
      return { createdWebhookId: Number(hook.id) };
    });
    return { status: 200, body: { webhookRegistrationResult: results } };
  }

  function list({ url }: Call): Answer {
    const startAt = Number(url.searchParams.get("startAt") ?? 0);
    const maxResults = Math.min(Number(url.searchParams.get("maxResults") ?? 100), 100);
    const all = of("app");
    const values = all.slice(startAt, startAt + maxResults).map((hook) => ({
      id: Number(hook.id),
      url: hook.address,
      jqlFilter: hook.jqlFilter,
      events: hook.events,
      expirationDate: toDate(hook.expiresAtMs),
    }));
    const isLast = startAt + values.length >= all.length;
    return { status: 200, body: { maxResults, startAt, total: all.length, isLast, values } };
  }

  function refresh(call: Call): Answer {
    const body = call.read(idsSchema);
    if (body === undefined) return invalid("No webhook id was given.");
    const expiresAtMs = nowMs() + LIFETIME_MS;
    const own = of("app").filter(({ id }) => body.webhookIds.includes(Number(id)));
    for (const hook of own) hooks.put({ ...hook, expiresAtMs });
    return { status: 200, body: own.length > 0 ? { expirationDate: toDate(expiresAtMs) } : {} };
  }

  function removeAll(call: Call): Answer {
    const body = call.read(idsSchema);
    if (body === undefined) return invalid("No webhook id was given.");
    for (const { id } of of("app")) if (body.webhookIds.includes(Number(id))) hooks.remove(id);
    return { status: 202 };
  }

  function saveAdmin(call: Call, before?: JiraHook): Answer {
    const body = call.read(adminSchema);
    if (body === undefined) return invalid("The webhook needs a name, a URL and events.");
    const hook = hooks.put({
      id: before?.id ?? String(context.nextNumber()),
      address: body.url,
      secret: body.secret ?? before?.secret,
      events: body.events,
      kind: "admin",
      name: body.name,
      jqlFilter: Object.values(body.filters)[0] ?? "",
    });
    return { status: before === undefined ? 201 : 200, body: viewAdmin(hook) };
  }

  const viewAdmin = ({ id, address, events, name, secret }: JiraHook): object => ({
    self: `${origin}/rest/webhooks/1.0/webhook/${id}`,
    name,
    url: address,
    events,
    enabled: true,
    excludeBody: false,
    filters: {},
    isSigned: secret !== undefined,
  });

  const appPath = "/rest/api/3/webhook";
  const adminPath = "/rest/webhooks/1.0/webhook";
  return {
    quota: MAX_APP_WEBHOOKS,
    readToken: (call) => readBearer(call) ?? readBasic(call, "password"),
    unauthorized: { status: 401, body: { code: 401, message: "Unauthorized" } },
    forbidden: { status: 403, body: { errorMessages: ["The caller is not an app."], errors: {} } },
    notFound: NOT_FOUND,
    routes: [
      { step: "create", on: `POST ${appPath}`, handle: register },
      { step: "list", on: `GET ${appPath}`, handle: list },
      { step: "renew", on: `PUT ${appPath}/refresh`, handle: refresh },
      { step: "remove", on: `DELETE ${appPath}`, handle: removeAll },
      { step: "create", on: `POST ${adminPath}`, handle: (call) => saveAdmin(call) },
      {
        step: "list",
        on: `GET ${adminPath}`,
        handle: () => ({ status: 200, body: of("admin").map(viewAdmin) }),
      },
      {
        step: "check",
        on: `GET ${adminPath}/:id`,
        handle: withAdminHook((hook) => ({ status: 200, body: viewAdmin(hook) })),
      },
      {
        step: "update",
        on: `PUT ${adminPath}/:id`,
        handle: withAdminHook((hook, call) => saveAdmin(call, hook)),
      },
      {
        step: "remove",
        on: `DELETE ${adminPath}/:id`,
        handle: withAdminHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ],
    makeForeign: (address) => ({
      id: String(context.nextNumber()),
      address,
      secret: "secret of another program",
      events: ["jira:issue_created"],
      kind: "admin",
      name: "another program",
      jqlFilter: "",
    }),
    sign: build,
  };
}

async function build({ id: hookId, secret, kind }: JiraHook, message: Message): Promise<Outgoing> {
  const { id, payload, event, nowMs } = message;
  const body = JSON.stringify({
    timestamp: nowMs,
    webhookEvent: event,
    matchedWebhookIds: [Number(hookId)],
    ...(payload ?? { issue: { id: "10002", key: "ED-1" } }),
  });
  return {
    headers: {
      "content-type": "application/json; charset=utf-8",
      "x-atlassian-webhook-identifier": id,
      ...(secret && kind === "admin" && { "x-hub-signature": `sha256=${sign(body, secret)}` }),
      ...(secret && kind === "app" && { authorization: `Bearer ${await createToken(secret, nowMs)}` }),
    },
    body,
  };
}

function createToken(secret: string, nowMs: number): Promise<string> {
  const nowSeconds = Math.floor(nowMs / 1_000);
  const queryHash = createHash("sha256").update("POST&/&").digest("hex");
  return new SignJWT({ iss: "the-client-id", iat: nowSeconds, exp: nowSeconds + 180, qsh: queryHash })
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(secret));
}

const toDate = (ms = 0): string => new Date(ms).toISOString().replace("Z", "+0000");

const invalid = (message: string): Answer => ({
  status: 400,
  body: { errorMessages: [message], errors: {} },
});

const NOT_FOUND: Answer = {
  status: 404,
  body: { errorMessages: ["The webhook does not exist."], errors: {} },
};
