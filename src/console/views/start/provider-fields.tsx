import type { ComponentChildren } from "preact";
import type { Schemas } from "../../api/client.ts";
import { TextField } from "../../kit/form/field.tsx";
import { isRecord, type Schema } from "../../kit/form/schema.ts";
import { SchemaForm } from "../../kit/form/schema-form.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

/** A list that Inlet polls, or an object at which it registers a channel's address. */
export type ProviderApi = Schemas["Preset"]["streams" | "registrations"][number];

/** The user's choices for a channel that calls its provider. */
export interface ApiChoice {
  readonly params: Readonly<Record<string, unknown>>;
  /** `undefined` while none is chosen. */
  readonly connectionId: string | undefined;
  /** Start of the URLs of the user's own installation. `undefined` for the provider's one. */
  readonly baseUrl: string | undefined;
}

export const NO_CHOICE: ApiChoice = { params: {}, connectionId: undefined, baseUrl: undefined };

export const isRegistration = (api: ProviderApi): api is Schemas["Preset"]["registrations"][number] =>
  "target" in api;

interface Props {
  readonly api: ProviderApi;
  readonly choice: ApiChoice;
  readonly onChange: (choice: ApiChoice) => void;
  /** Field for the connection. */
  readonly connection: ComponentChildren;
  /** Details of an error response, with paths below `params`. */
  readonly details: readonly { readonly path: string; readonly message: string }[];
}

/** Fields for the parameters of a provider's list or object, and for the connection with the credentials. */
export function ProviderFields({ api, choice, onChange, connection, details }: Props) {
  const { description, documentationUrl, params } = api;
  const rateLimit = "rateLimit" in api && api.rateLimit;
  return (
    <>
      <p class="field-help">
        <UntrustedText>{[description, rateLimit].filter(Boolean).join(" ")}</UntrustedText>
      </p>
      <a href={documentationUrl} target="_blank" rel="noreferrer noopener">
        Documentation of the API
      </a>
      <SchemaForm
        schema={params as Schema}
        value={choice.params}
        onChange={(value) => onChange({ ...choice, params: isRecord(value) ? value : {} })}
        details={details}
      />
      {isRegistration(api) && !api.baseUrl.startsWith("{{") && (
        <TextField
          label="URL of the API"
          help="Only for an installation of your own."
          type="url"
          placeholder={api.baseUrl}
          value={choice.baseUrl ?? ""}
          onChange={(value) => onChange({ ...choice, baseUrl: value || undefined })}
        />
      )}
      {connection}
    </>
  );
}
