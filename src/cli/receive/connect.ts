import type { Connection } from "../../resources/apps/connections/schema.ts";
import type { Client } from "../client/command.ts";
import { readData } from "../client/delivery.ts";
import { usageError } from "../exit.ts";
import { readSecret } from "../output/prompt.ts";
import type { CalledApi } from "./plan.ts";
import { formatCall, type Steps } from "./steps.ts";

export interface ConnectOptions {
  readonly connection?: string;
  readonly token?: string;
  /** Whether the user can be asked for a token. */
  readonly mayAsk: boolean;
}

type Credentials = { readonly kind: string; readonly config: Readonly<Record<string, string>> };

const VARIABLES: Readonly<Record<string, string>> = {
  token: "INLET_TOKEN",
  username: "INLET_USER",
  password: "INLET_PASSWORD",
};

/**
 * Returns the id of the connection with which Inlet calls an API. Creates one from a token, or finds an existing one that fits. `undefined` if
 * the API needs none.
 *
 * @throws CommandError if credentials are missing
 */
export async function findConnection(
  client: Client,
  steps: Steps,
  api: CalledApi,
  options: ConnectOptions,
): Promise<string | undefined> {
  const { title, connection: required, origin } = api;
  if (options.connection !== undefined) return options.connection;
  if (options.token !== undefined) {
    const token = String(await readData(client.io, options.token)).trim();
    return create(client, steps, api, token);
  }
  if (!required) return undefined;
  const { items } = await client.api.list<Connection>("/connections");
  const found = items.find(
    ({ kind, allowedOrigins }) =>
      required.kinds.some((one) => one === kind) && origin !== undefined && allowedOrigins.includes(origin),
  );
  if (found !== undefined) {
    const facts = { id: found.id, created: false };
    steps.done(
      { step: "connection", text: `${found.name} exists`, facts },
      `inlet api GET /connections/${found.id}`,
    );
    return found.id;
  }
  const scopes = required.scopes.length > 0 ? ` It needs the permissions ${required.scopes.join(", ")}.` : "";
  if (options.mayAsk && acceptsToken(api)) {
    client.output.note(`${title} needs a token. ${required.hint}${scopes}`);
    const token = (await readSecret(client.io, `${nameToken(api)} (hidden): `)).trim();
    if (token !== "") return create(client, steps, api, token);
  }
  throw usageError(`${title} needs credentials. ${required.hint}${scopes}\n${howToConnect(api)}`);
}

const howToConnect = (api: CalledApi): string =>
  acceptsToken(api)
    ? `Pass the ${nameToken(api)} with --token, such as --token @token.txt.`
    : `Create a connection of the kind ${kindsOf(api).join(" or ")}, in the console or with \`inlet api POST /connections\`. Then pass --connection with its id.`;

async function create(client: Client, steps: Steps, api: CalledApi, token: string): Promise<string> {
  const credentials = findCredentials(api, token);
  if (credentials === undefined) throw usageError(howToConnect(api));
  if (api.origin === undefined) throw usageError(`The address of ${api.title} is unknown. Pass --base-url.`);
  const body = { name: api.title.slice(0, 255), ...credentials, allowedOrigins: [api.origin] };
  const { id, name } = await client.api.post<Connection>("/connections", body);
  // A user name can be an API key.
  const secrets = Object.entries(credentials.config).filter(([, value]) => value !== "");
  const variables = Object.fromEntries(secrets.map(([field, value]) => [value, VARIABLES[field] ?? ""]));
  const call = formatCall({ method: "POST", path: "/connections", body }, variables);
  const facts = { id, created: true };
  steps.done({ step: "connection", text: `${name} created, for ${api.origin} only`, facts }, call);
  return id;
}

const kindsOf = ({ connection }: CalledApi): readonly string[] => connection?.kinds ?? ["bearer"];

const acceptsToken = (api: CalledApi): boolean =>
  kindsOf(api).some((kind) => kind === "bearer" || kind === "basic");

/** Names the forms of `--token` that the API accepts. */
function nameToken(api: CalledApi): string {
  const forms = kindsOf(api).flatMap((kind) =>
    kind === "bearer" ? ["token"] : kind === "basic" ? ["user:password"] : [],
  );
  return forms.join(" or ");
}

/** Returns the credentials of a connection with this token. `undefined` if the API accepts no token of its form. */
function findCredentials(api: CalledApi, token: string): Credentials | undefined {
  const kinds = kindsOf(api);
  const [, username, password] = /^([^:]*):(.*)$/s.exec(token) ?? [];
  if (kinds.includes("basic") && username !== undefined && password !== undefined)
    return { kind: "basic", config: { username, password } };
  return kinds.includes("bearer") ? { kind: "bearer", config: { token } } : undefined;
}
