import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import type { Schema } from "../../kit/form/schema.ts";
import { SchemaForm } from "../../kit/form/schema-form.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

export type Stream = Schemas["Preset"]["streams"][number];

/** The user's choices for a channel that polls a list of a provider. */
export interface StreamChoice {
  readonly params: unknown;
  /** `undefined` while none is chosen. */
  readonly connectionId: string | undefined;
}

interface Props {
  readonly stream: Stream;
  readonly choice: StreamChoice;
  readonly onChange: (choice: StreamChoice) => void;
  /** Details of an error response, with paths below `params`. */
  readonly details: readonly { readonly path: string; readonly message: string }[];
}

/** Fields for the parameters of a provider's list, and for the connection with the credentials. */
export function StreamFields({ stream, choice, onChange, details }: Props) {
  const { connection, description, documentationUrl, params, rateLimit } = stream;
  return (
    <>
      <p class="field-help">
        <UntrustedText>{[description, rateLimit].filter(Boolean).join(" ")}</UntrustedText>
      </p>
      <a href={documentationUrl} target="_blank" rel="noreferrer noopener">
        Documentation of the list
      </a>
      <SchemaForm
        schema={params as Schema}
        value={choice.params}
        onChange={(value) => onChange({ ...choice, params: value })}
        details={details}
      />
      {connection && hasPermission("connections.read") && (
        <ConnectionField
          hint={connection.hint}
          kinds={connection.kinds}
          value={choice.connectionId}
          onChange={(connectionId) => onChange({ ...choice, connectionId })}
        />
      )}
    </>
  );
}

interface ConnectionFieldProps {
  readonly hint: string;
  readonly kinds: readonly string[];
  readonly value: string | undefined;
  readonly onChange: (connectionId: string | undefined) => void;
}

function ConnectionField({ hint, kinds, value, onChange }: ConnectionFieldProps) {
  const connections = useLoad((signal) => api.list("/connections", { query: { limit: 200 }, signal }), []);
  return (
    <WhenLoaded loaded={connections}>
      {({ rows }) => (
        <label class="field">
          <span class="field-name">Connection</span>
          <select value={value ?? ""} onChange={(event) => onChange(event.currentTarget.value || undefined)}>
            <option value="">choose later</option>
            {rows
              .filter(({ kind }) => kinds.includes(kind))
              .map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
          </select>
          <span class="field-help">
            <UntrustedText>{hint}</UntrustedText>
          </span>
          <a href="/console/connections">Create a connection</a>
        </label>
      )}
    </WhenLoaded>
  );
}
