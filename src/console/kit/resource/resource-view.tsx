import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { loadVersioned } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { hasPermission } from "../../session/session.ts";
import { ConfirmButton, DialogButton } from "../feedback/buttons.tsx";
import { Empty, WhenLoaded } from "../feedback/states.tsx";
import { toast } from "../feedback/toast.tsx";
import type { Choices } from "../form/inputs.tsx";
import { DetailPanel } from "../layout/detail.tsx";
import { Icon } from "../layout/icons.tsx";
import { Facts, type NamedFacts, Page } from "../layout/page.tsx";
import { useAddress } from "../list/address.ts";
import { FilterBar, type FilterField, namesOf, useFilters } from "../list/filters.tsx";
import { PagedTable } from "../list/loaded-table.tsx";
import type { Column } from "../list/table.tsx";
import { newestFirst, usePages } from "../list/use-pages.ts";
import { ApiCall } from "../text/api-call.tsx";
import { ResourceForm } from "./resource-form.tsx";

interface Entity {
  /** `null` if the caller may not read the id. */
  readonly id: string | null;
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
  /** First part of the permission names: `iam`. */
  readonly noun: string;
  readonly columns: readonly Column<Listed>[];
  /** Whether the API lists the oldest rows first, but the view the newest. */
  readonly isReversed?: boolean;
  /** Maximum height of the list in rows. Default: the rest of the page. */
  readonly maxRows?: number;
  readonly filters?: readonly FilterField[];
  /** Query that the list always has. */
  readonly query?: Readonly<Record<string, string>>;
  /** Buttons of the page in addition to the one that creates an entity. `onMade` opens a created one. */
  readonly pageActions?: (onMade: (key: string) => void) => ComponentChildren;
  /** Content below the list. */
  readonly below?: () => ComponentChildren;
  /** Default: `No API keys yet`. */
  readonly emptyTitle?: string;
  /** Next step when the list is empty. */
  readonly empty: ComponentChildren;
  /** Query parameter of the view's address with the key of the open row. Default: `id`. */
  readonly openParam?: string;
  /** Last part of the entity's path. Default: its id. */
  readonly keyOf?: (row: Listed) => string;
  /** Interval at which the detail panel loads the entity again. */
  readonly everyMs?: number;
  /** Title of the detail panel. Default: `one`. */
  readonly titleOf?: (row: Row) => string;
  /** Content above the buttons of the detail panel. */
  readonly head?: (row: Row) => ComponentChildren;
  /** Facts of the detail panel. `undefined` if rows cannot be opened. */
  readonly facts?: (row: Row) => NamedFacts;
  /** Content below the facts. */
  readonly more?: (row: Row, reload: () => void) => ComponentChildren;
  /** Additional buttons in the detail panel. */
  readonly actions?: (row: Row, reload: () => void, etag: string | undefined) => ComponentChildren;
  /** `undefined` if the console cannot create the resource. */
  readonly create?: {
    /** First word of the button and of the form's title. Default: `New`. */
    readonly button?: string;
    /** Default: `path` of the collection. */
    readonly path?: string;
    /** Optional fields that are shown first. */
    readonly first?: readonly string[];
    readonly choices?: (signal: AbortSignal) => Promise<Choices>;
    /** Help above the fields, which depends on the values in the form. */
    readonly hint?: (value: Readonly<Record<string, unknown>>) => ComponentChildren;
    /** Returns a dialog for response data that the API shows only once, such as a new key. */
    readonly showResult?: (answer: unknown, onClose: () => void) => ComponentChildren;
  };
  readonly change?: {
    /** Path of the operation in the OpenAPI document: `/iam/api-keys/{apiKeyId}`. */
    readonly operation: string;
    /** Returns the kind of the entity. Needed if the form comes from the operation that creates this kind. */
    readonly kindOf?: (row: Row) => string;
    readonly without?: readonly string[];
    readonly choices?: (signal: AbortSignal) => Promise<Choices>;
  };
  /** Deletion of a row, with a text about its effect. `undefined` if the console cannot delete rows. */
  readonly remove?: {
    readonly verb?: string;
    readonly consequence: (row: Row) => ComponentChildren;
    /** Returns the name that the user must type to confirm. */
    readonly typed?: (row: Row) => string;
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
  const { listPath = path, isReversed = false, maxRows, openParam = "id", keyOf = idOf, pageActions } = spec;
  const { query, go } = useAddress();
  const [created, setCreated] = useState<unknown>();
  const { values, resolved, set } = useFilters(namesOf(filters));
  const wanted = { ...spec.query, ...resolved };
  const loaded = usePages<Listed>(listPath, wanted);
  const pages = isReversed ? newestFirst(loaded) : loaded;
  const openKey = query[openParam];
  const open = (key: string | undefined): void => go({ [openParam]: key }, { replace: true });
  const changed = (): void => {
    pages.reload();
    onChanged?.();
  };
  const isFiltered = Object.keys(values).length > 0;
  return (
    <Page
      title={title}
      lead={lead}
      actions={
        <>
          {pageActions?.((key) => {
            changed();
            open(key);
          })}
          {create && hasPermission(`${noun}.write`) && (
            <DialogButton
              look="primary"
              label={
                <>
                  <Icon name="plus" />
                  {create.button ?? "New"} {one}
                </>
              }
            >
              {(onClose) => (
                <ResourceForm
                  {...create}
                  title={`${create.button ?? "New"} ${one}`}
                  method="post"
                  operation={create.path ?? path}
                  path={create.path ?? path}
                  verb={create.button ?? "Create"}
                  onClose={onClose}
                  onDone={(answer) => {
                    onClose();
                    changed();
                    if (create.showResult) setCreated(answer);
                    else toast(`Created: ${one}`);
                  }}
                />
              )}
            </DialogButton>
          )}
        </>
      }
    >
      {filters.length > 0 && <FilterBar fields={filters} values={values} onChange={set} />}
      <div class="split">
        <div class="stack">
          <PagedTable
            label={title}
            columns={columns}
            pages={pages}
            keyOf={keyOf}
            {...(spec.facts && { onOpen: (row: Listed) => open(keyOf(row)) })}
            openKey={openKey}
            {...(maxRows && { maxRows })}
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
        {spec.facts && openKey !== undefined && (
          <EntityDetail
            key={openKey}
            spec={spec}
            entityKey={openKey}
            onClose={() => open(undefined)}
            onChanged={changed}
          />
        )}
      </div>
      {created !== undefined && create?.showResult?.(created, () => setCreated(undefined))}
    </Page>
  );
}

const idOf = ({ id }: Entity): string => id ?? "";

interface EntityDetailProps<Row extends Entity> {
  readonly spec: Omit<ResourceSpec<Row>, "columns" | "keyOf">;
  readonly entityKey: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

function EntityDetail<Row extends Entity>({ spec, entityKey, onClose, onChanged }: EntityDetailProps<Row>) {
  const { one, path, noun, titleOf = () => one, head, facts, more, actions, change, remove, everyMs } = spec;
  const itemPath = `${path}/${encodeURIComponent(entityKey)}`;
  const loaded = useLoad((signal) => loadVersioned<Row>(itemPath, signal), [itemPath], { everyMs });
  const canWrite = hasPermission(`${noun}.write`);
  const { verb = "Delete" } = remove ?? {};
  const reload = (): void => {
    loaded.reload();
    onChanged();
  };
  return (
    <DetailPanel title={loaded.data === undefined ? one : titleOf(loaded.data.entity)} onClose={onClose}>
      <WhenLoaded loaded={loaded}>
        {({ entity: row, etag }) => (
          <>
            {head?.(row)}
            {(canWrite || actions) && (
              <div class="row wrap">
                {actions?.(row, reload, etag)}
                {canWrite && change && (
                  <DialogButton label="Change">
                    {(close) => (
                      <ResourceForm
                        {...change}
                        title={`Change ${titleOf(row)}`}
                        method="put"
                        path={itemPath}
                        verb="Save"
                        createdBy={change.kindOf && { operation: path, kind: change.kindOf(row) }}
                        entity={row as Readonly<Record<string, unknown>> & Row}
                        etag={etag}
                        onClose={close}
                        onDone={() => {
                          toast(`Saved: ${one}`);
                          close();
                          reload();
                        }}
                      />
                    )}
                  </DialogButton>
                )}
                {canWrite && remove && (
                  <ConfirmButton
                    label={verb}
                    look="delete"
                    title={`${verb} ${titleOf(row)}?`}
                    verb={verb}
                    danger
                    {...(remove.typed && { typed: remove.typed(row) })}
                    call={{ method: "DELETE", path: itemPath }}
                    done={`Deleted: ${one}`}
                    onDone={() => {
                      onClose();
                      onChanged();
                    }}
                  >
                    {remove.consequence(row)}
                  </ConfirmButton>
                )}
              </div>
            )}
            <Facts facts={facts?.(row) ?? {}} />
            {more?.(row, loaded.reload)}
            <ApiCall call={{ method: "GET", path: itemPath }} />
          </>
        )}
      </WhenLoaded>
    </DetailPanel>
  );
}
