import { useMemo, useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { Badge, Page } from "../../kit/layout/page.tsx";
import { useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { SelectableTable } from "../../kit/list/selectable-table.tsx";
import { type Column, CountLine, Table, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { SUBSCRIPTION_TONES } from "../../kit/text/tones.ts";
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
  pathOf,
  type Scope,
  type Target,
} from "./letters.ts";
import { SendDialog } from "./send-dialog.tsx";
import "./dead-letters.css";

type Subscription = Schemas["Subscription"];

/** Page of dead letters. The user selects a subscription, then a group with the same reason and type, then single dead letters. */
export default function DeadLetters({ appId }: { readonly appId: string }) {
  const { query } = useAddress();
  const { subscription } = query;
  return subscription === undefined ? (
    <Subscriptions appId={appId} />
  ) : (
    <OfSubscription key={subscription} place={{ appId, subscriptionId: subscription }} />
  );
}

const MAX_SUBSCRIPTIONS = 200;

function Subscriptions({ appId }: { readonly appId: string }) {
  const { go } = useAddress();
  const loaded = useLoad(
    (signal) =>
      api.list("/apps/{appId}/subscriptions", {
        path: { appId },
        query: { limit: MAX_SUBSCRIPTIONS },
        signal,
      }),
    [appId],
  );
  return (
    <Page
      title="Dead letters"
      lead="Events that a subscription's handler rejected in all attempts, or that its readers set aside."
    >
      <WhenLoaded loaded={loaded}>
        {({ rows, total }) => {
          const shown = rows.filter(({ deadLetters }) => deadLetters !== 0);
          return shown.length === 0 ? (
            <Empty title="No dead letters">
              {total === 0
                ? "The app has no subscriptions yet. Events that their handlers reject will be listed here."
                : "All handlers accept their events. Events rejected for a day are listed here."}
            </Empty>
          ) : (
            <Table
              label="Subscriptions"
              columns={SUBSCRIPTION_COLUMNS}
              rows={shown}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go({ subscription: id })}
              maxRows={Math.min(14, shown.length)}
            />
          );
        }}
      </WhenLoaded>
      <ApiCall
        call={{
          method: "GET",
          path: `/apps/${encodeURIComponent(appId)}/subscriptions${formatQuery({ limit: MAX_SUBSCRIPTIONS })}`,
        }}
      />
    </Page>
  );
}

const SUBSCRIPTION_COLUMNS: readonly Column<Subscription>[] = [
  {
    title: "Subscription",
    cell: ({ eventUid }) => <UntrustedText>{eventUid}</UntrustedText>,
    width: "minmax(0, 2fr)",
  },
  {
    title: "Handler",
    cell: ({ handler }) =>
      handler === null ? <span class="faint">readers</span> : <UntrustedText>{handler.url}</UntrustedText>,
    width: "minmax(0, 2fr)",
    priority: 2,
  },
  {
    title: "Last error",
    cell: ({ lastError }) =>
      lastError === null ? <span class="faint">–</span> : <UntrustedText>{lastError.message}</UntrustedText>,
    width: "minmax(0, 3fr)",
    priority: 3,
  },
  {
    title: "State",
    cell: ({ state }) => <Badge tone={SUBSCRIPTION_TONES[state]}>{state}</Badge>,
    width: "5rem",
    priority: 2,
  },
  {
    title: "Dead letters",
    cell: ({ deadLetters }) => (deadLetters === null ? "?" : formatCount(deadLetters)),
    align: "end",
    width: "6rem",
  },
  { title: "Open", hidesTitle: true, cell: () => <Icon name="right" />, width: "16px", priority: 2 },
];

const FILTERS = ["type", "from", "to"] as const;

function OfSubscription({ place }: { readonly place: Place }) {
  const { values, set } = useFilters(FILTERS);
  const { query, go, hrefWith } = useAddress();
  const places = useTopicFilters(place.appId);
  const scope: Scope = values;
  const subscription = useLoad(
    (signal) => api.get("/apps/{appId}/subscriptions/{subscriptionId}", { path: { ...place }, signal }),
    [place.subscriptionId],
  );
  const loaded = useLoad((signal) => loadLetters(place, scope, signal), [JSON.stringify([place, scope])]);
  const groups = useMemo(() => groupsOf(loaded.data?.letters ?? []), [loaded.data]);
  const chosen = groups.find(({ key }) => key === query.group);
  const [target, setTarget] = useState<Target>();
  const fields: readonly FilterField[] = [
    places.type,
    { name: "from", label: "From", kind: "time" },
    { name: "to", label: "To", kind: "time" },
  ];
  const total = loaded.data?.total ?? 0;
  const above = [
    {
      title: "Dead letters",
      href: hrefWith({ subscription: undefined, group: undefined, letter: undefined }),
    },
  ];
  const name = subscription.data?.eventUid ?? place.subscriptionId;
  return (
    <Page
      title={chosen ? `${chosen.reason} · ${chosen.type}` : name}
      crumbs={
        chosen ? [...above, { title: name, href: hrefWith({ group: undefined, letter: undefined }) }] : above
      }
      lead={
        subscription.data?.lastError && (
          <>
            Last error: <UntrustedText>{subscription.data.lastError.message}</UntrustedText>{" "}
            <Time at={subscription.data.lastError.at} as="ago" />
          </>
        )
      }
      actions={
        hasPermission("apps.write") &&
        total > 0 && (
          <Button
            onClick={() =>
              setTarget(chosen ? targetOf(chosen, groups, scope, total) : { is: "scope", scope })
            }
          >
            Preview and send {chosen ? formatCount(chosen.letters.length) : "all"} again
          </Button>
        )
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
                  Redriven events come back here if they are rejected for another day.
                </Empty>
              ) : query.group !== undefined && chosen === undefined ? (
                <Empty title="This group is empty">
                  <a href={hrefWith({ group: undefined, letter: undefined })}>All groups</a>
                </Empty>
              ) : chosen ? (
                <Letters key={chosen.key} group={chosen} onSend={setTarget} />
              ) : (
                <>
                  <Table
                    label="Groups"
                    columns={GROUP_COLUMNS}
                    rows={groups}
                    keyOf={({ key }) => key}
                    onOpen={({ key }) => go({ group: key })}
                    maxRows={Math.min(14, groups.length)}
                  />
                  <CountLine
                    count={total}
                    of={
                      total > MAX_LOADED
                        ? `dead letters; the groups show the newest ${MAX_LOADED}`
                        : total === 1
                          ? "dead letter"
                          : "dead letters"
                    }
                  />
                </>
              )
            }
          </WhenLoaded>
        </div>
        {query.letter !== undefined && (
          <LetterPanel
            key={query.letter}
            place={place}
            letterId={query.letter}
            onClose={() => go({ letter: undefined })}
            onGone={loaded.reload}
          />
        )}
      </div>
      <ApiCall call={{ method: "GET", path: `${pathOf(place)}${formatQuery({ ...scope, limit: 100 })}` }} />
      {target && (
        <SendDialog
          place={place}
          target={target}
          onClose={() => setTarget(undefined)}
          onDone={loaded.reload}
        />
      )}
    </Page>
  );
}

/** Selects a group by its type if no other dead letters have this type. Otherwise, selects the group's dead letters by id, oldest first. */
function targetOf(group: Group, groups: readonly Group[], scope: Scope, total: number): Target {
  const isAlone = groups.filter(({ type }) => type === group.type).length === 1 && total <= MAX_LOADED;
  return isAlone
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
