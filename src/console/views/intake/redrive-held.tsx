import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { RunDialog } from "../../kit/feedback/run-dialog.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Outcome } from "../quarantine/redrive-dialog.tsx";
import { type Counts, NO_COUNTS, type QuarantineCalls, runAgain } from "../quarantine/run-again.ts";

type Reason = Schemas["HeldRecord"]["reason"];

interface Props {
  readonly blueprintId: string;
  readonly reason: Reason;
  /** Number of items with this reason. */
  readonly count: number;
  readonly onClose: () => void;
  /** Called when the redrive has ended. */
  readonly onDone: () => void;
}

const LIMIT = 200;

/** Dialog that redrives all items that an intake holds for one reason. */
export function RedriveHeld({ blueprintId, reason, count, onClose, onDone }: Props) {
  const [counts, setCounts] = useState<Counts>();
  return (
    <RunDialog
      title={`Redrive ${formatCount(count)} held ${count === 1 ? "item" : "items"}`}
      call={{
        method: "POST",
        path: `/blueprints/${encodeURIComponent(blueprintId)}/quarantine/redrive`,
        body: { reason, limit: LIMIT },
      }}
      verb={`Redrive ${formatCount(count)}`}
      run={async (signal) => {
        setCounts(NO_COUNTS);
        const calls = createIntakeCalls(blueprintId, reason);
        const target = { is: "scope", scope: { reason }, count } as const;
        const done = await runAgain(calls, target, { signal, onProgress: setCounts });
        return `${done.released} routed, ${done.kept} still held`;
      }}
      onDone={onDone}
      onClose={onClose}
    >
      {(isDone) =>
        counts === undefined ? (
          <p>
            Inlet routes the items with the reason <code>{reason}</code> again, by the current route key paths
            of the intake. An item is published if an install has its key. All others are still held.
          </p>
        ) : (
          <Outcome counts={counts} of={count} isDone={isDone} />
        )
      }
    </RunDialog>
  );
}

const createIntakeCalls = (blueprintId: string, reason: Reason): QuarantineCalls => ({
  list: ({ from, limit }, signal) =>
    api.list("/blueprints/{blueprintId}/quarantine", {
      path: { blueprintId },
      query: { reason, limit, ...(from !== undefined && { from }) },
      signal,
    }),
  redrive: ({ from, limit }, signal) =>
    api.post("/blueprints/{blueprintId}/quarantine/redrive", {
      path: { blueprintId },
      body: { reason, limit, ...(from !== undefined && { from }) },
      signal,
    }),
  redriveOne: (itemId, signal) =>
    api.post("/blueprints/{blueprintId}/quarantine/{itemId}/redrive", {
      path: { blueprintId, itemId },
      body: {},
      signal,
    }),
});
