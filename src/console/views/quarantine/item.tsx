import type { Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { ExplainedItems, Failure } from "../../kit/explained/explained-items.tsx";
import type { PanelSpec } from "../../kit/failures/failure-panel.tsx";
import { Section } from "../../kit/layout/page.tsx";
import { decodeBase64 } from "../../kit/text/base64.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { RequestParts } from "../../kit/text/request.tsx";
import { Time } from "../../kit/text/time.tsx";
import { hasPermission } from "../../session/session.ts";

type Item = Schemas["QuarantinedItem"];
type Stored = Pick<Item, "id" | "body" | "bodyEncoding" | "headers" | "query">;

/** The request of an item in a quarantine. */
export const StoredRequest = ({
  item: { id, body, bodyEncoding, headers, query },
}: {
  readonly item: Stored;
}) => (
  <RequestParts
    body={
      <Payload
        content={bodyEncoding === "base64" ? decodeBase64(body) : body}
        label="the body"
        fileName={`${id}.txt`}
      />
    }
    headers={headers}
    query={query}
  />
);

/** Facts of an item in any quarantine. */
export const arrivalsOf = ({ firstAt, lastAt, count }: Pick<Item, "firstAt" | "lastAt" | "count">) => ({
  "First seen": <Time at={firstAt} as="full" />,
  "Last seen": <Time at={lastAt} as="full" />,
  Arrivals: formatCount(count),
});

export const ITEM_PANEL: PanelSpec<Item, Pick<Schemas["RedriveResult"], "status" | "events">> = {
  one: "item",
  title: "Quarantined item",
  permission: "apps.write",
  reason: ({ reason, path, detail }) => <Failure reason={reason} path={path} detail={detail} />,
  links: ({ appId, id }) =>
    hasPermission("deliveries.read") && (
      <a class="button" href={`/console/deliveries${formatQuery({ app: appId, item: id })}`}>
        Open the delivery
      </a>
    ),
  redrives: ({ reason }) =>
    reason === "signature_invalid"
      ? []
      : [
          { verb: "Redrive", body: {} },
          ...(reason === "id_conflict" ? [{ verb: "Redrive as a new event", body: { asNewId: true } }] : []),
        ],
  resultOf: ({ status, events }) =>
    status === "released"
      ? { isGone: true, text: `Released: ${events.length === 1 ? "one event" : `${events.length} events`}` }
      : { isGone: false, text: "The item failed again and stays in quarantine." },
  removal:
    "This permanently deletes each item, its delivery, and the records of deliveries that contained it.",
  facts: (item) => ({
    Item: <Copyable text={item.id} what="item id" />,
    Channel: item.channelUid,
    Definitions: item.definitions.join(", ") || <span class="faint">all current definitions</span>,
    ...arrivalsOf(item),
    "Signed id": item.deliveryId ?? false,
  }),
  more: (item) => (
    <>
      <Section title="With the current definitions">
        {item.explanation.length === 0 ? (
          <p class="faint">This item cannot be redriven, or its channel was deleted.</p>
        ) : (
          <ExplainedItems items={item.explanation} />
        )}
      </Section>
      <StoredRequest item={item} />
    </>
  ),
};
