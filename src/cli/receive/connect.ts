import type { Connection } from "../../resources/apps/connections/schema.ts";
import { formatPath } from "../client/api.ts";
import type { Client } from "../client/command.ts";
import { readData } from "../client/delivery.ts";
import { usageError } from "../exit.ts";
import { readSecret } from "../output/prompt.ts";
import type { CalledApi } from "./plan.ts";
import { formatCall, type Steps } from "./steps.ts";

export interface ConnectOptions {
  readonly connection?: string;
  readonly token?: string;
  /** Id of the connection that the channel uses since an earlier run. */
  readonly current: string | undefined;
  /** Uid of the channel. The name of a created connection contains it. */
  readonly channel: string;
  /** Whether the user can be asked for a token. */
  readonly mayAsk: boolean;
}

/** Connection of a channel. */
export interface Connected {
  readonly id: string;
  /** Whether this call created the connection. */
  readonly isNew: boolean;
}

type Credentials = { readonly kind: string; readonly config: Readonly<Record<string, string>> };

const VARIABLES: Readonly<Record<string, string>> = {
  token: "INLET_TOKEN",
  username: "INLET_USER",
  password: "INLET_PASSWORD",
};

/**
 * Returns the connection with which Inlet calls an API, or `undefined` if the API needs none. The channel keeps the connection of an
 * earlier run. A token replaces that of the connection that an earlier run created, or creates a connection.
 *
 * @throws CommandError if credentials are missing, or if several connections fit
 */
export async function findConnection(
  client: Client,
  steps: Steps,
  api: CalledApi,
  options: ConnectOptions,
): Promise<Connected | undefined> {
  const { title, connection: required } = api;
  const { connection, token, current } = options;
  if (connection !== undefined) return { id: connection, isNew: false };
  if (token !== undefined)
    return store(client, steps, api, String(await readData(client.io, token)), options);
  if (current !== undefined) return { id: current, isNew: false };
  if (!required) return undefined;
  const found = await findFitting(client, api);
  if (found !== undefined) {
    const facts = { id: found.id, created: false };
    steps.done(
      { step: "connection", text: `${found.name} exists`, facts },
      `inlet api GET /connections/${found.id}`,
    );
    return { id: found.id, isNew: false };
  }
  const scopes = required.scopes.length > 0 ? ` It needs the permissions ${required.scopes.join(", ")}.` : "";
  if (options.mayAsk && acceptsToken(api)) {
    client.output.note(`${title} needs a token. ${required.hint}${scopes}`);
    const typed = await readSecret(client.io, `${nameToken(api)} (hidden): `);
    if (typed.trim() !== "") return store(client, steps, api, typed, options);
  }
  throw usageError(`${title} needs credentials. ${required.hint}${scopes}\n${howToConnect(api)}`);
}

/** Returns the usable connection for the API. @throws CommandError if there are several */
async function findFitting(
  client: Client,
  { title, connection: required, origin }: CalledApi,
): Promise<Connection | undefined> {
  const { items } = await client.api.list<Connection>("/connections");
  const [found, ...others] = items.filter(
    ({ kind, allowedOrigins, state }) =>
      state === "ok" &&
      required?.kinds.some((one) => one === kind) &&
      origin !== undefined &&
      allowedOrigins.includes(origin),
  );
  if (found === undefined || others.length === 0) return found;
  const choices = [found, ...others].map(({ id, name }) => `  ${id}  ${name}`).join("\n");
  throw usageError(`Several connections fit ${title}. Choose one with --connection:\n${choices}`);
}

const howToConnect = (api: CalledApi): string =>
  acceptsToken(api)
    ? `Pass the ${nameToken(api)} with --token, such as --token @token.txt.`
    : `Create a connection of the kind ${kindsOf(api).join(" or ")}, in the console or with \`inlet api POST /connections\`. Then pass --connection with its id.`;

/** Stores a token in the channel's connection if an earlier run created it, or else in a new connection. */
async function store(
  client: Client,
  steps: Steps,
  api: CalledApi,
  token: string,
  { current, channel }: ConnectOptions,
): Promise<Connected> {
  const { title, origin } = api;
  const credentials = findCredentials(api, token.trim());
  if (credentials === undefined) throw usageError(howToConnect(api));
  if (origin === undefined) throw usageError(`The address of ${title} is unknown. Pass --base-url.`);
  const { kind, config } = credentials;
  const body = { name: `${title.slice(0, 150)} for ${channel}`, kind, config, allowedOrigins: [origin] };
  // A user name can be an API key.
  const secrets = Object.entries(config).filter(([, value]) => value !== "");
  const variables = Object.fromEntries(secrets.map(([field, value]) => [value, VARIABLES[field] ?? ""]));
  const path = current && formatPath("connections", current);
  const earlier = path && (await client.api.get<Connection>(path));
  if (
    earlier &&
    earlier.name === body.name &&
    earlier.kind === kind &&
    earlier.allowedOrigins.includes(origin)
  ) {
    await client.api.put(path, { config });
    const call = formatCall({ method: "PUT", path, body: { config } }, variables);
    const facts = { id: earlier.id, created: false };
    steps.done({ step: "connection", text: `${earlier.name} has the new token`, facts }, call);
    return { id: earlier.id, isNew: false };
  }
  const { id, name } = await client.api.post<Connection>("/connections", body);
  const call = formatCall({ method: "POST", path: "/connections", body }, variables);
  steps.done(
    { step: "connection", text: `${name} created, for ${origin} only`, facts: { id, created: true } },
    call,
  );
  return { id, isNew: true };
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
