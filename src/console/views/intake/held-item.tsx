import { useState } from "preact/hooks";
import { toApiError } from "../../api/api-error.ts";
import { api, type Schemas } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Failure } from "../../kit/explained/explained-items.tsx";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { ErrorNote, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Facts, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { decodeBase64 } from "../../kit/text/base64.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { Headers } from "../../kit/text/headers.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { hasPermission } from "../../session/session.ts";

type Held = Schemas["HeldRecord"];
type HeldDelivery = Schemas["HeldItem"];

const CONFLICT = 409;
/** Reasons of items that the API does not redrive. */
const NOT_REDRIVEN: ReadonlySet<Held["reason"]> = new Set(["signature_invalid", "paused"]);

export const canRedrive = (reason: Held["reason"]): boolean => !NOT_REDRIVEN.has(reason);

interface Props {
  readonly blueprintId: string;
  readonly held: Held;
  readonly onClose: () => void;
  /** Called when the item was deleted or redriven. */
  readonly onChanged: () => void;
}

export function HeldItemPanel({ blueprintId, held, onClose, onChanged }: Props) {
  const { id, reason, detail, firstAt, lastAt, count } = held;
  const loaded = useLoad(
    async (signal): Promise<{ readonly delivery: HeldDelivery | undefined }> => {
      const path = { blueprintId, itemId: id };
      try {
        return {
          delivery: await api.get("/blueprints/{blueprintId}/quarantine/{itemId}", { path, signal }),
        };
      } catch (error) {
        // The delivery may belong to an install, so the blueprint's owner cannot read it.
        if (toApiError(error).status === CONFLICT) return { delivery: undefined };
        throw error;
      }
    },
    [blueprintId, id],
  );
  return (
    <DetailPanel title="Held item" onClose={onClose}>
      <Failure reason={reason} path={null} detail={detail} />
      {hasPermission("blueprints.write") && (
        <Actions blueprintId={blueprintId} held={held} onClose={onClose} onChanged={onChanged} />
      )}
      <Facts
        facts={{
          Item: <Copyable text={id} what="item id" />,
          "First seen": <Time at={firstAt} as="full" />,
          "Last seen": <Time at={lastAt} as="full" />,
          Arrivals: formatCount(count),
        }}
      />
      <WhenLoaded loaded={loaded} lines={6}>
        {({ delivery }) =>
          delivery === undefined ? (
            <p class="faint">The delivery may belong to an install, so you cannot read it.</p>
          ) : (
            <Delivery delivery={delivery} />
          )
        }
      </WhenLoaded>
      <ApiCall call={{ method: "GET", path: pathOf(blueprintId, id) }} />
    </DetailPanel>
  );
}

const pathOf = (blueprintId: string, itemId: string): string =>
  `/blueprints/${encodeURIComponent(blueprintId)}/quarantine/${encodeURIComponent(itemId)}`;

function Delivery({ delivery }: { readonly delivery: HeldDelivery }) {
  const { id, body, bodyEncoding, headers, query } = delivery;
  return (
    <>
      <Section title="Body">
        <Payload
          content={bodyEncoding === "base64" ? decodeBase64(body) : body}
          label="the body"
          fileName={`${id}.txt`}
        />
      </Section>
      <Section title="Headers">
        <Headers values={headers} label="Headers" />
      </Section>
      {Object.keys(query).length > 0 && (
        <Section title="Query">
          <Headers values={query} label="Query" />
        </Section>
      )}
    </>
  );
}

function Actions({ blueprintId, held, onClose, onChanged }: Props) {
  const { id, reason } = held;
  const [isDeleting, setDeleting] = useState(false);
  const redrive = useAction(async () => {
    const { status } = await api.post("/blueprints/{blueprintId}/quarantine/{itemId}/redrive", {
      path: { blueprintId, itemId: id },
      body: {},
    });
    if (status === "released") {
      toast("Routed. Inlet publishes the item in order.");
      onClose();
    } else toast("No install has the route key of the item, so it is still held.", "bad");
    onChanged();
  });
  return (
    <div class="stack">
      <div class="row wrap">
        {canRedrive(reason) && (
          <Button look="primary" disabled={redrive.isRunning} onClick={() => void redrive.run()}>
            Redrive
          </Button>
        )}
        <Button look="delete" onClick={() => setDeleting(true)}>
          Delete
        </Button>
      </div>
      {redrive.error && <ErrorNote error={redrive.error} />}
      {canRedrive(reason) && (
        <ApiCall
          label="API call to redrive the item"
          call={{ method: "POST", path: `${pathOf(blueprintId, id)}/redrive`, body: {} }}
        />
      )}
      {isDeleting && (
        <Confirm
          title="Delete the item"
          verb="Delete"
          danger
          call={{ method: "DELETE", path: pathOf(blueprintId, id) }}
          onDone={() => {
            toast("Deleted");
            onClose();
            onChanged();
          }}
          onClose={() => setDeleting(false)}
        >
          <p>This permanently deletes the item with its delivery. No install will receive it.</p>
        </Confirm>
      )}
    </div>
  );
}
