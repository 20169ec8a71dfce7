import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { readBasic, readBearer, startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext, Route } from "./provider.ts";
import { sign } from "./signatures.ts";

/** https://developer.atlassian.com/cloud/bitbucket/rest/api-group-repositories/ and …/api-group-workspaces/ */
export const startBitbucket = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator(options, createBitbucket);

interface BitbucketHook extends Hook {
  readonly events: readonly string[];
  /** Path of the repository or workspace. */
  readonly owner: string;
  readonly description: string;
  readonly isActive: boolean;
  readonly createdAt: string;
}

const MAX_PAGE = 100;
/** https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/ */
const MAX_HOOKS = 50;

const bodySchema = z.object({
  description: z.string().default(""),
  url: z.url(),
  active: z.boolean().default(true),
  secret: z.string().nullish(),
  events: z.array(z.string()).min(1),
});

function createBitbucket(context: ProviderContext<BitbucketHook>): Provider<BitbucketHook> {
  const { hooks, withHook, origin } = context;

  function save(call: Call, before?: BitbucketHook): Answer {
    const body = call.read(bodySchema);
    if (body === undefined) return error(400, "url: Required. events: Required.");
    const owner = ownerOf(call);
    const others = hooks.list().filter((hook) => hook.owner === owner && hook.id !== before?.id);
    if (others.length >= context.quota()) {
      return error(400, `You have reached the limit of ${context.quota()} webhooks.`);
    }
    const hook = hooks.put({
      id: before?.id ?? `{${randomUUID()}}`,
      address: body.url,
      secret: body.secret === undefined ? before?.secret : (body.secret ?? undefined),
      events: body.events,
      owner,
      description: body.description,
      isActive: body.active,
      createdAt: before?.createdAt ?? new Date(context.nowMs()).toISOString(),
    });
    return { status: before === undefined ? 201 : 200, body: view(hook) };
  }

  function list(call: Call): Answer {
    const { searchParams } = call.url;
    const size = Math.min(Number(searchParams.get("pagelen") ?? 10), MAX_PAGE);
    const page = Number(searchParams.get("page") ?? 1);
    const found = hooks.list().filter(({ owner }) => owner === ownerOf(call));
    const next = new URL(call.url.pathname + call.url.search, origin);
    next.searchParams.set("page", String(page + 1));
    return {
      status: 200,
      body: {
        pagelen: size,
        page,
        size: found.length,
        values: found.slice((page - 1) * size, page * size).map(view),
        ...(found.length > page * size && { next: next.href }),
      },
    };
  }

  return {
    quota: MAX_HOOKS,
    readToken: (call) => readBearer(call) ?? readBasic(call, "password"),
    unauthorized: error(401, "Token is invalid or not supported for this endpoint."),
    forbidden: error(403, "Your credentials lack one or more required privilege scopes."),
    notFound: error(404, "Resource not found"),
    routes: ["/2.0/repositories/:workspace/:repo", "/2.0/workspaces/:workspace"].flatMap(
      (owner): readonly Route[] => [
        { step: "create", on: `POST ${owner}/hooks`, handle: (call) => save(call) },
        { step: "list", on: `GET ${owner}/hooks`, handle: list },
        {
          step: "check",
          on: `GET ${owner}/hooks/:id`,
          handle: withHook((hook) => ({ status: 200, body: view(hook) })),
        },
        { step: "update", on: `PUT ${owner}/hooks/:id`, handle: withHook((hook, call) => save(call, hook)) },
        {
          step: "remove",
          on: `DELETE ${owner}/hooks/:id`,
          handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
        },
      ],
    ),
    makeForeign: (address) => ({
      id: `{${randomUUID()}}`,
      address,
      secret: "secret of another program",
      events: ["repo:push"],
      owner: "/2.0/repositories/acme/shop",
      description: "another program",
      isActive: true,
      createdAt: new Date(context.nowMs()).toISOString(),
    }),
    receives: ({ isActive, events }, event) => isActive && (event === undefined || events.includes(event)),
    sign: build,
  };
}

function build({ id: hookId, secret }: BitbucketHook, { id, payload, event, nowMs }: Message): Outgoing {
  const body = JSON.stringify(payload ?? { push: { changes: [{ date: new Date(nowMs).toISOString() }] } });
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "Bitbucket-Webhooks/2.0",
      "x-event-key": event ?? "repo:push",
      "x-hook-uuid": hookId.slice(1, -1),
      "x-request-uuid": id,
      "x-attempt-number": "1",
      ...(secret && { "x-hub-signature": `sha256=${sign(body, secret)}` }),
    },
    body,
  };
}

const view = ({
  id,
  address,
  secret,
  events,
  owner,
  description,
  isActive,
  createdAt,
}: BitbucketHook): object => ({
  uuid: id,
  url: address,
  description,
  subject_type: owner.startsWith("/2.0/repositories/") ? "repository" : "workspace",
  active: isActive,
  created_at: createdAt,
  events,
  secret_set: secret !== undefined,
});

const error = (status: number, message: string): Answer => ({
  status,
  body: { type: "error", error: { message } },
});

const ownerOf = ({ url }: Call): string => url.pathname.replace(/\/hooks(\/.*)?$/, "");
