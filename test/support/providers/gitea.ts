import { z } from "zod";
import type { Emulator, EmulatorOptions, Hook } from "./emulator.ts";
import { readBearer, startEmulator } from "./emulator-server.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext, Route } from "./provider.ts";
import { sign } from "./signatures.ts";

type Product = "gitea" | "forgejo";

/** https://docs.gitea.com/api/#tag/repository/operation/repoCreateHook */
export const startGitea = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator<GiteaHook>(options, (context) => createGitea(context, "gitea"));

/** The API of Gitea with the types of webhooks and headers of Forgejo: https://codeberg.org/api/swagger */
export const startForgejo = (options: EmulatorOptions): Promise<Emulator> =>
  startEmulator<GiteaHook>(options, (context) => createGitea(context, "forgejo"));

interface GiteaHook extends Hook {
  readonly events: readonly string[];
  /** Path of the repository or organization. */
  readonly owner: string;
  readonly type: string;
  readonly isActive: boolean;
  readonly createdAt: string;
}

const MAX_PAGE = 50;

const createSchema = z.object({
  type: z.string(),
  config: z.object({
    url: z.url().optional(),
    content_type: z.enum(["json", "form"]).optional(),
    secret: z.string().optional(),
  }),
  events: z.array(z.string()).min(1).default(["push"]),
  active: z.boolean().default(false),
});

function createGitea(context: ProviderContext<GiteaHook>, product: Product): Provider<GiteaHook> {
  const { hooks, withHook, origin } = context;
  const types = product === "gitea" ? ["gitea", "gogs"] : ["forgejo", "gitea", "gogs"];

  function create(call: Call): Answer {
    const body = call.read(createSchema);
    if (body === undefined) return error(422, "[Type]: Required");
    const { type, config, events, active } = body;
    if (!types.includes(type)) return error(422, `Invalid hook type: ${type}`);
    if (config.url === undefined) return error(422, "Missing config option: url");
    if (config.content_type === undefined) return error(422, "Missing config option: content_type");
    const hook = hooks.put({
      id: String(context.nextNumber()),
      address: config.url,
      secret: config.secret,
      events,
      owner: ownerOf(call),
      type,
      isActive: active,
      createdAt: new Date(context.nowMs()).toISOString(),
    });
    return { status: 201, body: view(hook) };
  }

  function list(call: Call): Answer {
    const { searchParams } = call.url;
    const size = Math.min(Number(searchParams.get("limit") ?? 30), MAX_PAGE);
    const page = Number(searchParams.get("page") ?? 1);
    const found = hooks.list().filter(({ owner }) => owner === ownerOf(call));
    const next = new URL(call.url.pathname + call.url.search, origin);
    next.searchParams.set("page", String(page + 1));
    return {
      status: 200,
      headers: found.length > page * size ? { link: `<${next}>; rel="next"` } : {},
      body: found.slice((page - 1) * size, page * size).map(view),
    };
  }

  const error = (status: number, message: string): Answer => ({
    status,
    body: { message, url: `${origin}/api/swagger` },
  });

  return {
    readToken: (call) => readBearer(call) ?? /^token (.+)$/i.exec(call.headers.authorization ?? "")?.[1],
    unauthorized: error(401, "invalid username, password or token"),
    forbidden: error(403, "token does not have at least one of required scope(s): [write:repository]"),
    notFound: error(404, "The target couldn't be found."),
    routes: ["/api/v1/repos/:owner/:repo", "/api/v1/orgs/:org"].flatMap((owner): readonly Route[] => [
      { step: "create", on: `POST ${owner}/hooks`, handle: create },
      { step: "list", on: `GET ${owner}/hooks`, handle: list },
      {
        step: "check",
        on: `GET ${owner}/hooks/:id`,
        handle: withHook((hook) => ({ status: 200, body: view(hook) })),
      },
      {
        step: "remove",
        on: `DELETE ${owner}/hooks/:id`,
        handle: withHook(({ id }) => ({ status: hooks.remove(id) ? 204 : 404 })),
      },
    ]),
    makeForeign: (address) => ({
      id: String(context.nextNumber()),
      address,
      secret: "secret of another program",
      events: ["push"],
      owner: "/api/v1/repos/acme/shop",
      type: product,
      isActive: true,
      createdAt: new Date(context.nowMs()).toISOString(),
    }),
    receives: ({ isActive, events }, event) => isActive && (event === undefined || events.includes(event)),
    sign: build,
  };
}

function build({ secret = "", type }: GiteaHook, { id, payload, event = "push" }: Message): Outgoing {
  const body = JSON.stringify(payload ?? { ref: "refs/heads/main", after: id });
  const prefixes = type === "forgejo" ? ["x-forgejo", "x-gitea", "x-gogs"] : ["x-gitea", "x-gogs"];
  const signature = sign(body, secret);
  const headers = prefixes.flatMap((prefix) => [
    [`${prefix}-delivery`, id],
    [`${prefix}-event`, event],
    [`${prefix}-signature`, signature],
  ]);
  return {
    headers: {
      "content-type": "application/json",
      ...Object.fromEntries(headers),
      "x-hub-signature-256": `sha256=${signature}`,
    },
    body,
  };
}

const view = ({ id, address, events, type, isActive, createdAt }: GiteaHook): object => ({
  id: Number(id),
  type,
  branch_filter: "",
  config: { content_type: "json", url: address },
  events,
  authorization_header: "",
  active: isActive,
  updated_at: createdAt,
  created_at: createdAt,
});

const ownerOf = ({ url }: Call): string => url.pathname.replace(/\/hooks(\/.*)?$/, "");
