import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Select } from "../../kit/form/field.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Facts } from "../../kit/layout/page.tsx";
import { ResourceForm } from "../../kit/resource/resource-form.tsx";
import { hasPermission } from "../../session/session.ts";
import { Authorize } from "../connections/authorize.tsx";
import type { ProviderApi } from "./provider-fields.tsx";

interface Props {
  /** Credentials that the API needs. `undefined` if that is unknown, and `null` if it needs none. */
  readonly required: ProviderApi["connection"] | undefined;
  /** Whether the channel can be created without a connection. */
  readonly isOptional: boolean;
  /** Name of a new connection. */
  readonly title: string;
  /** Origin that the connection must allow. `undefined` while it is unknown. */
  readonly origin: string | undefined;
  readonly value: string | undefined;
  readonly onChange: (connectionId: string | undefined) => void;
}

/** Hook for the choice of a connection. `dialog`, which creates one, must be outside of the form with `field`. */
export function useConnectionChoice(props: Props): {
  readonly field: ComponentChildren;
  readonly dialog: ComponentChildren;
} {
  const { required, isOptional, title, origin, value, onChange } = props;
  const [isConnecting, setConnecting] = useState(false);
  const mayRead = hasPermission("connections.read");
  const connections = useLoad(
    async (signal) =>
      mayRead ? api.list("/connections", { query: { limit: 200 }, signal }) : { rows: [], total: 0 },
    [],
  );
  if (required === null || !mayRead) return { field: null, dialog: null };
  const { kinds = [], hint = "", scopes = [] } = required ?? {};
  const field = (
    <WhenLoaded loaded={connections}>
      {({ rows }) => (
        <>
          <Select
            label="Connection"
            required={!isOptional}
            value={value ?? ""}
            options={[
              {
                value: "",
                label: required === undefined ? "none" : isOptional ? "choose later" : "choose …",
              },
              ...rows
                .filter(({ kind }) => kinds.length === 0 || kinds.some((one) => one === kind))
                .map(({ id, name }) => ({ value: id, label: name })),
            ]}
            onChange={(id) => onChange(id || undefined)}
          />
          <Facts
            facts={{
              "Create the credentials at": hint !== "" && hint,
              Permissions: scopes.length > 0 && scopes.join(", "),
              "Allowed origin": origin ?? false,
            }}
          />
          {hasPermission("connections.write") && (
            <div class="row wrap">
              <Button onClick={() => setConnecting(true)}>Create a connection</Button>
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
  const dialog = isConnecting && (
    <ResourceForm
      title="Create a connection"
      method="post"
      operation="/connections"
      path="/connections"
      verb="Create"
      start={{
        name: title,
        kind: kinds[0] ?? "bearer",
        ...(origin !== undefined && { allowedOrigins: [origin] }),
      }}
      onClose={() => setConnecting(false)}
      onDone={(made) => {
        setConnecting(false);
        onChange((made as Schemas["Connection"]).id);
        connections.reload();
      }}
    />
  );
  return { field, dialog };
}
