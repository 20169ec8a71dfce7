import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { PlaceInput } from "./place.tsx";

interface Props {
  readonly subscription: Schemas["Subscription"];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Lets all readers of a subscription begin again from another place. */
export function Rewind({ subscription, onClose, onDone }: Props) {
  const { appId, id, pending } = subscription;
  const [startAt, setStartAt] = useState("earliest");
  const call = { method: "POST", path: `/apps/${appId}/subscriptions/${id}/rewind`, body: { startAt } };
  return (
    <Confirm
      title="Rewind this subscription"
      verb="Rewind"
      call={call}
      onClose={onClose}
      act={async () => {
        const { dropped } = await send<Schemas["RewoundSubscription"]>(call.method, call.path, call);
        toast(`Rewound; ${formatCount(dropped)} that were read and not acknowledged are dropped.`);
        onDone();
      }}
    >
      <PlaceInput value={startAt} onChange={setStartAt} />
      <p>
        Readers get again what stands behind that place.{" "}
        {pending ? `${formatCount(pending)} entries that they have in hand now are dropped.` : ""}
      </p>
    </Confirm>
  );
}
