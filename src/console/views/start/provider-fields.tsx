import { findOrigin } from "../../../channels/compose-channel.ts";
import type { ListPage, Schemas } from "../../api/client.ts";
import type { Loaded } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { isRecord, type Schema } from "../../kit/form/schema.ts";
import { SchemaForm } from "../../kit/form/schema-form.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Facts } from "../../kit/layout/page.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { Authorize } from "../connections/authorize.tsx";

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

const isRegistration = (api: ProviderApi): api is Schemas["Preset"]["registrations"][number] =>
  "target" in api;

interface Props {
  readonly api: ProviderApi;
  readonly choice: ApiChoice;
  readonly onChange: (choice: ApiChoice) => void;
  readonly connections: Loaded<ListPage<Schemas["Connection"]>>;
  /** Called when the user wants to create a connection. */
  readonly onConnect: () => void;
  /** Details of an error response, with paths below `params`. */
  readonly details: readonly { readonly path: string; readonly message: string }[];
}

/** Fields for the parameters of a provider's list or object, and for the connection with the credentials. */
export function ProviderFields({ api, choice, onChange, details, ...connecting }: Props) {
  const { connection, description, documentationUrl, params } = api;
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
        <label class="field">
          <span class="field-name">URL of the API</span>
          <input
            type="url"
            placeholder={api.baseUrl}
            value={choice.baseUrl ?? ""}
            onInput={({ currentTarget: { value } }) => onChange({ ...choice, baseUrl: value || undefined })}
          />
          <span class="field-help">Only for an installation of your own.</span>
        </label>
      )}
      {connection && hasPermission("connections.read") && (
        <ConnectionField
          required={connection}
          isOptional={!isRegistration(api)}
          origin={findOrigin(api, choice.params, choice.baseUrl)}
          value={choice.connectionId}
          onChange={(connectionId) => onChange({ ...choice, connectionId })}
          {...connecting}
        />
      )}
    </>
  );
}

interface ConnectionFieldProps extends Pick<Props, "connections" | "onConnect"> {
  readonly required: NonNullable<ProviderApi["connection"]>;
  /** Whether the channel can be created without a connection. */
  readonly isOptional: boolean;
  readonly origin: string | undefined;
  readonly value: string | undefined;
  readonly onChange: (connectionId: string | undefined) => void;
}

function ConnectionField(props: ConnectionFieldProps) {
  const { required, isOptional, origin, value, onChange, connections, onConnect } = props;
  const { hint, scopes } = required;
  return (
    <WhenLoaded loaded={connections}>
      {({ rows }) => (
        <>
          <label class="field">
            <span class="field-name">Connection</span>
            <select
              required={!isOptional}
              value={value ?? ""}
              onChange={(event) => onChange(event.currentTarget.value || undefined)}
            >
              <option value="">{isOptional ? "choose later" : "choose …"}</option>
              {rows
                .filter(({ kind }) => required.kinds.some((one) => one === kind))
                .map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
            </select>
          </label>
          <Facts
            facts={{
              "Create the credentials at": <UntrustedText>{hint}</UntrustedText>,
              Permissions: scopes.length > 0 && <UntrustedText>{scopes.join(", ")}</UntrustedText>,
              "Allowed origin": origin !== undefined && <UntrustedText>{origin}</UntrustedText>,
            }}
          />
          {hasPermission("connections.write") && (
            <div class="row wrap">
              <Button onClick={onConnect}>Create a connection</Button>
              {rows
                .filter(({ id, state }) => id === value && state !== "ok")
                .map((one) => (
                  <Authorize key={one.id} connection={one} onSignedIn={connections.reload} />
                ))}
            </div>
          )}
        </>
      )}
    </WhenLoaded>
  );
}
