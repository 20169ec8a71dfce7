import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { ExplainedItems, Failure } from "../../kit/explained/explained-items.tsx";
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
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";

type Item = Schemas["QuarantinedItem"];

interface Props {
  readonly appId: string;
  readonly itemId: string;
  readonly onClose: () => void;
  /** Called when the item was removed from quarantine, or its failure reason has changed. */
  readonly onChanged: () => void;
}

export function ItemPanel({ appId, itemId, onClose, onChanged }: Props) {
  const loaded = useLoad<Item>(
    (signal) => api.get("/apps/{appId}/quarantine/{itemId}", { path: { appId, itemId }, signal }),
    [appId, itemId],
  );
  return (
    <DetailPanel title="Quarantined item" onClose={onClose}>
      <WhenLoaded loaded={loaded} lines={8}>
        {(item) => (
          <>
            <Failure reason={item.reason} path={item.path} detail={item.detail} />
            {hasPermission("deliveries.read") && (
              <p class="row">
                <a href={`/console/deliveries${formatQuery({ app: appId, item: item.id })}`}>
                  Open the delivery
                </a>
              </p>
            )}
            {hasPermission("apps.write") && (
              <Actions appId={appId} item={item} onClose={onClose} onChanged={onChanged} />
            )}
            <Facts
              facts={{
                Item: <Copyable text={item.id} what="item id" />,
                Channel: <UntrustedText>{item.channelUid}</UntrustedText>,
                Definitions:
                  item.definitions.length === 0 ? (
                    <span class="faint">all current definitions</span>
                  ) : (
                    <UntrustedText>{item.definitions.join(", ")}</UntrustedText>
                  ),
                "First seen": <Time at={item.firstAt} as="full" />,
                "Last seen": <Time at={item.lastAt} as="full" />,
                Arrivals: formatCount(item.count),
                "Signed id": item.deliveryId !== null && <UntrustedText>{item.deliveryId}</UntrustedText>,
              }}
            />
            <Section title="With the current definitions">
              {item.explanation.length === 0 ? (
                <p class="faint">This item cannot be redriven, or its channel was deleted.</p>
              ) : (
                <ExplainedItems items={item.explanation} />
              )}
            </Section>
            <Section title="Body">
              <Payload
                content={item.bodyEncoding === "base64" ? decodeBase64(item.body) : item.body}
                label="the body"
                fileName={`${item.id}.txt`}
              />
            </Section>
            <Section title="Headers">
              <Headers values={item.headers} label="Headers" />
            </Section>
            {Object.keys(item.query).length > 0 && (
              <Section title="Query">
                <Headers values={item.query} label="Query" />
              </Section>
            )}
            <ApiCall call={{ method: "GET", path: pathOf(appId, item.id) }} />
          </>
        )}
      </WhenLoaded>
    </DetailPanel>
  );
}

const pathOf = (appId: string, itemId: string): string =>
  `/apps/${encodeURIComponent(appId)}/quarantine/${encodeURIComponent(itemId)}`;

interface ActionsProps extends Pick<Props, "appId" | "onClose" | "onChanged"> {
  readonly item: Item;
}

function Actions({ appId, item, onClose, onChanged }: ActionsProps) {
  const [isDeleting, setDeleting] = useState(false);
  const redrive = useAction(async (asNewId: boolean) => {
    const { status, events } = await api.post("/apps/{appId}/quarantine/{itemId}/redrive", {
      path: { appId, itemId: item.id },
      body: { asNewId },
    });
    if (status === "released") {
      toast(`Released: ${events.length === 1 ? "one event" : `${events.length} events`}`);
      onClose();
    } else toast("The item failed again and stays in quarantine.", "bad");
    onChanged();
  });
  const canRun = item.reason !== "signature_invalid";
  const isConflict = item.reason === "id_conflict";
  return (
    <div class="stack">
      <div class="row wrap">
        {canRun && (
          <Button
            look={isConflict ? undefined : "primary"}
            disabled={redrive.isRunning}
            onClick={() => void redrive.run(false)}
          >
            Redrive
          </Button>
        )}
        {isConflict && (
          <Button look="primary" disabled={redrive.isRunning} onClick={() => void redrive.run(true)}>
            Redrive as a new event
          </Button>
        )}
        <Button look="delete" onClick={() => setDeleting(true)}>
          Delete
        </Button>
      </div>
      {redrive.error && <ErrorNote error={redrive.error} />}
      {canRun && (
        <ApiCall
          label="API call to redrive the item"
          call={{
            method: "POST",
            path: `${pathOf(appId, item.id)}/redrive`,
            body: isConflict ? { asNewId: true } : {},
          }}
        />
      )}
      {isDeleting && (
        <Confirm
          title="Delete the item"
          verb="Delete"
          danger
          call={{ method: "DELETE", path: pathOf(appId, item.id) }}
          onDone={() => {
            toast("Deleted");
            onClose();
            onChanged();
          }}
          onClose={() => setDeleting(false)}
        >
          <p>
            This permanently deletes the item, its delivery, and the records of deliveries that contained it.
          </p>
        </Confirm>
      )}
    </div>
  );
}
