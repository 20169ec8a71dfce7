import type { Schemas } from "../../api/client.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { formatCount } from "../../kit/text/numbers.ts";

interface Props {
  readonly path: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Dialog that publishes the items which a source has only listed, because they are older than the dedupe window. */
export function Recover({ path, onClose, onDone }: Props) {
  return (
    <Confirm<readonly Schemas["RedriveResult"][]>
      title="Publish the listed items?"
      verb="Publish"
      call={{ method: "POST", path: `${path}/source/recover`, body: {} }}
      onClose={onClose}
      onDone={(results) => {
        const published = results.filter(({ status }) => status === "released").length;
        toast(`Published ${formatCount(published)} of ${formatCount(results.length)} items.`);
        onDone();
      }}
    >
      <p>
        These items are older than the dedupe window of the webhook channel, so your readers may have their
        events already. Publishes the oldest 200 of them.
      </p>
    </Confirm>
  );
}
