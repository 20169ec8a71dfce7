import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { may } from "../../session/session.ts";

interface Props {
  readonly appId: string;
  readonly name: string;
  readonly onDone: () => void;
}

/** Brings an app to the present state of its blueprint. */
export function Upgrade({ appId, name, onDone }: Props) {
  const [isAsking, setAsking] = useState(false);
  if (!may("apps.write")) return null;
  const path = `/apps/${appId}/upgrade`;
  return (
    <>
      <button type="button" class="button" onClick={() => setAsking(true)}>
        Upgrade
      </button>
      {isAsking && (
        <Confirm
          title={`Upgrade ${name}?`}
          verb="Upgrade"
          call={{ method: "POST", path, body: {} }}
          act={async () => {
            await send("POST", path, { body: {} });
            toast(`Upgraded: ${name}`);
            onDone();
          }}
          onClose={() => setAsking(false)}
        >
          <p>
            Its channels become what its blueprint says now. Channels of the same name keep their ids and
            addresses; those that the blueprint has no more are deleted.
          </p>
        </Confirm>
      )}
    </>
  );
}
