import type { Schemas } from "../../api/client.ts";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import { Facts } from "../../kit/layout/page.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

interface Props {
  readonly appId: string;
  readonly reconcile: NonNullable<Schemas["Source"]["reconcile"]>;
}

/** Shows the last comparison of a source with the webhook channel whose missed events it publishes. */
export function Reconcile({ appId, reconcile: { channelUid, last, missed } }: Props) {
  const quarantine = { channel: channelUid, reason: "window_passed" };
  return (
    <>
      {missed !== null && (
        <p class="note">
          The channel <UntrustedText>{channelUid}</UntrustedText> missed {formatCount(missed.count)}{" "}
          deliveries from <Time at={missed.oldest} /> to <Time at={missed.newest} />.
        </p>
      )}
      <Facts
        facts={{
          "Finds missed events of": channelUid,
          "Last comparison": last === null ? "not done yet" : <Time at={last.at} as="ago" />,
          ...(last !== null && {
            Compared: formatCount(last.items),
            Known: formatCount(last.known),
            Recovered: formatCount(last.recovered),
            "Too old to publish": (
              <MaybeLink href={viewHref("/quarantine", {}, { app: appId, ...quarantine })}>
                {formatCount(last.listed)}
              </MaybeLink>
            ),
            "In quarantine": formatCount(last.failed),
          }),
        }}
      />
    </>
  );
}
