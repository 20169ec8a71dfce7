import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatQuery } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { hasPermission } from "../../session/session.ts";
import { Empty, WhenLoaded } from "../feedback/states.tsx";
import { columnsFor } from "../layout/app-column.tsx";
import { Button } from "../layout/button.tsx";
import { Icon } from "../layout/icons.tsx";
import { Page } from "../layout/page.tsx";
import { createAppFilter, useTopicFilters } from "../layout/use-topic-filters.ts";
import { useAddress } from "../list/address.ts";
import {
  FilterBar,
  type FilterField,
  type FilterValues,
  TIME_FILTERS,
  useFilters,
} from "../list/filters.tsx";
import { SelectableTable } from "../list/selectable-table.tsx";
import { type Column, CountLine, Table, TIME_WIDTHS } from "../list/table.tsx";
import { ApiCall } from "../text/api-call.tsx";
import { formatCount } from "../text/numbers.ts";
import { Time } from "../text/time.tsx";
import { type Batch, deletionOf, pathOf, type Scope, type Target } from "./batch.ts";
import { BatchDialog } from "./batch-dialog.tsx";
import { FailurePanel, type PanelSpec } from "./failure-panel.tsx";
import { type FailureRow, type Group, groupRows, loadNewest } from "./groups.ts";

/** View of failures: their groups by cause, the failures of a group, and a panel with the details of one. */
export interface WorkbenchSpec<Row extends FailureRow, Item, Answer> {
  readonly title: string;
  readonly lead: string;
  /** Plural name of the failures: `dead letters`. */
  readonly many: string;
  readonly empty: { readonly title: string; readonly text: string };
  /** Path of the list for all apps. */
  readonly path: string;
  readonly pageRows: number;
  /** Maximum number of failures to load for grouping. If there are more, the view says so. */
  readonly maxRows: number;
  /** Query parameter of the view's address with the id of the open failure. */
  readonly param: string;
  /** Filters in addition to those by app and time. */
  readonly filters: readonly (FilterField | "channel" | "type")[];
  /** Filters that the API does not have, so the view applies them. */
  readonly localFilters?: Readonly<Record<string, (row: Row, value: string) => boolean>>;
  /** Returns the path of the collection to which all failures with these filters belong. `undefined` if there may be several. */
  readonly collectionOf: (filters: FilterValues, newest: Row | undefined) => string | undefined;
  readonly collectionOfRow: (row: Row) => string;
  /** Returns the filters of a redrive that select the same failures as the list. `undefined` if a redrive has no such filters. */
  readonly scopeOf: (filters: FilterValues) => Scope | undefined;
  /** Returns the filters of a redrive that select the failures with the same cause, and possibly others. */
  readonly scopeOfGroup: (newest: Row) => Scope;
  readonly causeOf: (row: Row) => readonly string[];
  readonly timesOf: (row: Row) => readonly [firstAt: string, lastAt: string];
  readonly group: {
    readonly columns: readonly Column<Group<Row>>[];
    readonly title: (newest: Row) => string;
    readonly lead: (newest: Row) => ComponentChildren;
    /** Link to the place where the cause is fixed. */
    readonly fix?: (newest: Row) => ComponentChildren;
  };
  readonly columns: readonly Column<Row>[];
  readonly redrive: {
    /** Label of a button for some failures: `Redrive 3`. */
    readonly verb: (count: string) => string;
    /** Label of the button that opens the preview. */
    readonly previewVerb: (count: string) => string;
    readonly isPossible?: (newest: Row) => boolean;
    readonly create: (target: Target<Row>) => Batch;
  };
  readonly panel: PanelSpec<Item, Answer>;
}

/** Names of the API's query parameters for filters of the address. Other filters have the same name. */
const API_NAMES: Readonly<Record<string, string>> = { app: "appId", subscription: "subscriptionId" };

export function Workbench<Row extends FailureRow, Item, Answer>({
  spec,
}: {
  readonly spec: WorkbenchSpec<Row, Item, Answer>;
}) {
  const { many, param, maxRows, localFilters = {}, collectionOf, collectionOfRow, group, redrive } = spec;
  const names = spec.filters.map((filter) => (typeof filter === "string" ? filter : filter.name));
  const { values, resolved, set } = useFilters(["app", ...names, "from", "to"]);
  const { query: address, go, hrefWith } = useAddress();
  const places = useTopicFilters(values.app);
  const query = Object.fromEntries(
    Object.entries(resolved).flatMap(([name, value]) =>
      name in localFilters ? [] : [[API_NAMES[name] ?? name, value] as const],
    ),
  );
  const loaded = useLoad(
    (signal) => loadNewest<Row>(spec.path, query, spec, signal),
    [JSON.stringify(query)],
  );
  const local = Object.entries(localFilters).flatMap(([name, matches]) => {
    const value = values[name];
    return value === undefined ? [] : [(row: Row) => matches(row, value)];
  });
  const rows = useMemo(
    () => (loaded.data?.rows ?? []).filter((row) => local.every((matches) => matches(row))),
    [loaded.data, JSON.stringify(values)],
  );
  const groups = useMemo(() => groupRows(rows, spec.causeOf, spec.timesOf), [rows]);
  const chosen = groups.find(({ key }) => key === address.group);
  const [running, setRunning] = useState<Batch>();

  const listed = loaded.data?.total ?? 0;
  const count = local.length > 0 ? rows.length : listed;
  const isWhole = listed <= maxRows;
  const scope = local.length > 0 ? undefined : spec.scopeOf(resolved);
  const collections = new Set(rows.map(collectionOfRow));
  // A redrive is limited to one collection of the API, such as the quarantine of an app.
  const collection =
    collectionOf(resolved, rows[0]) ?? (isWhole && collections.size === 1 ? [...collections][0] : undefined);

  const targetOf = (some: readonly Row[], by?: Scope): Target<Row> => {
    const [newest] = some;
    return {
      collection: newest ? collectionOfRow(newest) : "",
      rows: some,
      count: some.length,
      scope: by,
    };
  };
  /** Selects a group by filters if they match no other group. */
  const targetOfGroup = ({ newest, rows: inside }: Group<Row>): Target<Row> => {
    const keyOf = (row: Row): string => JSON.stringify([collectionOfRow(row), spec.scopeOfGroup(row)]);
    const isAlone = groups.filter((one) => keyOf(one.newest) === keyOf(newest)).length === 1;
    const by = isAlone && isWhole && scope ? { ...scope, ...spec.scopeOfGroup(newest) } : undefined;
    return targetOf(inside, by);
  };
  const all = collection !== undefined &&
    count > 0 &&
    (scope !== undefined || isWhole) && {
      ...targetOf(rows, scope),
      collection,
      count,
    };
  const canWrite = hasPermission(spec.panel.permission);
  const canRedrive = chosen === undefined || (redrive.isPossible?.(chosen.newest) ?? true);
  const target = chosen ? targetOfGroup(chosen) : all;
  const openRow = rows.find(({ id }) => id === address[param]);
  const openCollection = openRow ? collectionOfRow(openRow) : collection;
  const back = { group: undefined, [param]: undefined };
  return (
    <Page
      title={chosen ? group.title(chosen.newest) : spec.title}
      crumbs={chosen ? [{ title: spec.title, href: hrefWith(back) }] : []}
      lead={chosen ? group.lead(chosen.newest) : spec.lead}
      actions={
        <>
          {chosen && group.fix?.(chosen.newest)}
          {canWrite && canRedrive && target && (
            <Button onClick={() => setRunning(redrive.create(target))}>
              {redrive.previewVerb(chosen ? formatCount(target.count) : "all")}
            </Button>
          )}
        </>
      }
    >
      <FilterBar
        fields={[
          createAppFilter(),
          ...spec.filters.map((filter) => (typeof filter === "string" ? places[filter] : filter)),
          ...TIME_FILTERS,
        ]}
        values={values}
        onChange={set}
      />
      <div class="split">
        <div class="stack">
          <WhenLoaded loaded={loaded}>
            {() =>
              rows.length === 0 ? (
                <Empty
                  title={Object.keys(values).length > 0 ? `No ${many} match the filters` : spec.empty.title}
                >
                  {spec.empty.text}
                </Empty>
              ) : address.group !== undefined && chosen === undefined ? (
                <Empty title="This group is empty">
                  <a href={hrefWith(back)}>All groups</a>
                </Empty>
              ) : chosen ? (
                <SelectableTable
                  key={chosen.key}
                  label={many.replace(/^./, (first) => first.toUpperCase())}
                  columns={spec.columns}
                  rows={chosen.rows}
                  isSelectable={canWrite}
                  actions={[
                    ...(canRedrive
                      ? [
                          {
                            verb: redrive.verb,
                            onRun: (some: readonly Row[]) => setRunning(redrive.create(targetOf(some))),
                          },
                        ]
                      : []),
                    {
                      verb: (text) => `Delete ${text}`,
                      look: "delete",
                      onRun: (some) => setRunning(createDeletion(spec, targetOf(some))),
                    },
                  ]}
                  onOpen={({ id }) => go({ [param]: id })}
                  openKey={address[param]}
                />
              ) : (
                <>
                  <Table
                    label="Groups"
                    columns={columnsFor([...group.columns, ...TIME_COLUMNS], values.app)}
                    rows={groups}
                    keyOf={({ key }) => key}
                    onOpen={({ key }) => go({ group: key })}
                    maxRows={Math.min(14, groups.length)}
                  />
                  <CountLine
                    count={count}
                    of={
                      isWhole
                        ? `${count === 1 ? spec.panel.one : many} in ${groups.length === 1 ? "one group" : `${groups.length} groups`}`
                        : `${many}; the groups show the newest ${formatCount(maxRows)}`
                    }
                  />
                </>
              )
            }
          </WhenLoaded>
        </div>
        {address[param] !== undefined && openCollection !== undefined && (
          <FailurePanel
            key={address[param]}
            spec={spec.panel}
            path={pathOf(openCollection, address[param])}
            onClose={() => go({ [param]: undefined })}
            onChanged={loaded.reload}
          />
        )}
      </div>
      <ApiCall call={{ method: "GET", path: spec.path + formatQuery({ ...query, limit: spec.pageRows }) }} />
      {running && (
        <BatchDialog batch={running} onClose={() => setRunning(undefined)} onDone={loaded.reload} />
      )}
    </Page>
  );
}

const TIME_COLUMNS: readonly Column<Group<unknown>>[] = [
  { title: "First seen", cell: ({ firstAt }) => <Time at={firstAt} />, ...TIME_WIDTHS, priority: 3 },
  { title: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} as="ago" />, width: "6.5rem" },
  { title: "Open", hidesTitle: true, cell: () => <Icon name="right" />, width: "16px", priority: 2 },
];

function createDeletion<Row extends FailureRow, Item, Answer>(
  { panel: { one, removal }, many }: WorkbenchSpec<Row, Item, Answer>,
  target: Target<Row>,
): Batch {
  const { count } = target;
  return {
    ...deletionOf(target),
    title: `Delete ${count === 1 ? `one ${one}` : `${formatCount(count)} ${many}`}`,
    verb: (text) => `Delete ${text}`,
    isDanger: true,
    preview: async () => ({ content: <p>{removal}</p> }),
    words: { released: "deleted" },
  };
}
