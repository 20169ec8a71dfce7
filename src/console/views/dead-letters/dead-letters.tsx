import type { Schemas } from "../../api/client.ts";
import { fillPath, formatQuery } from "../../api/curl.ts";
import { Workbench, type WorkbenchSpec } from "../../kit/failures/workbench.tsx";
import { APP_COLUMN } from "../../kit/layout/app-column.tsx";
import { nameOfApp } from "../../kit/layout/apps.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { TIME_WIDTHS } from "../../kit/list/table.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { LETTER_PANEL } from "./letter.tsx";
import { createSending } from "./send-again.tsx";

type Letter = Schemas["ListedDeadLetter"];

const collectionOf = (appId: string, subscriptionId: string): string =>
  fillPath("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters", { appId, subscriptionId });

const SPEC: WorkbenchSpec<Letter, Schemas["DeadLetter"], unknown> = {
  title: "Dead letters",
  lead: "Events that the handler of a subscription rejected in all attempts.",
  many: "dead letters",
  empty: { title: "No dead letters", text: "Events that a handler rejects for a day are listed here." },
  path: "/dead-letters",
  pageRows: 100,
  // The limit is low, because each dead letter contains its whole event.
  maxRows: 500,
  param: "letter",
  filters: [
    "channel",
    { name: "subscription", label: "Subscription", kind: "text", placeholder: "subscription id" },
    "type",
  ],
  collectionOf: ({ subscription, app }, newest) => {
    const appId = app ?? newest?.appId;
    return appId && subscription && collectionOf(appId, subscription);
  },
  collectionOfRow: ({ appId, subscriptionId }) => collectionOf(appId, subscriptionId),
  scopeOf: ({ app: _, subscription: __, channel, ...filters }) =>
    channel === undefined ? filters : undefined,
  scopeOfGroup: ({ type }) => ({ type }),
  causeOf: ({ subscriptionId, reason, type }) => [subscriptionId, reason, type],
  timesOf: ({ createdAt }) => [createdAt, createdAt],
  group: {
    title: ({ reason, type }) => `${reason} · ${type}`,
    lead: ({ appId, subscriptionId }) => (
      <>
        App {nameOfApp(appId)}, subscription{" "}
        <a
          href={`/console/apps/${encodeURIComponent(appId)}/subscriptions${formatQuery({ subscription: subscriptionId })}`}
        >
          <code>{subscriptionId}</code>
        </a>
      </>
    ),
    columns: [
      {
        title: "Reason",
        cell: ({ newest }) => (
          <Badge tone="bad">
            <UntrustedText max={60}>{newest.reason}</UntrustedText>
          </Badge>
        ),
        width: "minmax(0, 2fr)",
      },
      { title: "Type", cell: ({ newest }) => newest.type, width: "minmax(0, 2fr)" },
      APP_COLUMN,
      { title: "Subscription", cell: ({ newest }) => <code>{newest.subscriptionId}</code>, priority: 3 },
      { title: "Events", cell: ({ rows }) => formatCount(rows.length), align: "end", width: "4rem" },
    ],
  },
  columns: [
    { title: "Event", cell: ({ event }) => event.id, width: "minmax(0, 2fr)" },
    { title: "Entry", cell: ({ entryId }) => <code>{entryId}</code>, priority: 2 },
    { title: "Attempts", cell: ({ attempts }) => formatCount(attempts.length), align: "end", width: "5rem" },
    { title: "Given up", cell: ({ createdAt }) => <Time at={createdAt} />, ...TIME_WIDTHS },
  ],
  redrive: {
    verb: (count) => `Send ${count} again`,
    previewVerb: (count) => `Preview and send ${count} again`,
    create: createSending,
  },
  panel: LETTER_PANEL,
};

/** Page of the dead letters of all apps, grouped by subscription, reason and type. Opening a group lists its dead letters. */
export default function DeadLetters() {
  return <Workbench spec={SPEC} />;
}
