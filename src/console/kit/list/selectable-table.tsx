import { useState } from "preact/hooks";
import { type Column, CountLine, Table } from "./table.tsx";

interface Props<Row> {
  /** Plural name of the rows: `Items`. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Whether rows can be selected. Otherwise they can only be opened. */
  readonly isSelectable: boolean;
  /** Returns the label of the button for the number of selected rows. */
  readonly verb: (count: number) => string;
  /** Called with the selected rows, in the order of the list. */
  readonly onRun: (chosen: readonly Row[]) => void;
  readonly onOpen: (row: Row) => void;
  readonly openKey: string | undefined;
}

/** Table with selectable rows and a button that acts on the selection. */
export function SelectableTable<Row extends { readonly id: string }>(props: Props<Row>) {
  const { label, columns, rows, isSelectable, verb, onRun, onOpen, openKey } = props;
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const chosen = rows.filter(({ id }) => ticked.has(id));
  const areAll = chosen.length === rows.length;
  const tick = (id: string): void => {
    const next = new Set(ticked);
    if (!next.delete(id)) next.add(id);
    setTicked(next);
  };
  const choice: Column<Row> = {
    title: "Selected",
    hidesTitle: true,
    width: "16px",
    cell: ({ id }) => (
      <input
        type="checkbox"
        class="tick"
        checked={ticked.has(id)}
        aria-label={`Select ${id}`}
        onChange={() => tick(id)}
      />
    ),
  };
  return (
    <>
      {isSelectable && (
        <div class="row wrap">
          <button
            type="button"
            class="button"
            onClick={() => setTicked(new Set(areAll ? [] : rows.map(({ id }) => id)))}
          >
            {areAll ? "Select none" : "Select all"}
          </button>
          <button type="button" class="button" disabled={chosen.length === 0} onClick={() => onRun(chosen)}>
            {verb(chosen.length)}
          </button>
        </div>
      )}
      <Table
        label={label}
        columns={isSelectable ? [choice, ...columns] : columns}
        count={rows.length}
        rowAt={(index) => rows[index]}
        keyOf={({ id }) => id}
        onOpen={onOpen}
        openKey={openKey}
      />
      <CountLine count={rows.length} of={label.toLowerCase()} />
    </>
  );
}
