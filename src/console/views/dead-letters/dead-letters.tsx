import { useMemo, useState } from "preact/hooks";
import { formatQuery } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { APP_COLUMN, columnsFor } from "../../kit/layout/app-column.tsx";
import { nameOfApp } from "../../kit/layout/apps.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { Badge, Page } from "../../kit/layout/page.tsx";
import { createAppFilter, useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { SelectableTable } from "../../kit/list/selectable-table.tsx";
import { type Column, CountLine, Table, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { LetterPanel } from "./letter.tsx";
import {
  type Group,
  groupsOf,
  type Letter,
  loadLetters,
  MAX_LOADED,
  type Place,
  type Scope,
  type Selection,
  type Target,
} from "./letters.ts";
import { SendDialog } from "./send-dialog.tsx";
import "./dead-letters.css";

interface Running {
  readonly place: Place;
  readonly target: Target;
}

const FILTERS = ["app", "channel", "subscription", "type", "from", "to"] as const;

/** Page of the dead letters of all apps, grouped by subscription, reason and type. Opening a group lists its dead letters. */
export default function DeadLetters() {
  const { values, resolved, set } = useFilters(FILTERS);
  const { query, go, hrefWith } = useAddress();
  const { app: appId, channel, subscription: subscriptionId, ...scope } = resolved;
  const places = useTopicFilters(appId);
  const selection: Selection = {
    ...scope,
    ...(appId && { appId }),
    ...(channel && { channel }),
    ...(subscriptionId && { subscriptionId }),
  };
  const loaded = useLoad((signal) => loadLetters(selection, signal), [JSON.stringify(selection)]);
  const groups = useMemo(() => groupsOf(loaded.data?.letters ?? []), [loaded.data]);
  const chosen = groups.find(({ key }) => key === query.group);
  const [running, setRunning] = useState<Running>();
  const fields: readonly FilterField[] = [
    createAppFilter(),
    places.channel,
    { name: "subscription", label: "Subscription", kind: "text", placeholder: "subscription id" },
    places.type,
    { name: "from", label: "From", kind: "time" },
    { name: "to", label: "To", kind: "time" },
  ];
  const total = loaded.data?.total ?? 0;
  const isWhole = total <= MAX_LOADED;
  // The subscription whose dead letters the page can send again together, because the API sends those of one subscription.
  const only = subscriptionId !== undefined || isWhole ? findOnlyPlace(groups) : undefined;
  const open = loaded.data?.letters.find(({ id }) => id === query.letter);
  const openPlace = open ?? (appId && subscriptionId ? { appId, subscriptionId } : undefined);
  // The API cannot send the dead letters of a channel.
  const all: Target | undefined = channel === undefined ? { is: "scope", scope } : undefined;
  return (
    <Page
      title={chosen ? `${chosen.reason} · ${chosen.type}` : "Dead letters"}
      crumbs={
        chosen ? [{ title: "Dead letters", href: hrefWith({ group: undefined, letter: undefined }) }] : []
      }
      lead={
        chosen ? (
          <>
            App {nameOfApp(chosen.appId)}, subscription{" "}
            <a href={subscriptionHref(chosen)}>
              <code>{chosen.subscriptionId}</code>
            </a>
          </>
        ) : (
          "Events that the handler of a subscription rejected in all attempts."
        )
      }
      actions={
        hasPermission("apps.write") &&
        (chosen ? (
          <Button
            onClick={() =>
              setRunning({
                place: placeOf(chosen),
                target: targetOf(chosen, groups, all && isWhole ? scope : undefined),
              })
            }
          >
            Preview and send {formatCount(chosen.letters.length)} again
          </Button>
        ) : (
          only &&
          all && (
            <Button onClick={() => setRunning({ place: only, target: all })}>
              Preview and send all again
            </Button>
          )
        ))
      }
    >
      <FilterBar fields={fields} values={values} onChange={set} />
      <div class="split">
        <div class="stack">
          <WhenLoaded loaded={loaded}>
            {({ letters }) =>
              letters.length === 0 ? (
                <Empty
                  title={
                    Object.keys(values).length > 0 ? "No dead letters match the filters" : "No dead letters"
                  }
                >
                  Events that a handler rejects for a day are listed here.
                </Empty>
              ) : query.group !== undefined && chosen === undefined ? (
                <Empty title="This group is empty">
                  <a href={hrefWith({ group: undefined, letter: undefined })}>All groups</a>
                </Empty>
              ) : chosen ? (
                <Letters
                  key={chosen.key}
                  group={chosen}
                  onSend={(target) => setRunning({ place: placeOf(chosen), target })}
                />
              ) : (
                <>
                  <Table
                    label="Groups"
                    columns={columnsFor(GROUP_COLUMNS, values.app)}
                    rows={groups}
                    keyOf={({ key }) => key}
                    onOpen={({ key }) => go({ group: key })}
                    maxRows={Math.min(14, groups.length)}
                  />
                  <CountLine
                    count={total}
                    of={isWhole ? "dead letters" : `dead letters; the groups show the newest ${MAX_LOADED}`}
                  />
                </>
              )
            }
          </WhenLoaded>
        </div>
        {query.letter !== undefined && openPlace !== undefined && (
          <LetterPanel
            key={query.letter}
            place={placeOf(openPlace)}
            letterId={query.letter}
            onClose={() => go({ letter: undefined })}
            onGone={loaded.reload}
          />
        )}
      </div>
      <ApiCall call={{ method: "GET", path: `/dead-letters${formatQuery({ ...selection, limit: 100 })}` }} />
      {running && <SendDialog {...running} onClose={() => setRunning(undefined)} onDone={loaded.reload} />}
    </Page>
  );
}

const placeOf = ({ appId, subscriptionId }: Place): Place => ({ appId, subscriptionId });

const subscriptionHref = ({ appId, subscriptionId }: Place): string =>
  `/console/apps/${encodeURIComponent(appId)}/subscriptions${formatQuery({ subscription: subscriptionId })}`;

/** Returns the subscription of all groups, or `undefined` if they belong to several subscriptions. */
function findOnlyPlace(groups: readonly Group[]): Place | undefined {
  const [first] = groups;
  const isOnly = groups.every(({ subscriptionId }) => subscriptionId === first?.subscriptionId);
  return first && isOnly ? placeOf(first) : undefined;
}

/** Selects a group by `scope` and its type if no other dead letters have this type. Otherwise, selects the group's dead letters by id, oldest first. */
function targetOf(group: Group, groups: readonly Group[], scope: Scope | undefined): Target {
  const isSame = ({ subscriptionId, type }: Group): boolean =>
    subscriptionId === group.subscriptionId && type === group.type;
  return scope && groups.filter(isSame).length === 1
    ? { is: "scope", scope: { ...scope, type: group.type } }
    : { is: "letters", ids: group.letters.map(({ id }) => id).reverse() };
}

const GROUP_COLUMNS: readonly Column<Group>[] = [
  {
    title: "Reason",
    cell: ({ reason }) => (
      <Badge tone="bad">
        <UntrustedText max={60}>{reason}</UntrustedText>
      </Badge>
    ),
    width: "minmax(0, 2fr)",
  },
  { title: "Type", cell: ({ type }) => <UntrustedText>{type}</UntrustedText>, width: "minmax(0, 2fr)" },
  APP_COLUMN,
  { title: "Subscription", cell: ({ subscriptionId }) => <code>{subscriptionId}</code>, priority: 3 },
  { title: "Events", cell: ({ letters }) => formatCount(letters.length), align: "end", width: "4rem" },
  { title: "First seen", cell: ({ firstAt }) => <Time at={firstAt} />, ...TIME_WIDTHS, priority: 3 },
  { title: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} as="ago" />, width: "6rem", priority: 2 },
  { title: "Open", hidesTitle: true, cell: () => <Icon name="right" />, width: "16px", priority: 2 },
];

interface LettersProps {
  readonly group: Group;
  readonly onSend: (target: Target) => void;
}

function Letters({ group, onSend }: LettersProps) {
  const { query, go } = useAddress();
  return (
    <SelectableTable
      label="Dead letters"
      columns={LETTER_COLUMNS}
      rows={group.letters}
      isSelectable={hasPermission("apps.write")}
      verb={(count) => `Send ${count === 0 ? "selected" : formatCount(count)} again`}
      onRun={(chosen) => onSend({ is: "letters", ids: chosen.map(({ id }) => id).reverse() })}
      onOpen={({ id }) => go({ letter: id })}
      openKey={query.letter}
    />
  );
}

const LETTER_COLUMNS: readonly Column<Letter>[] = [
  {
    title: "Event",
    cell: ({ event }) => <UntrustedText max={128}>{event.id}</UntrustedText>,
    width: "minmax(0, 2fr)",
  },
  { title: "Entry", cell: ({ entryId }) => <code>{entryId}</code>, priority: 2, width: "minmax(0, 1fr)" },
  {
    title: "Attempts",
    cell: ({ attempts }) => formatCount(attempts.length),
    align: "end",
    width: "5rem",
  },
  { title: "Given up", cell: ({ createdAt }) => <Time at={createdAt} />, ...TIME_WIDTHS },
];
