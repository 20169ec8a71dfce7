import type { Schemas } from "../../api/client.ts";
import { ConfirmButton } from "../../kit/feedback/buttons.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { formatCount } from "../../kit/text/numbers.ts";

interface Props {
  readonly path: string;
  readonly onDone: () => void;
}

/** Button that publishes the items which a source has only listed, because they are older than the dedupe window. */
export function Recover({ path, onDone }: Props) {
  return (
    <ConfirmButton<readonly Schemas["RedriveResult"][]>
      label="Publish listed items"
      title="Publish the listed items?"
      verb="Publish"
      call={{ method: "POST", path: `${path}/source/recover`, body: {} }}
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
    </ConfirmButton>
  );
}
