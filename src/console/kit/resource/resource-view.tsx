import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { loadVersioned, sendForList } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { hasPermission } from "../../session/session.ts";
import { Confirm } from "../feedback/confirm.tsx";
import { Empty, WhenLoaded } from "../feedback/states.tsx";
import { toast } from "../feedback/toast.tsx";
import type { Choices } from "../form/inputs.tsx";
import { Button } from "../layout/button.tsx";
import { DetailPanel } from "../layout/detail.tsx";
import { Icon } from "../layout/icons.tsx";
import { Facts, type NamedFacts, Page } from "../layout/page.tsx";
import { useAddress } from "../list/address.ts";
import { FilterBar, type FilterField, useFilters } from "../list/filters.tsx";
import { PagedTable } from "../list/loaded-table.tsx";
import type { Column } from "../list/table.tsx";
import { usePages } from "../list/use-pages.ts";
import { ApiCall } from "../text/api-call.tsx";
import { ResourceForm } from "./resource-form.tsx";

export interface Entity {
  readonly id: string;
}

/** `Listed` is the type of the list's rows, if they differ from the entity. */
export interface ResourceSpec<Row extends Entity, Listed extends Entity = Row> {
  readonly title: string;
  /** Singular name: `API key`. */
  readonly one: string;
  /** Plural name of the resource, as written within a sentence: `API keys`. */
  readonly many: string;
  readonly lead?: ComponentChildren;
  /** Path of the collection: `/iam/api-keys`. */
  readonly path: string;
  /** Path of the list, if it is not `path`. */
  readonly listPath?: string;
  /** Path parameter of an item: `apiKeyId`. */
  readonly param: string;
  /** First part of the permission names: `iam`. */
  readonly noun: string;
  readonly columns: readonly Column<Listed>[];
  readonly titleOf: (row: Row) => string;
  /** Content above the buttons of the detail panel. */
  readonly head?: (row: Row) => ComponentChildren;
  readonly facts: (row: Row) => NamedFacts;
  /** Content below the facts. */
  readonly more?: (row: Row, reload: () => void) => ComponentChildren;
  /** Additional buttons in the detail panel. */
  readonly actions?: (row: Row, reload: () => void) => ComponentChildren;
  readonly filters?: readonly FilterField[];
  /** Query that the list always has. */
  readonly query?: Readonly<Record<string, string>>;
  /** Content below the list. */
  readonly below?: () => ComponentChildren;
  /** Default: `No API keys yet`. */
  readonly emptyTitle?: string;
  /** Next step when the list is empty. */
  readonly empty: ComponentChildren;
  /** `undefined` if the console cannot create the resource. */
  readonly create?: {
    readonly verb?: string;
    /** Default: `path` of the collection. */
    readonly path?: string;
    readonly without?: readonly string[];
    /** Optional fields that are shown first. */
    readonly first?: readonly string[];
    readonly choices?: (signal: AbortSignal) => Promise<Choices>;
    /** Help above the fields, which depends on the values in the form. */
    readonly hint?: (value: Readonly<Record<string, unknown>>) => ComponentChildren;
    readonly start?: Readonly<Record<string, unknown>>;
    /** Returns a dialog for response data that the API shows only once, such as a new key. */
    readonly showResult?: (answer: unknown, onClose: () => void) => ComponentChildren;
  };
  readonly change?: {
    /** Returns the kind of the entity. Needed if the form comes from the operation that creates this kind. */
    readonly kindOf?: (row: Row) => string;
    readonly without?: readonly string[];
    readonly choices?: (signal: AbortSignal) => Promise<Choices>;
  };
  /** Deletion of a row, with a text about its effect. `undefined` if the console cannot delete rows. */
  readonly remove?: {
    readonly verb?: string;
    readonly consequence: ComponentChildren;
    readonly query?: string;
  };
  /** Called after a row was created, changed or deleted. */
  readonly onChanged?: () => void;
}

export function ResourceView<Row extends Entity, Listed extends Entity = Row>({
  spec,
}: {
  readonly spec: ResourceSpec<Row, Listed>;
}) {
  const { title, one, many, lead, path, noun, columns, filters = [], empty, create, below, onChanged } = spec;
  const { listPath = path } = spec;
  const { query, go } = useAddress();
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<unknown>();
  const { values, set } = useFilters(filters.map(({ name }) => name));
  const wanted = { ...spec.query, ...values };
  const needs = JSON.stringify(values);
  const pages = usePages<Listed>(
    (page, signal) => sendForList<Listed>(listPath + formatQuery({ ...wanted, ...page }), { signal }),
    [listPath, needs],
  );
  const openId = query.id;
  const open = (id: string | undefined): void => go({ id }, { replace: true });
  const changed = (): void => {
    pages.reload();
    onChanged?.();
  };
  const canCreate = create !== undefined && hasPermission(`${noun}.write`);
  const isFiltered = Object.keys(values).length > 0;
  return (
    <Page
      title={title}
      lead={lead}
      actions={
        canCreate && (
          <Button look="primary" onClick={() => setCreating(true)}>
            <Icon name="plus" />
            {create.verb ?? "New"} {one}
          </Button>
        )
      }
    >
      {filters.length > 0 && <FilterBar fields={filters} values={values} onChange={set} />}
      <div class="split">
        <div class="stack">
          <PagedTable
            label={title}
            columns={columns}
            pages={pages}
            keyOf={({ id }) => id}
            onOpen={({ id }) => open(id)}
            openKey={openId}
            of={many}
            empty={
              <Empty
                title={isFiltered ? `No ${many} match these filters` : (spec.emptyTitle ?? `No ${many} yet`)}
              >
                {!isFiltered && empty}
              </Empty>
            }
          />
          {below?.()}
          <ApiCall call={{ method: "GET", path: listPath + formatQuery(wanted) }} />
        </div>
        {openId !== undefined && (
          <EntityDetail
            key={openId}
            spec={spec}
            id={openId}
            onClose={() => open(undefined)}
            onChanged={changed}
          />
        )}
      </div>
      {isCreating && create && (
        <ResourceForm
          title={`${create.verb ?? "New"} ${one}`}
          method="post"
          operation={create.path ?? path}
          path={create.path ?? path}
          verb={create.verb ?? "Create"}
          without={create.without ?? []}
          first={create.first ?? []}
          hint={create.hint}
          {...(create.choices && { choices: create.choices })}
          {...(create.start && { start: create.start })}
          onClose={() => setCreating(false)}
          onDone={(answer) => {
            setCreating(false);
            changed();
            if (create.showResult) setCreated(answer);
            else toast(`Created: ${one}`);
          }}
        />
      )}
      {created !== undefined && create?.showResult?.(created, () => setCreated(undefined))}
    </Page>
  );
}

interface EntityDetailProps<Row extends Entity> {
  readonly spec: Omit<ResourceSpec<Row>, "columns">;
  readonly id: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

function EntityDetail<Row extends Entity>({ spec, id, onClose, onChanged }: EntityDetailProps<Row>) {
  const { one, path, param, noun, titleOf, head, facts, more, actions, change, remove } = spec;
  const [openDialog, setOpenDialog] = useState<"change" | "remove">();
  const itemPath = `${path}/${encodeURIComponent(id)}`;
  const loaded = useLoad((signal) => loadVersioned<Row>(itemPath, signal), [itemPath]);
  const canWrite = hasPermission(`${noun}.write`);
  const reload = (): void => {
    loaded.reload();
    onChanged();
  };
  const done = (): void => {
    setOpenDialog(undefined);
    reload();
  };
  const title = loaded.data === undefined ? one : titleOf(loaded.data.entity);
  return (
    <DetailPanel title={title} onClose={onClose}>
      <WhenLoaded loaded={loaded}>
        {({ entity: row, etag }) => (
          <>
            {head?.(row)}
            {(canWrite || actions) && (
              <div class="row wrap">
                {actions?.(row, reload)}
                {canWrite && change && <Button onClick={() => setOpenDialog("change")}>Change</Button>}
                {canWrite && remove && (
                  <Button look="delete" onClick={() => setOpenDialog("remove")}>
                    {remove.verb ?? "Delete"}
                  </Button>
                )}
              </div>
            )}
            <Facts facts={facts(row)} />
            {more?.(row, loaded.reload)}
            <ApiCall call={{ method: "GET", path: itemPath }} />
            {openDialog === "change" && (
              <ResourceForm
                title={`Change ${titleOf(row)}`}
                method="put"
                operation={`${path}/{${param}}`}
                path={itemPath}
                verb="Save"
                createdBy={change?.kindOf && { operation: path, kind: change.kindOf(row) }}
                entity={row as Readonly<Record<string, unknown>> & Row}
                etag={etag}
                without={change?.without ?? []}
                {...(change?.choices && { choices: change.choices })}
                onClose={() => setOpenDialog(undefined)}
                onDone={() => {
                  toast(`Saved: ${one}`);
                  done();
                }}
              />
            )}
            {openDialog === "remove" && remove && (
              <Confirm
                title={`${remove.verb ?? "Delete"} ${titleOf(row)}?`}
                verb={remove.verb ?? "Delete"}
                danger
                call={{ method: "DELETE", path: itemPath + (remove.query ?? "") }}
                onDone={() => {
                  toast(`Deleted: ${one}`);
                  onClose();
                  onChanged();
                }}
                onClose={() => setOpenDialog(undefined)}
              >
                {remove.consequence}
              </Confirm>
            )}
          </>
        )}
      </WhenLoaded>
    </DetailPanel>
  );
}
