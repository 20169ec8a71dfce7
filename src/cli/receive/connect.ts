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

const TOKEN_VARIABLE = "INLET_TOKEN";

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
  if (options.mayAsk && findCredentials(api, "") !== undefined) {
    client.output.note(`${title} needs a token. ${required.hint}${scopes}`);
    const token = (await readSecret(client.io, `Token (hidden): `)).trim();
    if (token !== "") return create(client, steps, api, token);
  }
  throw usageError(`${title} needs credentials. ${required.hint}${scopes}\n${howToConnect(api)}`);
}

const howToConnect = (api: CalledApi): string =>
  findCredentials(api, "") === undefined
    ? `Create a connection of the kind ${(api.connection?.kinds ?? []).join(" or ")}, in the console or with \`inlet api POST /connections\`. Then pass --connection with its id.`
    : "Pass the token with --token, such as --token @token.txt.";

async function create(client: Client, steps: Steps, api: CalledApi, token: string): Promise<string> {
  const credentials = findCredentials(api, token);
  if (credentials === undefined) throw usageError(howToConnect(api));
  if (api.origin === undefined) throw usageError(`The address of ${api.title} is unknown. Pass --base-url.`);
  const body = { name: api.title.slice(0, 255), ...credentials, allowedOrigins: [api.origin] };
  const { id, name } = await client.api.post<Connection>("/connections", body);
  const secret = Object.values(credentials.config).at(-1) ?? token;
  const call = formatCall({ method: "POST", path: "/connections", body }, { [secret]: TOKEN_VARIABLE });
  const facts = { id, created: true };
  steps.done({ step: "connection", text: `${name} created, for ${api.origin} only`, facts }, call);
  return id;
}

/** Returns the credentials of a connection with this token. `undefined` if no kind that the API accepts consists of one token. */
function findCredentials({ connection }: CalledApi, token: string): Credentials | undefined {
  const kinds: readonly string[] = connection?.kinds ?? ["bearer"];
  if (kinds.includes("bearer")) return { kind: "bearer", config: { token } };
  if (!kinds.includes("basic")) return undefined;
  const [username = "", ...password] = token.split(":");
  return { kind: "basic", config: { username, password: password.join(":") } };
}
