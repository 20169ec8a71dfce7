import { useState } from "preact/hooks";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { hasPermission } from "../../session/session.ts";

interface Props {
  readonly appId: string;
  readonly name: string;
  readonly onDone: () => void;
}

/** Button that upgrades an app to the current version of its blueprint. */
export function Upgrade({ appId, name, onDone }: Props) {
  const [isAsking, setAsking] = useState(false);
  if (!hasPermission("apps.write")) return null;
  return (
    <>
      <Button onClick={() => setAsking(true)}>Upgrade</Button>
      {isAsking && (
        <Confirm
          title={`Upgrade ${name}?`}
          verb="Upgrade"
          call={{ method: "POST", path: `/apps/${appId}/upgrade`, body: {} }}
          onDone={() => {
            toast(`Upgraded: ${name}`);
            onDone();
          }}
          onClose={() => setAsking(false)}
        >
          <p>
            Its channels are updated from the blueprint. Channels with the same uid keep their ids and
            addresses. Channels that the blueprint no longer has are deleted.
          </p>
        </Confirm>
      )}
    </>
  );
}
