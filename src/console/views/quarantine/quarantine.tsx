import type { Schemas } from "../../api/client.ts";
import { fillPath } from "../../api/curl.ts";
import { describeReason, REASON_NAMES } from "../../kit/explained/reasons.ts";
import { Workbench, type WorkbenchSpec } from "../../kit/failures/workbench.tsx";
import { APP_COLUMN } from "../../kit/layout/app-column.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { choiceFilter } from "../../kit/list/filters.tsx";
import { TIME_WIDTHS } from "../../kit/list/table.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedCode, UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { ITEM_PANEL } from "./item.tsx";
import { createRedrive } from "./redrive.tsx";

type Item = Schemas["QuarantineRecord"];

const collectionOf = (appId: string): string => fillPath("/apps/{appId}/quarantine", { appId });

const placeOf = ({ definitions, channelUid }: Item): string => definitions.join(", ") || channelUid;

const SPEC: WorkbenchSpec<
  Item,
  Schemas["QuarantinedItem"],
  Pick<Schemas["RedriveResult"], "status" | "events">
> = {
  title: "Quarantine",
  lead: "Deliveries that could not become events. They are stored in full: fix the cause, then redrive them.",
  many: "items",
  empty: {
    title: "Quarantine is empty",
    text: "Items that fail are listed here with the reason and a suggested action.",
  },
  path: "/quarantine",
  pageRows: 200,
  maxRows: 2_000,
  param: "item",
  filters: [
    "channel",
    "type",
    choiceFilter("reason", "Reason", REASON_NAMES),
    { name: "id", label: "Item", kind: "text", placeholder: "item id" },
  ],
  localFilters: {
    type: ({ definitions }, type) => definitions.includes(type),
    id: (item, id) => item.id === id,
  },
  collectionOf: ({ app }) => app && collectionOf(app),
  collectionOfRow: ({ appId }) => collectionOf(appId),
  scopeOf: ({ app: _, channel, ...filters }) => ({ ...filters, ...(channel && { channelId: channel }) }),
  scopeOfGroup: ({ channelUid, reason }) => ({ channelId: channelUid, reason }),
  causeOf: ({ appId, channelUid, reason, definitions }) => [appId, channelUid, reason, ...definitions],
  timesOf: ({ firstAt, lastAt }) => [firstAt, lastAt],
  group: {
    title: (newest) => `${newest.reason} · ${placeOf(newest)}`,
    lead: ({ reason }) => describeReason(reason).suggestedAction,
    fix: ({ appId, channelUid }) => (
      <a
        class="button"
        href={`/console${fillPath("/apps/{appId}/channels/{channelUid}/definitions", { appId, channelUid })}`}
      >
        Fix the definitions
      </a>
    ),
    columns: [
      {
        title: "Reason",
        cell: ({ newest }) => (
          <>
            <Badge tone={newest.reason === "signature_invalid" ? "bad" : "warn"}>{newest.reason}</Badge>{" "}
            <span class="soft in-wide">{describeReason(newest.reason).description}</span>
            <span class="in-narrow">
              <UntrustedText>{placeOf(newest)}</UntrustedText>
            </span>
          </>
        ),
        width: "minmax(0, 3fr)",
      },
      {
        title: "Definition",
        cell: ({ newest: { definitions } }) => definitions.join(", "),
        width: "minmax(0, 2fr)",
        priority: 2,
      },
      APP_COLUMN,
      { title: "Channel", cell: ({ newest }) => newest.channelUid, priority: 2 },
      { title: "Items", cell: ({ rows }) => formatCount(rows.length), align: "end", width: "4rem" },
      {
        title: "Arrivals",
        cell: ({ rows }) => formatCount(rows.reduce((sum, { count }) => sum + count, 0)),
        align: "end",
        width: "5rem",
        priority: 3,
      },
    ],
  },
  columns: [
    {
      title: "Detail",
      width: "minmax(0, 3fr)",
      cell: ({ path, detail }) => (
        <>
          {path !== null && (
            <>
              <UntrustedCode max={100}>{path}</UntrustedCode>{" "}
            </>
          )}
          <UntrustedText max={300}>{detail}</UntrustedText>
        </>
      ),
    },
    { title: "Item", cell: ({ id }) => <code>{id}</code>, priority: 3 },
    { title: "Arrivals", cell: ({ count }) => formatCount(count), align: "end", width: "5rem", priority: 3 },
    { title: "First seen", cell: ({ firstAt }) => <Time at={firstAt} />, ...TIME_WIDTHS, priority: 2 },
    { title: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} as="ago" />, width: "6.5rem" },
  ],
  redrive: {
    verb: (count) => `Redrive ${count}`,
    previewVerb: (count) => `Preview and redrive ${count}`,
    isPossible: ({ reason }) => reason !== "signature_invalid",
    create: createRedrive,
  },
  panel: ITEM_PANEL,
};

/** Page of the quarantined items of all apps, grouped by failure reason. Opening a group lists its items. */
export default function Quarantine() {
  return <Workbench spec={SPEC} />;
}
