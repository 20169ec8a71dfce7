import { useMemo, useState } from "preact/hooks";
import { formatQuery } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { describeReason, REASON_NAMES } from "../../kit/explained/reasons.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { APP_COLUMN, columnsFor } from "../../kit/layout/app-column.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { Badge, Page } from "../../kit/layout/page.tsx";
import { createAppFilter, useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { choiceFilter, FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { SelectableTable } from "../../kit/list/selectable-table.tsx";
import { type Column, CountLine, Table, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { ItemPanel } from "./item.tsx";
import { type Group, groupsOf, type Kept, loadKept, MAX_LOADED, type Scope } from "./records.ts";
import { type PreviewPart, RedriveDialog } from "./redrive-dialog.tsx";
import type { Target } from "./run-again.ts";

interface Running {
  readonly appId: string;
  readonly what: string;
  readonly target: Target;
  readonly previewParts: readonly PreviewPart[];
}

const FILTERS = ["app", "channel", "type", "reason", "id", "from", "to"] as const;

/** Page of the quarantined items of all apps, grouped by failure reason. Opening a group lists its items. */
export default function Quarantine() {
  const { values, resolved, set } = useFilters(FILTERS);
  const { query, go, hrefWith } = useAddress();
  const places = useTopicFilters(values.app);
  const scope = scopeOf(resolved);
  const { channelId: channel, ...others } = scope;
  const selection = { ...(values.app && { appId: values.app }), ...(channel && { channel }), ...others };
  const loaded = useLoad((signal) => loadKept(selection, signal), [JSON.stringify(selection)]);
  // These filters are applied in the browser, because the API cannot filter by type or id.
  const { type, id } = values;
  const isNarrowed = type !== undefined || id !== undefined;
  const kept = useMemo(
    () =>
      (loaded.data?.kept ?? []).filter(
        (one) =>
          (type === undefined || one.definitions.includes(type)) && (id === undefined || one.id === id),
      ),
    [loaded.data, type, id],
  );
  const groups = useMemo(() => groupsOf(kept), [kept]);
  const chosen = groups.find(({ key }) => key === query.group);
  const [running, setRunning] = useState<Running>();
  const fields: readonly FilterField[] = [
    createAppFilter(),
    places.channel,
    places.type,
    choiceFilter("reason", "Reason", REASON_NAMES),
    { name: "id", label: "Item", kind: "text", placeholder: "item id" },
    { name: "from", label: "From", kind: "time" },
    { name: "to", label: "To", kind: "time" },
  ];
  const all = loaded.data?.total ?? 0;
  const total = isNarrowed ? kept.length : all;
  // Whether the API's filters match exactly the shown items. If not, items must be selected by id.
  const isWhole = !isNarrowed && all <= MAX_LOADED;
  // The app whose items the page can redrive together, because the API redrives the items of one app.
  const appId = chosen?.appId ?? values.app ?? (isWhole ? findOnlyApp(groups) : undefined);
  const openItemAppId = loaded.data?.kept.find(({ id }) => id === query.item)?.appId ?? appId;
  return (
    <Page
      title={chosen ? titleOf(chosen) : "Quarantine"}
      crumbs={chosen ? [{ title: "Quarantine", href: hrefWith({ group: undefined, item: undefined }) }] : []}
      lead={
        chosen
          ? describeReason(chosen.reason).suggestedAction
          : "Deliveries that could not become events. They are stored in full: fix the cause, then redrive them."
      }
      actions={
        <>
          {chosen && (
            <a
              class="button"
              href={`/console/apps/${encodeURIComponent(chosen.appId)}/channels/${encodeURIComponent(chosen.channelUid)}/definitions`}
            >
              Fix the definitions
            </a>
          )}
          {hasPermission("apps.write") && appId !== undefined && total > 0 && (
            <Button
              onClick={() =>
                setRunning(
                  chosen
                    ? ofGroup(chosen, groups, scope, isWhole)
                    : ofAll(appId, groups, scope, isNarrowed ? kept : total),
                )
              }
            >
              Preview and redrive {chosen ? formatCount(chosen.items.length) : "all"}
            </Button>
          )}
        </>
      }
    >
      <FilterBar fields={fields} values={values} onChange={set} />
      <div class="split">
        <div class="stack">
          <WhenLoaded loaded={loaded}>
            {() =>
              kept.length === 0 ? (
                <Empty
                  title={
                    Object.keys(values).length > 0 ? "No items match the filters" : "Quarantine is empty"
                  }
                >
                  Items that fail are listed here with the reason and a suggested action.
                </Empty>
              ) : query.group !== undefined && chosen === undefined ? (
                <Empty title="This group is empty">
                  <a href={hrefWith({ group: undefined, item: undefined })}>All groups</a>
                </Empty>
              ) : chosen ? (
                <Items key={chosen.key} group={chosen} onRun={setRunning} />
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
                  <CountLine count={total} of={inWords(total, groups.length)} />
                </>
              )
            }
          </WhenLoaded>
        </div>
        {query.item !== undefined && openItemAppId !== undefined && (
          <ItemPanel
            key={query.item}
            appId={openItemAppId}
            itemId={query.item}
            onClose={() => go({ item: undefined })}
            onChanged={loaded.reload}
          />
        )}
      </div>
      <ApiCall call={{ method: "GET", path: `/quarantine${formatQuery({ ...selection, limit: 200 })}` }} />
      {running && <RedriveDialog {...running} onClose={() => setRunning(undefined)} onDone={loaded.reload} />}
    </Page>
  );
}

const scopeOf = ({ channel, reason, from, to }: Readonly<Record<string, string | undefined>>): Scope => ({
  ...(channel !== undefined && { channelId: channel }),
  ...(reason !== undefined && { reason: reason as NonNullable<Scope["reason"]> }),
  ...(from !== undefined && { from }),
  ...(to !== undefined && { to }),
});

/** Returns the app of all groups, or `undefined` if they belong to several apps. */
function findOnlyApp(groups: readonly Group[]): string | undefined {
  const [first, ...others] = new Set(groups.map(({ appId }) => appId));
  return others.length === 0 ? first : undefined;
}

const inWords = (total: number, groups: number): string =>
  total > MAX_LOADED
    ? `items; the groups show the newest ${formatCount(MAX_LOADED)}`
    : `${total === 1 ? "item" : "items"} in ${groups === 1 ? "one group" : `${groups} groups`}`;

const titleOf = ({ channelUid, reason, definitions }: Group): string =>
  `${reason} · ${definitions.length === 0 ? channelUid : definitions.join(", ")}`;

/** Selects a group by its filter if the filter matches no other group. Otherwise, selects the group's items by id, oldest first. */
function ofGroup(group: Group, groups: readonly Group[], scope: Scope, isWhole: boolean): Running {
  const { appId, channelUid, reason, items } = group;
  const isSame = (one: Group): boolean =>
    one.appId === appId && one.channelUid === channelUid && one.reason === reason;
  const isAlone = isWhole && groups.filter(isSame).length === 1;
  const within = { ...scope, channelId: channelUid, reason };
  return {
    appId,
    what: items.length === 1 ? "one item" : `${formatCount(items.length)} items`,
    target: isAlone
      ? { is: "scope", scope: within, count: items.length }
      : { is: "items", ids: items.map(({ id }) => id).reverse() },
    previewParts: [{ scope: within, ids: new Set(items.map(({ id }) => id)) }],
  };
}

/** Selects all shown items. `of` contains the items, or only their number if the API's filters select them. */
function ofAll(appId: string, groups: readonly Group[], scope: Scope, of: number | readonly Kept[]): Running {
  const count = typeof of === "number" ? of : of.length;
  const ids = typeof of === "number" ? undefined : of.map(({ id }) => id);
  return {
    appId,
    what: `all ${formatCount(count)}`,
    target: ids ? { is: "items", ids: [...ids].reverse() } : { is: "scope", scope, count },
    previewParts: [...new Set(groups.map(({ channelUid }) => channelUid))].map((channelId) => ({
      scope: { ...scope, channelId },
      ...(ids && { ids: new Set(ids) }),
    })),
  };
}

/** Reverse the selected items, because the list shows the newest first, but items must be processed in order of arrival. */
function ofSome({ appId, channelUid, reason }: Group, chosen: readonly Kept[]): Running {
  const ids = chosen.map(({ id }) => id).reverse();
  const from = chosen.at(-1)?.firstAt;
  return {
    appId,
    what: ids.length === 1 ? "one item" : `${formatCount(ids.length)} items`,
    target: { is: "items", ids },
    previewParts: [{ scope: { channelId: channelUid, reason, ...(from && { from }) }, ids: new Set(ids) }],
  };
}

const GROUP_COLUMNS: readonly Column<Group>[] = [
  {
    title: "Reason",
    cell: ({ reason, definitions, channelUid }) => (
      <>
        <Badge tone={reason === "signature_invalid" ? "bad" : "warn"}>{reason}</Badge>{" "}
        <span class="soft in-wide">{describeReason(reason).description}</span>
        <span class="in-narrow">
          <UntrustedText>{definitions.join(", ") || channelUid}</UntrustedText>
        </span>
      </>
    ),
    width: "minmax(0, 3fr)",
  },
  {
    title: "Definition",
    cell: ({ definitions }) =>
      definitions.length === 0 ? (
        <span class="faint">–</span>
      ) : (
        <UntrustedText>{definitions.join(", ")}</UntrustedText>
      ),
    width: "minmax(0, 2fr)",
    priority: 2,
  },
  APP_COLUMN,
  { title: "Channel", cell: ({ channelUid }) => <UntrustedText>{channelUid}</UntrustedText>, priority: 2 },
  { title: "Items", cell: ({ items }) => formatCount(items.length), align: "end", width: "4rem" },
  {
    title: "Arrivals",
    cell: ({ arrivals }) => formatCount(arrivals),
    align: "end",
    width: "5rem",
    priority: 3,
  },
  { title: "First seen", cell: ({ firstAt }) => <Time at={firstAt} />, ...TIME_WIDTHS, priority: 3 },
  { title: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} as="ago" />, width: "6.5rem" },
  { title: "Open", hidesTitle: true, cell: () => <Icon name="right" />, width: "16px", priority: 2 },
];

interface ItemsProps {
  readonly group: Group;
  readonly onRun: (running: Running) => void;
}

function Items({ group, onRun }: ItemsProps) {
  const { query, go } = useAddress();
  return (
    <SelectableTable
      label="Items"
      columns={ITEM_COLUMNS}
      rows={group.items}
      isSelectable={hasPermission("apps.write") && group.reason !== "signature_invalid"}
      verb={(count) => `Redrive ${count === 0 ? "selected" : formatCount(count)}`}
      onRun={(chosen) => onRun(ofSome(group, chosen))}
      onOpen={({ id }) => go({ item: id })}
      openKey={query.item}
    />
  );
}

const ITEM_COLUMNS: readonly Column<Kept>[] = [
  {
    title: "Detail",
    width: "minmax(0, 3fr)",
    cell: ({ path, detail }) => (
      <>
        {path !== null && (
          <code>
            <UntrustedText max={100}>{path}</UntrustedText>{" "}
          </code>
        )}
        <UntrustedText max={300}>{detail}</UntrustedText>
      </>
    ),
  },
  { title: "Item", cell: ({ id }) => <code>{id}</code>, width: "minmax(0, 1fr)", priority: 3 },
  { title: "Arrivals", cell: ({ count }) => formatCount(count), align: "end", width: "5rem", priority: 3 },
  { title: "First seen", cell: ({ firstAt }) => <Time at={firstAt} />, ...TIME_WIDTHS, priority: 2 },
  { title: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} as="ago" />, width: "6.5rem" },
];
