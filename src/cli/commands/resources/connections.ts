import type { Command } from "commander";
import type { OAuthProvider } from "../../../net/connections/oauth-providers.ts";
import type { Connection } from "../../../resources/apps/connections/schema.ts";
import { formatPath } from "../../client/api.ts";
import { apiOptions, confirmDeletion, declareSubcommands, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { readSecret } from "../../output/prompt.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Connection>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "name", value: ({ name }) => name, wraps: true },
  { title: "kind", value: ({ kind }) => kind },
  { title: "provider", value: ({ config }) => config.provider ?? "", isOptional: true },
  { title: "state", value: ({ state }) => state },
  { title: "origins", value: ({ allowedOrigins }) => allowedOrigins, isOptional: true, wraps: true },
];

const PROVIDER_COLUMNS: readonly Column<OAuthProvider>[] = [
  { title: "provider", value: ({ provider }) => provider },
  { title: "title", value: ({ title }) => title },
  { title: "scopes", value: ({ scopes }) => scopes, isOptional: true, wraps: true },
  { title: "setup", value: ({ setup }) => setup, isOptional: true, wraps: true },
];

interface CreateOptions {
  readonly clientId: string;
  readonly name?: string;
  readonly scope?: readonly string[];
  readonly origin?: readonly string[];
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);
  part("list", "List the connections", async ({ api, output }) => {
    output.list((await api.list<Connection>("/connections")).items, COLUMNS, "There is no connection yet.");
  });
  part<[string]>("get <connection>", "Show a connection by its id", ({ api }, [id]) =>
    api.get(formatPath("connections", id)),
  );
  part(
    "providers",
    "List the providers whose sign-in needs only a client id and a secret",
    async ({ api, output }) => {
      output.list((await api.list<OAuthProvider>("/oauth-providers")).items, PROVIDER_COLUMNS);
    },
  );
  part<[string], CreateOptions>(
    "create <provider>",
    "Create a connection for a sign-in at a provider. The client secret is read from standard input; a terminal prompts for it.",
    async ({ api, io }, [provider], { clientId, name = provider, scope: scopes, origin: allowedOrigins }) => {
      const clientSecret = (await readSecret(io, `Client secret of ${provider}: `)).trim();
      const config = { provider, clientId, clientSecret, scopes };
      return api.post<Connection>("/connections", { name, kind: "oauth2", config, allowedOrigins });
    },
  )
    .requiredOption("--client-id <id>", "client id of the app at the provider")
    .option("--name <name>", "name of the connection (default: the provider)")
    .option("--scope <scope...>", "scopes to request (default: those of the provider)")
    .option(
      "--origin <url...>",
      "origins to which the credentials may be sent (default: those of the provider)",
    );
  part<[string]>(
    "sign-in <connection>",
    "Print the address at which a person signs in for a connection",
    ({ api }, [id]) => api.get(formatPath("connections", id, "authorize")),
  );
  part<[string]>(
    "test <connection>",
    "Use the credentials of a connection for one request",
    ({ api }, [id]) => api.post(formatPath("connections", id, "test"), {}),
  );
  part<[string], { readonly yes?: boolean }>(
    "delete <connection>",
    "Delete a connection with its secrets and tokens",
    async (client, [id], options) => {
      await confirmDeletion(client, options, "connection", id);
      return client.api.delete(formatPath("connections", id));
    },
  ).option("-y, --yes", "do not ask for confirmation");
  examples(command, [
    ["inlet connections providers", "providers with built-in OAuth settings"],
    ["inlet connections create github --client-id Iv1.1a2b3c", "prompts for the client secret"],
    ["inlet connections sign-in con_1", "the address to open in a browser"],
  ]);
}
