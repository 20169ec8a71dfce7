import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { PlaceInput } from "./place.tsx";

interface Props {
  readonly subscription: Schemas["Subscription"];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Dialog that moves a subscription to another position, for all of its readers. */
export function Rewind({ subscription, onClose, onDone }: Props) {
  const { appId, id, pending } = subscription;
  const [startAt, setStartAt] = useState("earliest");
  return (
    <Confirm<Schemas["RewoundSubscription"]>
      title="Rewind this subscription"
      verb="Rewind"
      call={{ method: "POST", path: `/apps/${appId}/subscriptions/${id}/rewind`, body: { startAt } }}
      onClose={onClose}
      onDone={({ dropped }) => {
        toast(`Rewound. Dropped ${formatCount(dropped)} pending entries.`);
        onDone();
      }}
    >
      <PlaceInput value={startAt} onChange={setStartAt} />
      <p>
        Readers receive all events after this position again.{" "}
        {pending ? `${formatCount(pending)} pending entries are dropped.` : ""}
      </p>
    </Confirm>
  );
}
