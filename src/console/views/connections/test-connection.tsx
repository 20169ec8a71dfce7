import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { DialogButton } from "../../kit/feedback/buttons.tsx";
import { ResourceForm } from "../../kit/resource/resource-form.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

interface Props {
  readonly connection: Schemas["Connection"];
  readonly onDone: () => void;
}

/** Dialog that sends a test request with the connection's credentials and shows the result. */
export function TestConnection({ connection: { id, name, allowedOrigins }, onDone }: Props) {
  const [result, setResult] = useState<Schemas["ConnectionTest"]>();
  if (!hasPermission("connections.write")) return null;
  return (
    <>
      <DialogButton label="Test">
        {(onClose) => (
          <ResourceForm
            title={`Test ${name}`}
            method="post"
            operation="/connections/{connectionId}/test"
            path={`/connections/${id}/test`}
            verb="Test"
            start={allowedOrigins[0] === undefined ? {} : { url: allowedOrigins[0] }}
            onClose={onClose}
            onDone={(answer) => {
              onClose();
              setResult(answer as Schemas["ConnectionTest"]);
              onDone();
            }}
          />
        )}
      </DialogButton>
      {result && (
        <div class={result.ok ? "note ok" : "note bad"} role="status">
          {result.ok ? "The connection works" : "The connection does not work"}
          {result.status !== null && `: the server responded with status ${result.status}`}
          {result.code !== null && <code>{result.code}</code>}
          {result.message !== null && <UntrustedText>{result.message}</UntrustedText>}
        </div>
      )}
    </>
  );
}
