import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import type { Choice, Choices } from "../../kit/form/inputs.tsx";
import { isRecord } from "../../kit/form/schema.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { CLIENT_AUTHENTICATION_NAMES, GRANT_NAMES, KIND_NAMES } from "./words.ts";

type Provider = Schemas["OAuthProvider"];

const loadProviders = (signal: AbortSignal): Promise<readonly Provider[]> =>
  api.list("/oauth-providers", { query: { limit: 200 }, signal }).then(({ rows }) => rows);

const toChoices = (names: Readonly<Record<string, string>>): readonly Choice[] =>
  Object.entries(names).map(([value, label]) => ({ value, label }));

/** Loads the labels of the form's choices. */
export const loadChoices = async (signal: AbortSignal): Promise<Choices> => ({
  kind: toChoices(KIND_NAMES),
  "config.grant": toChoices(GRANT_NAMES),
  "config.clientAuthentication": toChoices(CLIENT_AUTHENTICATION_NAMES),
  "config.provider": (await loadProviders(signal)).map(({ provider, title }) => ({
    value: provider,
    label: title,
  })),
});

/** Setup steps at the provider that a form names. */
export function ProviderHint({ value }: { readonly value: Readonly<Record<string, unknown>> }) {
  const name = isRecord(value.config) ? value.config.provider : undefined;
  const loaded = useLoad(
    (signal) => (name === undefined ? Promise.resolve([]) : loadProviders(signal)),
    [name],
  );
  const provider = loaded.data?.find((one) => one.provider === name);
  if (!provider) return null;
  return (
    <div class="note">
      <p>
        {provider.setup}{" "}
        <a href={provider.documentationUrl} target="_blank" rel="noreferrer noopener">
          Documentation of {provider.title}
        </a>
      </p>
      <p>
        Redirect URI to enter there: <Copyable text={provider.redirectUri} what="redirect URI" />
      </p>
      {provider.scopes.length > 0 && <p>Scopes: {provider.scopes.join(", ")}</p>}
    </div>
  );
}
