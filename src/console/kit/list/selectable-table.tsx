import { useState } from "preact/hooks";
import { Button } from "../layout/button.tsx";
import { formatCount } from "../text/numbers.ts";
import { type Column, CountLine, Table } from "./table.tsx";

interface SelectionAction<Row> {
  /** Returns the label of the button, given the number of selected rows or `selected`. */
  readonly verb: (count: string) => string;
  readonly look?: string;
  /** Called with the selected rows in list order. */
  readonly onRun: (selected: readonly Row[]) => void;
}

interface Props<Row> {
  /** Plural name of the rows: `Items`. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Whether rows can be selected. If not, the user can still open them. */
  readonly isSelectable: boolean;
  readonly actions: readonly SelectionAction<Row>[];
  readonly onOpen: (row: Row) => void;
  readonly openKey: string | undefined;
}

export function SelectableTable<Row extends { readonly id: string }>(props: Props<Row>) {
  const { label, columns, rows, isSelectable, actions, onOpen, openKey } = props;
  const [selectedIds, setSelectedIds] = useState<ReadonlySet<string>>(new Set());
  const selected = rows.filter(({ id }) => selectedIds.has(id));
  const areAllSelected = selected.length === rows.length;
  const toggle = (id: string): void => {
    const next = new Set(selectedIds);
    if (!next.delete(id)) next.add(id);
    setSelectedIds(next);
  };
  const checkboxColumn: Column<Row> = {
    title: "Selected",
    hidesTitle: true,
    width: "16px",
    cell: ({ id }) => (
      <input
        type="checkbox"
        class="tick"
        checked={selectedIds.has(id)}
        aria-label={`Select ${id}`}
        onChange={() => toggle(id)}
      />
    ),
  };
  const text = selected.length === 0 ? "selected" : formatCount(selected.length);
  return (
    <>
      {isSelectable && (
        <div class="row wrap">
          <Button onClick={() => setSelectedIds(new Set(areAllSelected ? [] : rows.map(({ id }) => id)))}>
            {areAllSelected ? "Select none" : "Select all"}
          </Button>
          {actions.map(({ verb, look, onRun }) => (
            <Button
              key={verb("selected")}
              look={look}
              disabled={selected.length === 0}
              onClick={() => onRun(selected)}
            >
              {verb(text)}
            </Button>
          ))}
        </div>
      )}
      <Table
        label={label}
        columns={isSelectable ? [checkboxColumn, ...columns] : columns}
        rows={rows}
        keyOf={({ id }) => id}
        onOpen={onOpen}
        openKey={openKey}
      />
      <CountLine count={rows.length} of={label.toLowerCase()} />
    </>
  );
}
