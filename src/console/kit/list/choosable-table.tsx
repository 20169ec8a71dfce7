import { useState } from "preact/hooks";
import { type Column, CountLine, Table } from "./table.tsx";

interface Props<Row> {
  /** What is listed, in the plural: `Items`. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** False: rows can be opened only. */
  readonly canChoose: boolean;
  /** The words of the button, for so many that are chosen; 0: none yet. */
  readonly verb: (count: number) => string;
  /** The chosen ones, in the order of the list. */
  readonly onRun: (chosen: readonly Row[]) => void;
  readonly onOpen: (row: Row) => void;
  readonly openKey: string | undefined;
}

/** A list of which some or all are chosen, for what is then done with them. */
export function ChoosableTable<Row extends { readonly id: string }>(props: Props<Row>) {
  const { label, columns, rows, canChoose, verb, onRun, onOpen, openKey } = props;
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const chosen = rows.filter(({ id }) => ticked.has(id));
  const areAll = chosen.length === rows.length;
  const tick = (id: string): void => {
    const next = new Set(ticked);
    if (!next.delete(id)) next.add(id);
    setTicked(next);
  };
  const choice: Column<Row> = {
    title: "Chosen",
    hidesTitle: true,
    width: "16px",
    cell: ({ id }) => (
      <input
        type="checkbox"
        class="tick"
        checked={ticked.has(id)}
        aria-label={`Choose ${id}`}
        onChange={() => tick(id)}
      />
    ),
  };
  return (
    <>
      {canChoose && (
        <div class="row wrap">
          <button
            type="button"
            class="button"
            onClick={() => setTicked(new Set(areAll ? [] : rows.map(({ id }) => id)))}
          >
            {areAll ? "Choose none" : "Choose all"}
          </button>
          <button type="button" class="button" disabled={chosen.length === 0} onClick={() => onRun(chosen)}>
            {verb(chosen.length)}
          </button>
        </div>
      )}
      <Table
        label={label}
        columns={canChoose ? [choice, ...columns] : columns}
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
