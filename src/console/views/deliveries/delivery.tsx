import type { Schemas } from "../../api/client.ts";
import { fillPath, formatQuery } from "../../api/curl.ts";
import { useGet } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Badge, Facts, type NamedFacts, Page } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { decodeBase64 } from "../../kit/text/base64.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { formatBytes, formatDuration } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { RequestParts } from "../../kit/text/request.tsx";
import { Time } from "../../kit/text/time.tsx";
import { DeliveryActions } from "./delivery-actions.tsx";
import { PathResults } from "./path-results.tsx";
import { STATUSES } from "./statuses.ts";
import { Steps } from "./steps.tsx";
import "./delivery.css";

type Whole = Schemas["WholeDelivery"];

interface Props {
  readonly appId: string;
  readonly deliveryId: string;
}

export default function DeliveryPage({ appId, deliveryId }: Props) {
  const path = { appId, deliveryId };
  const loaded = useGet("/apps/{appId}/deliveries/{deliveryId}", { path });
  const readings = useGet(
    "/apps/{appId}/deliveries/{deliveryId}/readings",
    { path },
    { everyMs: READINGS_EVERY_MS },
  );
  const list = `/console/deliveries${formatQuery({ app: appId })}`;
  const status = loaded.data?.status;
  return (
    <Page
      title={loaded.data === undefined ? "Delivery" : `Delivery to ${loaded.data.channelUid}`}
      crumbs={[{ title: "Deliveries", href: list }]}
      badges={status && <Badge tone={STATUSES[status].tone}>{status}</Badge>}
      lead={status && STATUSES[status].words}
      actions={
        loaded.data && <DeliveryActions appId={appId} delivery={loaded.data} onRedriven={readings.reload} />
      }
    >
      <WhenLoaded loaded={loaded} lines={12}>
        {(delivery) => (
          <>
            <div class="delivery">
              <Steps appId={appId} delivery={delivery} readings={readings} />
              <div class="stack">
                <Facts facts={factsOf(delivery)} />
                <RequestParts
                  body={<Body delivery={delivery} />}
                  headers={delivery.headers}
                  query={delivery.query}
                />
              </div>
            </div>
            <PathResults delivery={delivery} />
          </>
        )}
      </WhenLoaded>
      <ApiCall
        call={{
          method: "GET",
          path: fillPath("/apps/{appId}/deliveries/{deliveryId}", { appId, deliveryId }),
        }}
      />
    </Page>
  );
}

const READINGS_EVERY_MS = 5_000;

const factsOf = (delivery: Whole): NamedFacts => ({
  Channel: delivery.channelUid,
  Received: <Time at={delivery.receivedAt} as="full" />,
  Request:
    delivery.requestId === null ? (
      <span class="faint">fetched by the gateway</span>
    ) : (
      <Copyable text={delivery.requestId} what="request id" />
    ),
  Delivery: <Copyable text={delivery.id} what="delivery id" />,
  ...(delivery.traceId !== null && {
    Trace: (
      <>
        <Copyable text={delivery.traceId} what="trace id" />{" "}
        {delivery.traceUrl !== null && (
          <a href={delivery.traceUrl} target="_blank" rel="noreferrer">
            Open trace
          </a>
        )}
      </>
    ),
  }),
  Method: delivery.method,
  From: delivery.clientAddress,
  Response: delivery.httpStatus ?? "–",
  Duration: formatDuration(delivery.durationMs),
});

function Body({ delivery: { id, bodyBase64, bodyBytes } }: { readonly delivery: Whole }) {
  if (bodyBase64 === null) {
    return (
      <p class="faint">
        {bodyBytes === null
          ? "Bodies of rejected deliveries are not stored."
          : `${formatBytes(bodyBytes)}: too large to store with the record.`}
      </p>
    );
  }
  return <Payload content={decodeBase64(bodyBase64)} label="the body" fileName={`${id}.txt`} />;
}
